/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert memory: what a step of pre-training takes, part by part, predicted and measured. */
#include "model/train/memory.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct memory {
    const struct options *o;
    struct engine_options engine;
    struct model_config config;
    struct memory_request request;
    struct train_memory predicted, measured;
};

/* ---- options ---- */

static const char *const recompute_names[] = {[RECOMPUTE_NONE] = "none",
                                              [RECOMPUTE_ATTENTION] = "attention",
                                              [RECOMPUTE_LAYER] = "layer"};

static int read_recompute(const struct options *o, enum recompute *ret, struct error *e)
{
    if (!o->recompute)
        return 0;
    for (int k = RECOMPUTE_NONE; k <= RECOMPUTE_LAYER; k++)
        if (!strcmp(o->recompute, recompute_names[k])) {
            *ret = (enum recompute)k;
            return 0;
        }
    return error_set(e, ERROR_INPUT, "--recompute %s: none, attention or layer is expected",
                     o->recompute);
}

static int read_request(struct memory *m, struct error *e)
{
    const struct options *o = m->o;
    if (!o->batch || !o->length)
        return error_set(e, ERROR_INPUT, "%s: a number is expected",
                         o->batch ? "-n N" : "--batch B");
    m->request = (struct memory_request){
        .batch = o->batch,
        .accumulate = o->accumulate,
        .length = o->length,
        .hidden_dropout = m->config.hidden_dropout,
        .attention_dropout = m->config.attention_dropout,
    };
    return read_recompute(o, &m->request.recompute, e);
}

/* The heads of pre-training; pairs where the model was made for them. */
static int read_engine(struct memory *m, struct error *e)
{
    m->engine.trains = true;
    m->engine.dropout = m->request.attention_dropout > 0;
    m->engine.parts = PART_MLM;
    if (config_parts(&m->config) & PART_NSP)
        m->engine.parts |= PART_POOLER | PART_NSP;
    return session_options(m->o, &m->engine, e);
}

/* ---- what is printed ---- */

static const struct part {
    const char *name, *holds;
    size_t at;
} parts[] = {
    {"parameters", "f32, and packed for the matrix products",
     offsetof(struct train_memory, parameters)},
    {"gradients", "f32", offsetof(struct train_memory, gradients)},
    {"optimizer", "two moments, f32", offsetof(struct train_memory, optimizer)},
    {"activations", "what a step keeps and works in",
     offsetof(struct train_memory, activations)},
    {"attention", "LSE and the kernels' workspace; scores are never stored",
     offsetof(struct train_memory, attention)},
};
enum { PARTS = sizeof parts / sizeof *parts };

static uint64_t bytes_of(const struct train_memory *m, const struct part *p)
{
    uint64_t ret;
    memcpy(&ret, (const uint8_t *)m + p->at, sizeof ret);
    return ret;
}

static json_t *json_of(const struct train_memory *m)
{
    json_t *ret = json_object();
    for (int k = 0; k < PARTS; k++)
        json_object_set_new(ret, parts[k].name,
                            json_integer((json_int_t)bytes_of(m, &parts[k])));
    json_object_set_new(ret, "total", json_integer((json_int_t)train_memory_total(m)));
    return ret;
}

static void print_json(const struct memory *m)
{
    json_t *json = json_pack("{s:o}", "predicted", json_of(&m->predicted));
    if (m->o->measure)
        json_object_set_new(json, "measured", json_of(&m->measured));
    json_dumpf(json, stdout, JSON_COMPACT);
    printf("\n");
    json_decref(json);
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

static void print_row(const struct memory *m, const char *name, uint64_t predicted,
                      uint64_t measured, const char *holds)
{
    printf("%-12s %12.1f", name, mib(predicted));
    if (m->o->measure)
        printf(" %12.1f", mib(measured));
    printf("%s%s\n", *holds ? "   " : "", holds);
}

static void print_text(const struct memory *m)
{
    const struct memory_request *r = &m->request;
    printf("%u sequences of %u tokens, %s; recomputed: %s\n\n", r->batch, r->length,
           m->engine.dtype == ELEMENT_BF16 ? "bf16" : "f32", recompute_names[r->recompute]);
    printf("%-12s %12s", "MiB", "predicted");
    if (m->o->measure)
        printf(" %12s", "measured");
    printf("\n");
    for (int k = 0; k < PARTS; k++)
        print_row(m, parts[k].name, bytes_of(&m->predicted, &parts[k]),
                  bytes_of(&m->measured, &parts[k]), parts[k].holds);
    print_row(m, "total", train_memory_total(&m->predicted), train_memory_total(&m->measured),
              "");
}

/* ---- all ---- */

static int predict(struct memory *m, struct error *e)
{
    struct engine_options o = m->engine;
    o.outline = true;
    struct engine *g = engine_load(m->o->argument, &o, e);
    session_tell(NULL);
    int r = g ? train_memory_predict(g, &m->request, &m->predicted, e) : -1;
    engine_destroy(g);
    return r;
}

/* The step is measured first: no thread of ours may run when its process is made. */
static int run(struct memory *m, struct error *e)
{
    if (config_read(m->o->argument, &m->config, e) < 0 || read_request(m, e) < 0 ||
        read_engine(m, e) < 0)
        return -1;
    if (m->o->measure) {
        int r = train_memory_measure(m->o->argument, &m->engine, &m->request, &m->measured, e);
        session_tell(NULL);
        if (r < 0)
            return -1;
    }
    if (predict(m, e) < 0)
        return -1;
    if (m->o->json)
        print_json(m);
    else
        print_text(m);
    return 0;
}

int command_memory(const struct options *o)
{
    struct error e = {0};
    struct memory m = {.o = o};
    int r = run(&m, &e);
    config_finish(&m.config);
    return r < 0 ? command_fail(&e) : 0;
}
