/* SPDX-License-Identifier: Apache-2.0 */
/* Value of each entry: the mean over lines of its attention, or of its effect on the layer's output. */
#include "masks/base/memory.h"
#include "model/probe/output.h"
#include "tools/maskbert/prune/prune.h"
#include <stdlib.h>

enum { HELD_OUT_EACH = 4, MOST_HELD_OUT = 512 };

/* ---- which lines ---- */

void prune_divide(struct prune *p)
{
    const struct task_batches *all = &p->s.batches;
    struct task_batches *m = &p->measured, *h = &p->held_out;
    m->sequence = memory_new(all->texts, sizeof *m->sequence);
    h->sequence = memory_new(all->texts, sizeof *h->sequence);
    for (uint32_t k = 0; k < all->texts; k++)
        if (k % HELD_OUT_EACH == HELD_OUT_EACH - 1 && h->texts < MOST_HELD_OUT)
            h->sequence[h->texts++] = all->sequence[k];
        else
            m->sequence[m->texts++] = all->sequence[k];
    task_form(m, &p->s.task);
    task_form(h, &p->s.task);
}

/* ---- sums over lines ---- */

struct sums {
    struct prune *p;
    struct output_factors factors;
    uint32_t *lines; /* [n + 1]: lines of at least k tokens */
};

static void add_head(const struct sums *s, const struct probe *probe, float *each)
{
    const struct prune *p = s->p;
    const struct engine *g = p->s.engine;
    float *sum = p->importance.value +
                 ((size_t)probe->seen->layer * g->config.heads + probe->head) * p->n * p->n;
    probe_run(g, probe, each);
    if (p->of_output)
        probe_output(g, &s->factors, probe, each);
    for (uint32_t i = 0; i < probe->n; i++)
        for (uint32_t j = 0; j < probe->n; j++)
            sum[(size_t)i * p->n + j] += each[(size_t)i * probe->n + j];
}

static void add_layer(void *context, const struct engine_layer *seen)
{
    const struct sums *s = context;
    const struct engine *g = s->p->s.engine;
    const struct engine_workspace *w = &s->p->s.workspace;
#pragma omp parallel num_threads((int)g->threads)
    {
        float *each = memory_new((size_t)s->p->n * s->p->n, sizeof *each);
#pragma omp for
        for (uint32_t h = 0; h < g->config.heads; h++)
            for (uint32_t k = 0; k < w->sequences; k++) {
                const uint32_t n = (uint32_t)(w->offsets[k + 1] - w->offsets[k]);
                add_head(s, &(struct probe){seen, (uint64_t)w->offsets[k], h, n}, each);
            }
        free(each);
    }
}

static int ignore_batch(void *context, const uint32_t *text, uint32_t n,
                        struct engine_workspace *workspace, struct error *e)
{
    (void)context, (void)text, (void)n, (void)workspace, (void)e;
    return 0;
}

static void count_lines(struct sums *s)
{
    struct prune *p = s->p;
    s->lines = memory_new((size_t)p->n + 1, sizeof *s->lines);
    for (uint32_t k = 0; k < p->measured.texts; k++) {
        const uint32_t count = p->measured.sequence[k].count;
        p->longest = count > p->longest ? count : p->longest;
        for (uint32_t i = 0; i <= count; i++)
            s->lines[i]++;
    }
}

/* Means over the lines that have both positions. */
static void divide_row(const struct sums *s, uint32_t i, float *row)
{
    for (uint32_t j = 0; j < s->p->n; j++) {
        const uint32_t lines = s->lines[(i > j ? i : j) + 1];
        row[j] = lines ? row[j] / (float)lines : 0;
    }
}

/* Short lines spread a query's attention over fewer keys. */
static void scale_row(uint32_t n, float *row)
{
    double sum = 0;
    for (uint32_t j = 0; j < n; j++)
        sum += (double)row[j];
    for (uint32_t j = 0; j < n && sum > 0; j++)
        row[j] = (float)((double)row[j] / sum);
}

static void make_means(const struct sums *s)
{
    const struct importance *p = &s->p->importance;
    for (size_t row = 0; row < (size_t)p->layers * p->heads * p->n; row++) {
        divide_row(s, (uint32_t)(row % p->n), p->value + row * p->n);
        if (!s->p->of_output)
            scale_row(p->n, p->value + row * p->n);
    }
}

int prune_measure(struct prune *p, struct error *e)
{
    const struct model_config *c = &p->s.engine->config;
    struct sums s = {.p = p};
    const struct engine_watch watch = {add_layer, &s};
    const struct task_visitor visitor = {ignore_batch, NULL};
    if (probe_check(p->s.engine, e) < 0)
        return -1;
    const struct task_runner runner = session_runner(&p->s);
    p->importance = (struct importance){
        c->layers, c->heads, p->n,
        memory_new((size_t)c->layers * c->heads * p->n * p->n, sizeof(float))};
    count_lines(&s);
    if (p->of_output)
        s.factors = output_factors_new(p->s.engine);
    p->s.workspace.watch = &watch;
    int r = task_run(&runner, &p->measured, &visitor, e);
    p->s.workspace.watch = NULL;
    if (r == 0) {
        make_means(&s);
        r = importance_check(&p->importance, "prune", e);
    }
    output_factors_finish(&s.factors);
    free(s.lines);
    return r;
}
