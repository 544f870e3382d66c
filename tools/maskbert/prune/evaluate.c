/* SPDX-License-Identifier: Apache-2.0 */
/* Effect of a mask on the model's output: sentence vectors of the held-out lines compared with those without
   pruning. */
#include "masks/base/memory.h"
#include "tools/maskbert/prune/prune.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct evaluation {
    struct prune *p;
    enum pooling pooling;
    uint32_t lines, size;
    float *before;     /* [lines, size]: without pruning, of length 1 */
    uint32_t *nearest; /* [lines]: by `before`, another line */
};

/* The folder's own pooling, or mean if it is not supported or several. Modules behind it are left out. */
static enum pooling pooling_of(const char *folder)
{
    struct error ignored;
    struct sentence_settings s = {0};
    int r = sentence_read(folder, false, &s, &ignored);
    enum pooling ret = r < 0 || s.poolings != 1 ? POOLING_MEAN : s.pooling[0];
    sentence_finish(&s);
    return ret;
}

/* A workspace serves one mask alone. */
static float *embed(const struct evaluation *v, struct error *e)
{
    struct engine_workspace workspace = {0};
    const struct task_options quiet = {.max_length = v->p->o->max_length,
                                       .batch_tokens = v->p->o->batch_tokens,
                                       .names = {"held-out text", NULL}};
    const struct task_runner runner = {v->p->s.engine, &quiet, &workspace};
    float *ret = memory_new((size_t)v->lines * v->size, sizeof *ret);
    const struct embedding how = {.pooling = {v->pooling}, .poolings = 1, .normalize = true};
    int r = task_embed(&runner, &v->p->held_out, &how, ret, e);
    engine_workspace_finish(&workspace);
    if (r == 0)
        return ret;
    free(ret);
    return NULL;
}

static double dot(const struct evaluation *v, const float *a, const float *b)
{
    double sum = 0;
    for (uint32_t k = 0; k < v->size; k++)
        sum += (double)a[k] * (double)b[k];
    return sum;
}

/* The other line whose vector is nearest to that of line i; of equals the first. */
static uint32_t nearest_of(const struct evaluation *v, const float *vector, uint32_t i)
{
    double most = -HUGE_VAL;
    uint32_t ret = i;
    for (uint32_t k = 0; k < v->lines; k++) {
        const double near =
            k == i ? -HUGE_VAL
                   : dot(v, vector + (size_t)i * v->size, vector + (size_t)k * v->size);
        if (near > most) {
            most = near;
            ret = k;
        }
    }
    return ret;
}

static void compare(const struct evaluation *v, const float *vector, struct prune_row *ret)
{
    double cosine = 0, same = 0;
#pragma omp parallel for reduction(+ : same) num_threads((int)v->p->s.engine->threads)
    for (uint32_t i = 0; i < v->lines; i++)
        same += nearest_of(v, vector, i) == v->nearest[i];
    for (uint32_t i = 0; i < v->lines; i++)
        cosine += dot(v, vector + (size_t)i * v->size, v->before + (size_t)i * v->size);
    ret->cosine = cosine / v->lines;
    ret->neighbours = v->lines > 1 ? same / v->lines : (double)NAN;
}

static int evaluate_row(const struct evaluation *v, struct attention *a, struct prune_row *row,
                        struct error *e)
{
    engine_attention_swap(v->p->s.engine, a);
    float *vector = embed(v, e);
    engine_attention_swap(v->p->s.engine, a);
    if (!vector)
        return -1;
    compare(v, vector, row);
    free(vector);
    return 0;
}

/* ---- all masks ---- */

static int open_evaluation(struct prune *p, struct evaluation *v, struct error *e)
{
    *v = (struct evaluation){
        p,   pooling_of(p->o->argument), p->held_out.texts, p->s.engine->config.hidden, NULL,
        NULL};
    v->before = embed(v, e);
    v->nearest = memory_new(v->lines, sizeof *v->nearest);
    for (uint32_t i = 0; i < v->lines && v->before; i++)
        v->nearest[i] = nearest_of(v, v->before, i);
    return v->before ? 0 : -1;
}

static void close_evaluation(struct evaluation *v)
{
    free(v->before);
    free(v->nearest);
}

static int evaluate_all(struct prune *p, struct prune_row *const *row,
                        struct attention *const *attention, uint32_t count, struct error *e)
{
    struct evaluation v = {0};
    int r = p->held_out.texts ? open_evaluation(p, &v, e) : 0;
    for (uint32_t k = 0; k < count && r == 0 && p->held_out.texts; k++) {
        session_tell("comparing sentence vectors");
        r = evaluate_row(&v, attention[k], row[k], e);
    }
    close_evaluation(&v);
    session_tell(NULL);
    return r;
}

static int open_row(struct prune *p, const struct snap_request *request, struct prune_row *row,
                    struct attention **ret, struct error *e)
{
    char line[160];
    snprintf(line, sizeof line, "compiling %.100s", row->file ? row->file : "dense");
    session_tell(line);
    if (prune_predict(p, request, row->mask, &row->predicted, e) < 0)
        return -1;
    *ret = engine_attention_new(p->s.engine, &p->engine, row->mask, e);
    return *ret ? 0 : -1;
}

static int evaluate_opened(struct prune *p, struct prune_row *const *row,
                           struct attention *const *attention, uint32_t count, struct error *e)
{
    double *seconds = memory_new(count, sizeof *seconds);
    int r = evaluate_all(p, row, attention, count, e);
    if (r == 0)
        r = prune_time(p, attention, count, seconds, e);
    for (uint32_t k = 0; k < count && r == 0; k++)
        row[k]->measured = seconds[k];
    free(seconds);
    return r;
}

int prune_evaluate(struct prune *p, struct error *e)
{
    struct snap_request request;
    if (prune_request(p, &request, e) < 0)
        return -1;
    struct attention **attention = memory_new(p->rows + 1, sizeof *attention);
    struct prune_row **row = memory_new(p->rows + 1, sizeof *row);
    uint32_t count = 0;
    row[count++] = &p->dense;
    for (uint32_t k = 0; k < p->rows; k++)
        if (p->row[k].mask)
            row[count++] = &p->row[k];
    int r = 0;
    for (uint32_t k = 0; k < count && r == 0; k++)
        r = open_row(p, &request, row[k], &attention[k], e);
    if (r == 0)
        r = evaluate_opened(p, row, attention, count, e);
    session_tell(NULL);
    for (uint32_t k = 0; k < count; k++)
        engine_attention_destroy(attention[k]);
    free(attention);
    free(row);
    return r;
}
