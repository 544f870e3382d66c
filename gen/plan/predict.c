/* SPDX-License-Identifier: Apache-2.0 */
/* Time of a whole launch over every head and sequence. */
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

/* Workers of a launch. The block of a tall row block needs the resources of two. */
uint32_t predict_workers(const struct plan *p, uint32_t threads)
{
    uint32_t most = p->config.tall ? p->machine->workers / 2 : p->machine->workers;
    uint32_t workers = p->machine->kind == TARGET_CPU ? threads : most;
    return workers ? workers : 1;
}

/* Number of items in flight, and the time of one relative to its time on one worker: with fewer items in flight each is
   faster. */
struct load_share {
    uint32_t at_once;
    double time;
};

static struct load_share share_of(const struct plan *p, enum machine_pass pass,
                                  uint32_t threads)
{
    const uint32_t workers = predict_workers(p, threads);
    const uint32_t at_once = p->machine->kind == TARGET_CPU ? workers : p->in_flight[pass];
    return (struct load_share){at_once, (double)at_once / workers};
}

/* Data of one pass of a launch. */
static const struct {
    uint32_t queries, keys; /* tensors of queries read or written; of keys read; ... */
    uint32_t gradients;     /* ... of all keys written */
    uint32_t packed;        /* operands packed for it */
    uint32_t bias;          /* passes over a bias or its gradient */
} passes[PASSES] = {
    [PASS_FORWARD] = {.queries = 2, .keys = 2, .packed = 2, .bias = 1},
    [PASS_DQ] = {.queries = 4, .keys = 2, .packed = 3, .bias = 3},
    [PASS_DKV] = {.queries = 2, .keys = 2, .gradients = 2, .packed = 4, .bias = 1},
};

static const struct plan_pass *pass_of(const struct plan *p, enum machine_pass pass)
{
    return pass == PASS_DKV ? &p->transposed : &p->forward;
}

static double clamp_dense(double dense, double predicted)
{
    return dense > predicted ? dense : predicted;
}

/* Seconds of a pass for one sequence and one head of mask `which`, on one worker. */
static double head_seconds(const struct plan *p, enum machine_pass pass, uint32_t which,
                           bool dense)
{
    const struct plan_summary *s = &pass_of(p, pass)->summary[which];
    double ours = price_of(&p->price[pass], &s->effort);
    return dense ? clamp_dense(price_of(&p->price[pass], &s->dense), ours) : ours;
}

static double layer_seconds(const struct plan *p, enum machine_pass pass, uint32_t layer,
                            bool dense)
{
    double sum = 0;
    for (uint32_t h = 0; h < p->heads; h++)
        sum += head_seconds(p, pass, p->at[(size_t)layer * p->heads + h], dense);
    return sum;
}

/* Bytes of a bias, once a launch: its entries stay in cache from one sequence to the next. `share` is the part of n x n
   that the plan visits. The dQ pass first clears the whole gradient: two more passes over its bytes. */
static double bias_bytes(const struct plan *p, enum machine_pass pass, double share)
{
    double all = p->config.request.bias ? sizeof(float) * (double)p->heads * p->n * p->n : 0;
    return all * (share * passes[pass].bias + (pass == PASS_DQ ? 2 : 0));
}

/* The share of all entries that a plan visits. */
static double visited(const struct plan *p, const struct effort *e, double heads)
{
    double entries =
        e->count[UNIT_FULL] + e->count[UNIT_PARTIAL] + e->count[UNIT_WALK] + e->count[UNIT_ROW];
    const struct request_sides sides = plan_sides(p, false);
    return fmin(1, entries / (heads * sides.rows * sides.columns));
}

/* Data that heads move. */
struct traffic {
    double heads, keys; /* keys: read by a head, on average */
    double packed;      /* columns that a head packs; 0: nothing is packed */
};

/* All keys. */
static struct traffic whole_traffic(const struct plan *p, enum machine_pass pass, double heads,
                                    bool packs)
{
    const double columns = plan_sides(p, pass == PASS_DKV).columns;
    return (struct traffic){heads, plan_sides(p, false).columns, packs ? columns : 0};
}

