/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert prune: sums the attention that each pair of positions gets on a text, and writes masks of the pairs
   that get most: for each layer and head, at several sparsities, with or without the diagonal, and random
   masks of the same size to compare with. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/readers/keep.h"
#include "masks/write.h"
#include "model/checkpoint/json.h"
#include "model/probe.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEEPS = 32 };
static const uint64_t most_bytes = UINT64_C(4) << 30;

enum kind { KIND_ATTENTION, KIND_NO_DIAGONAL, KIND_RANDOM, KIND_COUNT };
static const char *const kinds[KIND_COUNT] = {"keep", "no-diagonal", "random"};

struct prune {
    const struct options *o;
    struct session s;
    double keep[MOST_KEEPS];
    uint32_t keeps, n, longest;
    float *sum;      /* [layers, heads, n, n]: attention, over all texts */
    uint32_t *texts; /* [n + 1]: texts of at least k tokens */
    json_t *report;
};

/* ---- what is asked ---- */

static int read_keeps(struct prune *p, struct error *e)
{
    const char *text = p->o->keep;
    for (char *end; *text && p->keeps < MOST_KEEPS; text = end + (*end == ',')) {
        double keep = strtod(text, &end);
        if (end == text || (*end && *end != ',') || !(keep > 0 && keep <= 100))
            break;
        p->keep[p->keeps++] = keep;
    }
    return *text || !p->keeps
               ? error_set(e, ERROR_INPUT,
                           "--keep %s: at most %d percentages above 0 to 100, with "
                           "commas between them, are expected",
                           p->o->keep, MOST_KEEPS)
               : 0;
}

static int read_options(struct prune *p, struct error *e)
{
    if (!p->o->output || !p->o->keep)
        return error_set(e, ERROR_INPUT, "prune: --keep P[,P..] and -o DIR are expected");
    return read_keeps(p, e);
}

static int check_size(struct prune *p, struct error *e)
{
    const struct model_config *c = &p->s.engine->config;
    p->n = p->o->length ? p->o->length : c->positions;
    if (p->n > c->positions)
        return error_set(e, ERROR_INPUT, "-n %u: the model has %u positions", p->n,
                         c->positions);
    if (p->n < TOKENIZER_MIN_LENGTH)
        return error_set(e, ERROR_INPUT, "-n %u: at least %d is expected", p->n,
                         TOKENIZER_MIN_LENGTH);
    uint64_t heads = (uint64_t)c->layers * c->heads;
    if (heads * p->n * p->n * sizeof(float) > most_bytes)
        return error_set(e, ERROR_INPUT,
                         "%" PRIu64 " heads over %u tokens are too much to hold: a "
                         "smaller -n is expected",
                         heads, p->n);
    p->s.task.max_length = p->n;
    return 0;
}

/* ---- the measurement ---- */

static void add_head(struct prune *p, const struct probe *probe, float *probability)
{
    const struct model_config *c = &p->s.engine->config;
    float *sum = p->sum + ((size_t)probe->layer * c->heads + probe->head) * p->n * p->n;
    probe_run(p->s.engine, probe, probability);
    for (uint32_t i = 0; i < probe->n; i++)
        for (uint32_t j = 0; j < probe->n; j++)
            sum[(size_t)i * p->n + j] += probability[(size_t)i * probe->n + j];
}

static void add_layer(void *context, uint32_t layer, const void *query, const void *key,
                      uint64_t row, uint64_t head)
{
    struct prune *p = context;
    const struct engine *g = p->s.engine;
    const struct engine_workspace *workspace = &p->s.workspace;
    uint32_t element = element_bytes(g->dtype);
#pragma omp parallel num_threads((int)g->threads)
    {
        float *values = memory_new((size_t)p->n * p->n, sizeof *values);
#pragma omp for
        for (uint32_t h = 0; h < g->config.heads; h++)
            for (uint32_t s = 0; s < workspace->sequences; s++) {
                uint64_t first = (uint64_t)workspace->offsets[s];
                uint64_t at = (first * row + h * head) * element;
                uint32_t n = (uint32_t)(workspace->offsets[s + 1] - workspace->offsets[s]);
                struct probe probe = {
                    (const uint8_t *)query + at, (const uint8_t *)key + at, row, layer, h, n};
                add_head(p, &probe, values);
            }
        free(values);
    }
}

static int ignore_batch(void *context, const uint32_t *text, uint32_t n,
                        struct engine_workspace *workspace, struct error *e)
{
    (void)context, (void)text, (void)n, (void)workspace, (void)e;
    return 0;
}

static int measure(struct prune *p, struct error *e)
{
    const struct model_config *c = &p->s.engine->config;
    struct engine_watch watch = {add_layer, p};
    struct task_visitor visitor = {ignore_batch, NULL};
    p->sum = memory_new((size_t)c->layers * c->heads * p->n * p->n, sizeof *p->sum);
    p->texts = memory_new((size_t)p->n + 1, sizeof *p->texts);
    for (uint32_t k = 0; k < p->s.batches.texts; k++) {
        uint32_t count = p->s.batches.sequence[k].count;
        p->longest = count > p->longest ? count : p->longest;
        for (uint32_t i = 0; i <= count; i++)
            p->texts[i]++;
    }
    const struct task_runner runner = session_runner(&p->s);
    p->s.workspace.watch = &watch;
    int r = task_run(&runner, &p->s.batches, &visitor, e);
    p->s.workspace.watch = NULL;
    return r;
}

