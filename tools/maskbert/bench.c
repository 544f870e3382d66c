/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert bench: the model with its mask and with a dense mask, interleaved on the same random tokens. Says
   where the time goes, and the ceiling: what no mask can beat, as the rest is not attention. */
#include "masks/base/memory.h"
#include "model/engine/engine.h"
#include "tools/common/busy.h"
#include "tools/common/table.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include <inttypes.h>
#include <jansson.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32, LENGTH = 128, MAX_RUNS = 100000 };

struct side {
    const char *name;
    struct session s;
    double *run; /* seconds of each */
    uint32_t runs, runs_capacity;
    struct busy_time timed;
    double phase[PHASE_COUNT];
};

struct bench {
    const struct options *o;
    struct side mask, dense; /* dense.s.engine is null where the mask is dense itself */
    struct sequence *list;
    uint32_t *token_ids, batch, length;
    uint64_t tokens;
    bool mixed;
};

/* ---- the batch ---- */

/* Knuth's MMIX generator: any tokens will do, the same on every machine. */
static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static int read_batch(struct bench *b, struct error *e)
{
    const struct options *o = b->o;
    uint32_t longest = b->mask.s.engine->longest;
    b->batch = o->batch ? o->batch : BATCH;
    b->length = o->length ? o->length : longest < LENGTH ? longest : LENGTH;
    b->mixed = o->lengths && !strcmp(o->lengths, "mixed");
    if (o->lengths && !b->mixed && strcmp(o->lengths, "same"))
        return error_set(e, ERROR_INPUT, "--lengths %s: same or mixed is expected", o->lengths);
    if (b->length > longest)
        return error_set(e, ERROR_INPUT, "-n %u: the model has %u positions", b->length,
                         longest);
    if ((uint64_t)b->batch * b->length > 1 << 24)
        return error_set(e, ERROR_INPUT, "--batch %u: at most %d tokens in all", b->batch,
                         1 << 24);
    return 0;
}

static void make_batch(struct bench *b)
{
    uint32_t words = b->mask.s.engine->config.vocabulary, least = (b->length + 7) / 8;
    uint64_t state = 1;
    b->list = memory_new(b->batch, sizeof *b->list);
    b->token_ids = memory_new((size_t)b->batch * b->length, sizeof *b->token_ids);
    for (uint32_t k = 0; k < b->batch; k++) {
        uint32_t count = b->mixed ? least + draw(&state) % (b->length - least + 1) : b->length;
        uint32_t *token_ids = b->token_ids + (size_t)k * b->length;
        for (uint32_t i = 0; i < count; i++)
            token_ids[i] = draw(&state) % words;
        b->list[k] = (struct sequence){token_ids, count, count};
        b->tokens += count;
    }
}

/* ---- the runs ---- */

/* Where measuring phases slows the pass, phases are measured in runs of their own. */
static int run(const struct bench *b, struct side *s, bool counted, struct error *e)
{
    struct engine_workspace *workspace = &s->s.workspace;
    workspace->seconds = counted && !s->s.engine->phases_cost ? s->phase : NULL;
    const struct busy_time begin = busy_now();
    double since = omp_get_wtime();
    if (engine_encode(s->s.engine, b->list, b->batch, workspace, e) < 0)
        return -1;
    if (!counted)
        return 0;
    *MEMORY_PUSH(s->run, s->runs, s->runs_capacity) = omp_get_wtime() - since;
    busy_add(&s->timed, begin);
    return 0;
}

static int measure_phases(const struct bench *b, struct side *s, struct error *e)
{
    enum { RUNS = 3 };
    struct engine_workspace *workspace = &s->s.workspace;
    workspace->seconds = s->phase;
    for (int k = 0; s->s.engine && s->s.engine->phases_cost && k < RUNS; k++)
        if (engine_encode(s->s.engine, b->list, b->batch, workspace, e) < 0)
            return -1;
    return 0;
}