/* Bytes that all heads together move from and to memory: on a CPU those that are not in the cache. CUDA kernels pack nothing. */
static double tiled_bytes(const struct plan *p, enum machine_pass pass, struct traffic x,
                          uint32_t workers, double share)
{
    const bool cpu = p->machine->kind == TARGET_CPU;
    const struct request_sides sides = plan_sides(p, false);
    const double rows = sides.rows * (double)passes[pass].queries + x.keys * passes[pass].keys +
                        sides.columns * (double)passes[pass].gradients;
    const double packed = cpu ? x.packed * passes[pass].packed : 0;
    double bytes = x.heads * (rows + packed) * p->config.request.head_dim *
                       dtype_bytes(p->config.request.dtype) +
                   bias_bytes(p, pass, share);
    return cpu ? bytes * cache_miss(bytes, p->machine->cache * workers) : bytes;
}

static bool packs(const struct plan *p, enum machine_pass pass)
{
    return pack_effort(p, 1, pass_of(p, pass)->uses).count[UNIT_PACK] > 0;
}

double predict_pack(const struct plan *p, enum machine_pass pass)
{
    const double columns = packed_mean(p, pass == PASS_DKV);
    struct effort e = pack_effort(p, columns, 1u << ABI_TILES);
    struct traffic x = whole_traffic(p, pass, p->heads, false);
    e.count[UNIT_STREAM] = -tiled_bytes(p, pass, x, 1, 1) / p->heads;
    x.packed = columns;
    e.count[UNIT_STREAM] += tiled_bytes(p, pass, x, 1, 1) / p->heads;
    return price_of(&p->price[pass], &e);
}

struct effort plan_effort(const struct plan *p, enum machine_pass pass, uint32_t layer,
                          uint32_t batch, uint32_t workers)
{
    struct effort e = {{0}};
    double keys = 0;
    for (uint32_t h = 0; h < p->heads; h++) {
        const struct plan_summary *s =
            &pass_of(p, pass)->summary[p->at[(size_t)layer * p->heads + h]];
        effort_add(&e, &s->effort, batch);
        keys += s->keys;
    }
    const double packed = packs(p, pass) ? packed_layer(p, pass == PASS_DKV, layer) : 0;
    const struct traffic x = {(double)p->heads * batch, keys / p->heads, packed};
    double share = visited(p, &e, x.heads);
    e.count[UNIT_STREAM] = tiled_bytes(p, pass, x, workers, share);
    e.count[UNIT_EXPOSED] = e.count[UNIT_STREAM] * (1 - share);
    return e;
}

/* Workers are balanced by the forward cost of items. The other passes are assumed to cost in proportion. */
double plan_spread(const struct plan *p, enum machine_pass pass, uint32_t layer, uint32_t batch,
                   uint32_t threads)
{
    const struct plan_pass *t = pass_of(p, pass);
    double items = 0;
    for (uint64_t k = t->layer_work[layer][0], end = k + t->layer_work[layer][1]; k < end; k++)
        items += t->items[t->work[k].item].cost * 1e-9;
    struct load_share x = share_of(p, pass, threads);
    return work_span(t, layer, batch, x.at_once) * x.time / (items * batch);
}

/* Seconds of a launch besides its work, with those of waking threads. */
static double launch_seconds(const struct plan *p, uint32_t workers)
{
    bool many = p->machine->kind == TARGET_CPU && workers > 1;
    return p->machine->launch + (many ? p->machine->wake : 0);
}

double plan_launches(const struct plan *p, enum machine_pass pass, uint32_t layer)
{
    return pass_of(p, pass)->layer_work[layer][2] ? 1 + MERGE_LAUNCH : 1;
}

double predict_pass(const struct plan *p, enum machine_pass pass, uint32_t layer,
                    uint32_t batch, uint32_t threads)
{
    uint32_t workers = predict_workers(p, threads);
    if (plan_reads_steps(p))
        return predict_steps(p, pass, layer, batch);
    struct effort e = plan_effort(p, pass, layer, batch, workers);
    double stream = e.count[UNIT_STREAM] * p->price[pass].stream +
                    e.count[UNIT_EXPOSED] * p->price[pass].exposed;
    double uneven = plan_spread(p, pass, layer, batch, threads) * workers;
    return ((price_of(&p->price[pass], &e) - stream) * uneven + stream) / workers +
           plan_launches(p, pass, layer) * launch_seconds(p, workers);
}

static bool is_backward(const struct plan *p, bool backward)
{
    return backward && p->config.request.backward;
}

/* Seconds of the launches for dX on a GPU: tiles, sums over chunks, sums along diagonals. */
static double bias_launches(const struct plan *p)
{
    return p->config.request.bias
               ? family_of(p->target, &p->config, FAMILY_BACKWARD)->bias_launches *
                     p->machine->launch
               : 0;
}

