/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert memory: what a step of pre-training takes, part by part, predicted and measured. */
#include "model/train/memory.h"
#include "masks/base/text.h"
#include "model/objective/pretrain.h"
#include "model/train/run/run_model.h"
#include "tools/common/table.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include "tools/maskbert/train/pretrain_options.h"
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory {
    const struct options *o;
    struct run_options run;
    const char *folder; /* the model */
    char *own;          /* a temporary folder, or null */
    struct engine_options engine;
    struct model_config config;
    struct memory_request request;
    struct train_memory predicted, measured;
};

/* ---- the model ---- */

static bool has_pairs(const struct memory *m)
{
    return (m->run.objective ? m->run.objective->parts : config_parts(&m->config)) & PART_NSP;
}

static const struct objective *objective_of(const struct memory *m)
{
    return has_pairs(m) ? &objective_mlm_nsp : &objective_mlm;
}

/* Writes the model that training would start from: more positions, another mask, new heads. */
static int write_model(struct memory *m, struct error *e)
{
    const char *temporary = getenv("TMPDIR");
    struct text t = {0};
    text_add(&t, "%s/maskbert-memory-XXXXXX", temporary ? temporary : "/tmp");
    m->own = text_take(&t);
    if (!mkdtemp(m->own)) {
        int r = error_set(e, ERROR_UNAVAILABLE, "%s: cannot be made", m->own);
        free(m->own);
        m->own = NULL;
        return r;
    }
    struct run_options of_model = m->run;
    of_model.objective = objective_of(m);
    if (run_model_write(&of_model, m->own, NULL, NULL, e) < 0)
        return -1;
    m->folder = m->own;
    m->engine.mask = m->engine.transform = NULL; /* now the folder's own */
    config_finish(&m->config);
    return config_read(m->folder, &m->config, e);
}

static int remove_entry(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s, (void)kind, (void)at;
    return remove(path);
}

static void memory_finish(struct memory *m)
{
    if (m->own)
        nftw(m->own, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(m->own);
    config_finish(&m->config);
}

/* ---- options ---- */

static int read_engine(struct memory *m, struct error *e)
{
    const struct options *o = m->o;
    m->engine.trains = true;
    m->engine.dropout = true;
    return session_options(o, &m->engine, e);
}

static void make_request(struct memory *m)
{
    const struct run_options *r = &m->run;
    const struct model_config *c = &m->config;
    m->request = (struct memory_request){
        .batch = r->batch,
        .accumulate = r->accumulate,
        .length = m->o->length ? m->o->length : c->positions,
        .recompute = r->recompute,
        .hidden_dropout = r->hidden_dropout < 0 ? c->hidden_dropout : r->hidden_dropout,
        .attention_dropout =
            r->attention_dropout < 0 ? c->attention_dropout : r->attention_dropout,
    };
    m->engine.dropout = m->request.attention_dropout > 0;
    m->engine.parts = objective_of(m)->parts;
}

static int read_all(struct memory *m, struct error *e)
{
    const struct options *o = m->o;
    m->folder = o->argument;
    m->run = (struct run_options){.model = o->argument,
                                  .mask = o->mask,
                                  .transform = o->transform,
                                  .drop = o->drop,
                                  .positions = o->positions,
                                  .seed = o->seed};
    if (training_options(o, &m->run, e) < 0 || read_engine(m, e) < 0 ||
        config_read(m->folder, &m->config, e) < 0)
        return -1;
    const bool lacks = objective_of(m)->parts & ~config_parts(&m->config);
    if ((o->positions || o->drop || (o->measure && lacks)) && write_model(m, e) < 0)
        return -1;
    make_request(m);
    return 0;
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

static void add_row(const struct memory *m, const char *name, uint64_t predicted,
                    uint64_t measured, const char *holds, struct table *t)
{
    table_cell(t, "%s", name);
    table_cell(t, "%.1f", mib(predicted));
    if (m->o->measure)
        table_cell(t, "%.1f", mib(measured));
    table_cell(t, "%s", holds);
}

static const char *const recomputed[] = {[RECOMPUTE_NONE] = "nothing",
                                         [RECOMPUTE_ATTENTION] = "attention",
                                         [RECOMPUTE_LAYER] = "layers"};

static void print_text(const struct memory *m)
{
    const struct memory_request *r = &m->request;
    struct table t = {0};
    printf("%u sequences of %u tokens, %s; recomputed: %s\n\n", r->batch, r->length,
           m->engine.dtype == ELEMENT_BF16 ? "bf16" : "f32", recomputed[r->recompute]);
    table_text_column(&t, "MiB");
    table_number_column(&t, "predicted");
    if (m->o->measure)
        table_number_column(&t, "measured");
    table_text_column(&t, "");
    for (int k = 0; k < PARTS; k++)
        add_row(m, parts[k].name, bytes_of(&m->predicted, &parts[k]),
                bytes_of(&m->measured, &parts[k]), parts[k].holds, &t);
    add_row(m, "total", train_memory_total(&m->predicted), train_memory_total(&m->measured), "",
            &t);
    table_print(&t, TABLE_WIDTH);
}

/* ---- all ---- */

static int predict(struct memory *m, struct error *e)
{
    struct engine_options o = m->engine;
    o.outline = true;
    struct engine *g = engine_load(m->folder, &o, e);
    session_tell(NULL);
    int r = g ? train_memory_predict(g, &m->request, &m->predicted, e) : -1;
    engine_destroy(g);
    return r;
}

/* The step is measured first: no thread of ours may run when its process is made. */
static int run(struct memory *m, struct error *e)
{
    if (read_all(m, e) < 0)
        return -1;
    if (m->o->measure) {
        int r = train_memory_measure(m->folder, &m->engine, &m->request, &m->measured, e);
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
    memory_finish(&m);
    return r < 0 ? command_fail(&e) : 0;
}
