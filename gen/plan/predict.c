/* SPDX-License-Identifier: Apache-2.0 */
/* Time of a whole launch: longest item first to the worker that is free first, as the runtime does
   it, over every head and sequence. */
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

/* Above this many items the worker loads even out, and their mean is the answer. */
enum { EXACT_ITEMS = 1 << 17 };

struct load {
    double sum, longest;
    uint64_t count;
};

/* A heap of the workers' finishing times, the earliest at [0]. */
static void push_down(double *time, uint32_t workers)
{
    for (uint32_t k = 0;;) {
        uint32_t child = 2 * k + 1;
        if (child + 1 < workers && time[child + 1] < time[child])
            child++;
        if (child >= workers || time[k] <= time[child])
            return;
        double swap = time[k];
        time[k] = time[child];
        time[child] = swap;
        k = child;
    }
}

static double longest_first(const struct plan_pass *t, const uint64_t *part, uint32_t batch,
                            uint32_t workers)
{
    double *time = memory_new(workers, sizeof *time), last = 0;
    for (uint64_t k = part[0]; k < part[0] + part[1]; k++) {
        for (uint32_t b = 0; b < batch; b++) {
            time[0] += t->items[t->work[k].item].cost * 1e-9;
            last = time[0] > last ? time[0] : last;
            push_down(time, workers);
        }
    }
    free(time);
    return last;
}

static double span(const struct plan_pass *t, uint32_t layer, uint32_t batch, uint32_t workers)
{
    const uint64_t *part = t->layer_work[layer];
    if (part[1] * batch <= EXACT_ITEMS)
        return longest_first(t, part, batch, workers);
    double sum = 0, longest = 0;
    for (uint64_t k = part[0]; k < part[0] + part[1]; k++) {
        double cost = t->items[t->work[k].item].cost * 1e-9;
        sum += cost * batch;
        longest = cost > longest ? cost : longest;
    }
    return sum / workers > longest ? sum / workers : longest;
}

static uint32_t workers_of(const struct plan *p, uint32_t threads)
{
    uint32_t workers = p->machine->kind == TARGET_CPU ? threads : p->machine->workers;
    return workers ? workers : 1;
}

/* A figure of both directions, weighed as the backward pass uses them. */
static double weigh(const struct plan *p, double forward, double transposed, bool backward)
{
    double both = DQ_SHARE * forward + (1 - DQ_SHARE) * transposed;
    return backward ? p->machine->backward_ratio * both : forward;
}

static double model(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                    uint32_t threads)
{
    uint32_t workers = workers_of(p, threads);
    double heads = (double)p->heads * batch;
    double pack = pack_seconds(p, p->forward.uses) * heads / workers;
    double forward = span(&p->forward, layer, batch, workers);
    if (!backward || !p->features.backward)
        return forward + pack + p->machine->launch;
    double turned = span(&p->transposed, layer, batch, workers);
    double pack_turned = pack_seconds(p, p->transposed.uses) * heads / workers;
    return weigh(p, forward, turned, true) + pack + pack_turned + 2 * p->machine->launch;
}

/* No plan beats the roofline, whatever the model says of a very sparse one. */
double plan_predict(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                    uint32_t threads)
{
    double modelled = model(p, backward, layer, batch, threads);
    double floor = plan_floor(p, backward, layer, batch, threads);
    return modelled > floor ? modelled : floor;
}

/* Strips of one price: as many rounds of them as it takes. */
static double rounds(const struct plan *p, double head, double heads, uint32_t workers)
{
    double strips = ceil((double)p->n / p->strip_rows);
    return ceil(strips * heads / workers) * head / strips;
}

double plan_predict_dense(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                          uint32_t threads)
{
    bool turned = backward && p->features.backward;
    double sum = 0;
    for (uint32_t h = 0; h < p->heads; h++) {
        uint32_t which = p->at[(size_t)layer * p->heads + h];
        double forward = p->forward.summary[which].dense_predicted;
        sum += turned ? weigh(p, forward, p->transposed.summary[which].dense_predicted, true)
                      : forward;
    }
    double heads = (double)p->heads * batch;
    double dense = rounds(p, sum / p->heads, heads, workers_of(p, threads)) +
                   (turned ? 2 : 1) * p->machine->launch;
    double ours = plan_predict(p, backward, layer, batch, threads);
    return dense > ours ? dense : ours;
}

double plan_floor(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                  uint32_t threads)
{
    double workers = p->machine->kind == TARGET_CPU && threads ? threads : 1, sum = 0;
    for (uint32_t h = 0; h < p->heads; h++)
        sum += p->forward.summary[p->at[(size_t)layer * p->heads + h]].floor;
    return sum * batch / workers * (backward ? BACKWARD_FLOOR : 1);
}

struct mask_times mask_times(const struct plan *p, uint32_t which, bool backward,
                             uint32_t batch, uint32_t threads)
{
    struct mask_times ret = {0};
    const struct plan_summary *f = &p->forward.summary[which];
    const struct plan_summary *t = backward ? &p->transposed.summary[which] : f;
    uint64_t place = 0;
    while (p->at[place] != which)
        place++;
    ret.layer = (uint32_t)(place / p->heads);
    for (uint32_t h = 0; h < p->heads; h++)
        ret.heads += p->at[(uint64_t)ret.layer * p->heads + h] == which;
    double heads = (double)ret.heads * batch;
    double cpu_workers = p->machine->kind == TARGET_CPU ? workers_of(p, threads) : 1;
    ret.floor = f->floor * heads / cpu_workers * (backward ? BACKWARD_FLOOR : 1);
    if (ret.heads == p->heads) {
        ret.predicted = plan_predict(p, backward, ret.layer, batch, threads);
        ret.dense = plan_predict_dense(p, backward, ret.layer, batch, threads);
        return ret;
    }
    double predicted = weigh(p, f->predicted, t->predicted, backward);
    double dense = weigh(p, f->dense_predicted, t->dense_predicted, backward);
    double launch = (backward ? 2 : 1) * p->machine->launch;
    ret.predicted = rounds(p, predicted, heads, workers_of(p, threads)) + launch;
    ret.dense = rounds(p, dense, heads, workers_of(p, threads)) + launch;
    ret.predicted = ret.predicted > ret.floor ? ret.predicted : ret.floor;
    ret.dense = ret.dense > ret.predicted ? ret.dense : ret.predicted;
    return ret;
}