/* ---- the masks ---- */

/* Means over the texts that are long enough for both positions. */
static void read_means(const struct prune *p, size_t head, double *ret)
{
    const float *sum = p->sum + head * p->n * p->n;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++) {
            uint32_t texts = p->texts[(i > j ? i : j) + 1];
            ret[(size_t)i * p->n + j] = texts ? (double)sum[(size_t)i * p->n + j] / texts : 0;
        }
}

static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static void rank(const struct prune *p, enum kind kind, size_t head, double *value)
{
    uint64_t state = p->o->seed * 1000003 + head + 1;
    if (kind != KIND_RANDOM)
        read_means(p, head, value);
    for (size_t k = 0; k < (size_t)p->n * p->n && kind == KIND_RANDOM; k++)
        value[k] = draw(&state);
    for (uint32_t i = 0; i < p->n && kind == KIND_NO_DIAGONAL; i++)
        value[(size_t)i * p->n + i] = -1;
}

/* A head's attention inside its pattern, and in all. */
static void add_kept(const struct prune *p, size_t head, const struct pattern *m, double *kept,
                     double *all)
{
    const float *sum = p->sum + head * p->n * p->n;
    for (size_t k = 0; k < (size_t)p->n * p->n; k++)
        *all += (double)sum[k];
    for (uint32_t i = 0; i < p->n; i++)
        for (uint64_t r = m->row[i]; r < m->row[i + 1]; r++)
            for (uint32_t j = m->run[r].begin; j < m->run[r].end; j++)
                *kept += (double)sum[(size_t)i * p->n + j];
}

static void report(const struct prune *p, const char *file, enum kind kind, double keep,
                   double mass)
{
    json_array_append_new(p->report, json_pack("{s:s, s:s, s:f, s:f, s:f}", "file", file,
                                               "kind", kinds[kind], "keep", keep, "sparsity",
                                               100 - keep, "mass", mass));
    if (!p->o->json)
        printf("%-28s %9.1f%% %9.2f%%\n", file, 100 - keep, 100 * mass);
}

static int write_mask(const struct prune *p, enum kind kind, double keep, struct error *e)
{
    const struct model_config *c = &p->s.engine->config;
    size_t heads = (size_t)c->layers * c->heads;
    struct pattern **given = memory_new(heads, sizeof *given);
    double *value = memory_new((size_t)p->n * p->n, sizeof *value), kept = 0, all = 0;
    struct text name = {0};
    for (size_t k = 0; k < heads; k++) {
        rank(p, kind, k, value);
        given[k] = keep_greatest(value, p->n, keep);
        add_kept(p, k, given[k], &kept, &all);
    }
    text_add(&name, "%s-%g.npy", kinds[kind], keep);
    struct mask *m = mask_new(c->layers, c->heads, given, text_get(&name));
    char *path = path_join(p->o->output, text_get(&name));
    int r = mask_write_npy(m, path, e);
    if (r == 0)
        report(p, text_get(&name), kind, keep, all > 0 ? kept / all : 0);
    mask_destroy(m);
    free(path);
    free(given);
    free(value);
    text_finish(&name);
    return r;
}

static int write_masks(const struct prune *p, struct error *e)
{
    const bool wanted[KIND_COUNT] = {
        [KIND_ATTENTION] = true,
        [KIND_NO_DIAGONAL] = p->o->drop_diagonal,
        [KIND_RANDOM] = p->o->random,
    };
    if (file_make_directory(p->o->output, e) < 0)
        return -1;
    if (!p->o->json)
        printf("%-28s %10s %10s\n", "mask", "sparsity", "attention");
    for (uint32_t k = 0; k < p->keeps; k++)
        for (int kind = 0; kind < KIND_COUNT; kind++)
            if (wanted[kind] && write_mask(p, (enum kind)kind, p->keep[k], e) < 0)
                return -1;
    return 0;
}

static int prune(struct prune *p, struct error *e)
{
    if (read_options(p, e) < 0 || session_open(p->o, 0, &p->s, e) < 0 || check_size(p, e) < 0 ||
        session_read(p->o, &p->s, e) < 0)
        return -1;
    if (!p->s.batches.texts)
        return error_set(e, ERROR_INPUT, "prune: lines of text are expected");
    if (measure(p, e) < 0)
        return -1;
    if (p->longest < p->n)
        fprintf(stderr,
                "maskbert: no text reaches beyond token %u of %u: nothing is known there\n",
                p->longest, p->n);
    return write_masks(p, e);
}

static void print_json(const struct prune *p)
{
    json_t *json = json_pack("{s:i, s:i, s:O}", "texts", (int)p->s.batches.texts, "length",
                             (int)p->n, "masks", p->report);
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(json);
}

int command_prune(const struct options *o)
{
    struct error e = {0};
    struct prune p = {.o = o, .report = json_array()};
    int r = prune(&p, &e);
    if (r == 0 && o->json)
        print_json(&p);
    json_decref(p.report);
    free(p.sum);
    free(p.texts);
    session_close(&p.s);
    return r < 0 ? command_fail(&e) : 0;
}