static double model(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                    uint32_t threads)
{
    if (!is_backward(p, backward))
        return predict_pass(p, PASS_FORWARD, layer, batch, threads);
    return predict_pass(p, PASS_DQ, layer, batch, threads) +
           predict_pass(p, PASS_DKV, layer, batch, threads) + bias_launches(p);
}

/* Seconds of a pass, at least the roofline's: for a very sparse plan the model alone may predict less. */
double plan_predict(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                    uint32_t threads)
{
    double modelled = model(p, backward, layer, batch, threads);
    double floor = plan_floor(p, backward, layer, batch, threads);
    return modelled > floor ? modelled : floor;
}

/* Seconds of row blocks of equal price, in rounds of one for each worker. */
static double rounds(const struct plan *p, enum machine_pass pass, double head, double heads,
                     struct load_share x)
{
    double row_blocks = ceil((double)plan_sides(p, pass == PASS_DKV).rows / p->block_rows);
    return ceil(row_blocks * heads / x.at_once) * x.time * head / row_blocks;
}

static bool dense_packs(const struct plan *p, enum machine_pass pass)
{
    return pass_of(p, pass)->summary[0].dense.count[UNIT_PACK] > 0;
}

/* Seconds of a launch of `heads` heads that need `seconds[pass]` each on one worker. */
static double even_launch(const struct plan *p, bool backward, const double seconds[PASSES],
                          double heads, uint32_t threads)
{
    uint32_t workers = predict_workers(p, threads);
    double sum = 0;
    for (int k = 0; k < PASSES; k++) {
        const enum machine_pass pass = (enum machine_pass)k;
        if ((k != PASS_FORWARD) == is_backward(p, backward))
            sum += rounds(p, pass, seconds[k], heads, share_of(p, pass, threads)) +
                   launch_seconds(p, workers) +
                   p->price[k].stream / workers *
                       tiled_bytes(p, pass, whole_traffic(p, pass, heads, dense_packs(p, pass)),
                                   workers, 1);
    }
    return sum + (is_backward(p, backward) ? bias_launches(p) : 0);
}

double predict_every_tile(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                          uint32_t threads)
{
    const double heads = (double)p->heads * batch;
    double seconds[PASSES] = {0};
    if (plan_reads_steps(p))
        return predict_steps_every_tile(p, is_backward(p, backward), layer, heads);
    for (int k = 0; k < PASSES; k++)
        if (k != PASS_DKV || p->config.request.backward)
            seconds[k] = layer_seconds(p, (enum machine_pass)k, layer, true) / p->heads;
    return even_launch(p, backward, seconds, heads, threads);
}

double plan_predict_dense(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                          uint32_t threads)
{
    const double dense =
        plan_reads_steps(p)
            ? predict_steps_dense(p, is_backward(p, backward), (double)p->heads * batch)
            : predict_every_tile(p, backward, layer, batch, threads);
    return clamp_dense(dense, plan_predict(p, backward, layer, batch, threads));
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
    uint64_t place = 0;
    while (p->at[place] != which)
        place++;
    ret.layer = (uint32_t)(place / p->heads);
    for (uint32_t h = 0; h < p->heads; h++)
        ret.heads += p->at[(uint64_t)ret.layer * p->heads + h] == which;
    double heads = (double)ret.heads * batch;
    double cpu_workers = p->machine->kind == TARGET_CPU ? predict_workers(p, threads) : 1;
    ret.floor = f->floor * heads / cpu_workers * (backward ? BACKWARD_FLOOR : 1);
    if (ret.heads == p->heads) {
        ret.predicted = plan_predict(p, backward, ret.layer, batch, threads);
        ret.dense = plan_predict_dense(p, backward, ret.layer, batch, threads);
        return ret;
    }
    if (plan_reads_steps(p)) {
        ret.predicted = fmax(ret.floor, predict_steps_mask(p, backward, which, heads));
        ret.dense = fmax(ret.predicted, predict_steps_dense(p, backward, heads));
        return ret;
    }
    double ours[PASSES] = {0}, dense[PASSES] = {0};
    for (int k = 0; k < PASSES; k++)
        if (k != PASS_DKV || p->config.request.backward) {
            ours[k] = head_seconds(p, (enum machine_pass)k, which, false);
            dense[k] = head_seconds(p, (enum machine_pass)k, which, true);
        }
    ret.predicted = even_launch(p, backward, ours, heads, threads);
    ret.dense = even_launch(p, backward, dense, heads, threads);
    ret.predicted = ret.predicted > ret.floor ? ret.predicted : ret.floor;
    ret.dense = ret.dense > ret.predicted ? ret.dense : ret.predicted;
    return ret;
}