static int measure(struct bench *b, struct error *e)
{
    double seconds = b->o->seconds > 0 ? b->o->seconds : 2;
    bool both = b->dense.s.engine;
    for (int warm = 0; warm < 2; warm++)
        if (run(b, &b->mask, false, e) < 0 || (both && run(b, &b->dense, false, e) < 0))
            return -1;
    double end = omp_get_wtime() + (both ? 2 : 1) * seconds;
    while (b->mask.runs < 3 || (omp_get_wtime() < end && b->mask.runs < MAX_RUNS))
        if (run(b, &b->mask, true, e) < 0 || (both && run(b, &b->dense, true, e) < 0))
            return -1;
    return measure_phases(b, &b->mask, e) < 0 ? -1 : measure_phases(b, &b->dense, e);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(const struct side *s, double q)
{
    return s->run[(uint32_t)(q * (s->runs - 1))];
}

/* ---- what is said of them ---- */

static double share(const struct side *s, int phase)
{
    double all = 0;
    for (int k = 0; k < PHASE_COUNT; k++)
        all += s->phase[k];
    return s->phase[phase] / all;
}

/* Speedup over the dense model if attention cost nothing. */
static double ceiling_of(const struct bench *b)
{
    const struct side *dense = b->dense.s.engine ? &b->dense : &b->mask;
    return 1 / (1 - share(dense, PHASE_ATTENTION));
}

/* Share of processor time of the side whose threads ran most; 1 on a GPU. */
static double cpu_share(const struct bench *b)
{
    const struct engine *g = b->mask.s.engine;
    const double mask = busy_share(&b->mask.timed, g->threads),
                 dense = b->dense.s.engine ? busy_share(&b->dense.timed, g->threads) : 0;
    return strncmp(g->device, "cpu", 3) ? 1 : mask > dense ? mask : dense;
}

static json_t *side_json(const struct bench *b, const struct side *s)
{
    json_t *shares = json_object();
    for (int k = 0; k < PHASE_COUNT; k++)
        json_object_set_new(shares, engine_phase_name((enum engine_phase)k),
                            json_real(share(s, k)));
    double median = quantile(s, 0.5);
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:i, s:o}", "mask", s->name, "median_s",
                     median, "p10_s", quantile(s, 0.1), "p90_s", quantile(s, 0.9),
                     "sentences_per_s", b->batch / median, "tokens_per_s",
                     (double)b->tokens / median, "runs", (int)s->runs, "shares", shares);
}

static void print_json(const struct bench *b)
{
    const struct engine *g = b->mask.s.engine;
    json_t *results = json_array();
    json_array_append_new(results, side_json(b, &b->mask));
    if (b->dense.s.engine)
        json_array_append_new(results, side_json(b, &b->dense));
    json_t *json =
        json_pack("{s:s, s:i, s:b, s:f, s:i, s:i, s:I, s:s, s:f, s:o}", "device", g->device,
                  "threads", (int)g->threads, "busy", (int)busy_is(cpu_share(b)), "cpu_share",
                  cpu_share(b), "batch", (int)b->batch, "length", (int)b->length, "tokens",
                  (json_int_t)b->tokens, "dtype", g->dtype == ELEMENT_BF16 ? "bf16" : "f32",
                  "ceiling", ceiling_of(b), "results", results);
    if (b->dense.s.engine)
        json_object_set_new(json, "speedup",
                            json_real(quantile(&b->dense, 0.5) / quantile(&b->mask, 0.5)));
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(json);
}

static void add_row(const struct bench *b, const struct side *s, struct table *t)
{
    double median = quantile(s, 0.5);
    table_cell(t, "%s", s->name);
    table_cell(t, "%.1f", b->batch / median);
    table_cell(t, "%.0f", (double)b->tokens / median);
    table_cell(t, "%.2f", median * 1e3);
    table_cell(t, "%.2f", quantile(s, 0.1) * 1e3);
    table_cell(t, "%.1f%%", 100 * share(s, PHASE_ATTENTION));
}

static void print_speed(const struct bench *b)
{
    static const char *const figures[] = {"texts/s", "tokens/s", "median ms", "p10 ms",
                                          "attention"};
    struct table t = {0};
    table_text_column(&t, "mask");
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
        table_number_column(&t, figures[k]);
    add_row(b, &b->mask, &t);
    if (b->dense.s.engine)
        add_row(b, &b->dense, &t);
    table_print(&t, TABLE_WIDTH);
}

static void print_shares(const struct bench *b)
{
    const bool both = b->dense.s.engine;
    struct table t = {0};
    table_text_column(&t, "share of the time");
    table_number_column(&t, both ? "masked" : b->mask.name);
    if (both)
        table_number_column(&t, "dense");
    for (int k = 0; k < PHASE_COUNT; k++) {
        table_cell(&t, "%s", engine_phase_name((enum engine_phase)k));
        table_cell(&t, "%.1f%%", 100 * share(&b->mask, k));
        if (both)
            table_cell(&t, "%.1f%%", 100 * share(&b->dense, k));
    }
    printf("\n");
    table_print(&t, TABLE_WIDTH);
}

static void say_busy(const struct bench *b)
{
    struct text line = {0};
    if (busy_is(cpu_share(b))) {
        busy_text(cpu_share(b), NULL, &line);
        fprintf(stderr, "maskbert: %s\n", text_get(&line));
    }
    text_finish(&line);
}

static void print_text(const struct bench *b)
{
    const struct engine *g = b->mask.s.engine;
    printf("%u texts of %s%u tokens, %" PRIu64 " in all; %s, %s, %u %s\n\n", b->batch,
           b->mixed ? "up to " : "", b->length, b->tokens,
           g->dtype == ELEMENT_BF16 ? "bf16" : "f32", g->device, g->threads,
           g->threads == 1 ? "thread" : "threads");
    print_speed(b);
    print_shares(b);
    printf("\n");
    if (b->dense.s.engine)
        printf("%.2f times as fast as dense; ",
               quantile(&b->dense, 0.5) / quantile(&b->mask, 0.5));
    printf("no mask can make dense more than %.2f times as fast here\n", ceiling_of(b));
    say_busy(b);
}

/* ---- all ---- */

static int open_both(struct bench *b, struct error *e)
{
    struct options dense = *b->o;
    dense.mask = "dense";
    if (session_open(b->o, 0, &b->mask.s, e) < 0)
        return -1;
    const struct model_config *c = &b->mask.s.engine->config;
    b->mask.name = b->o->mask ? b->o->mask : c->mask ? c->mask : "dense";
    b->dense.name = "dense";
    if (!strcmp(b->mask.name, "dense"))
        return 0;
    return session_open(&dense, 0, &b->dense.s, e);
}

static int bench(struct bench *b, struct error *e)
{
    if (b->o->seconds < 0)
        return error_set(e, ERROR_INPUT, "--seconds %g: a time above 0 is expected",
                         b->o->seconds);
    if (open_both(b, e) < 0 || read_batch(b, e) < 0)
        return -1;
    make_batch(b);
    session_tell("running");
    int r = measure(b, e);
    session_tell(NULL);
    if (r < 0)
        return -1;
    qsort(b->mask.run, b->mask.runs, sizeof *b->mask.run, compare);
    if (b->dense.runs)
        qsort(b->dense.run, b->dense.runs, sizeof *b->dense.run, compare);
    if (b->o->json)
        print_json(b);
    else
        print_text(b);
    return 0;
}

int command_bench(const struct options *o)
{
    struct error e = {0};
    struct bench b = {.o = o};
    int r = bench(&b, &e);
    session_close(&b.mask.s);
    session_close(&b.dense.s);
    free(b.mask.run);
    free(b.dense.run);
    free(b.list);
    free(b.token_ids);
    return r < 0 ? command_fail(&e) : 0;
}
