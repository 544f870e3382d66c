/* SPDX-License-Identifier: Apache-2.0 */
/* Loss and gradients of one batch, for gradient_oracle.py: gradients_dump FOLDER BATCH OUT.safetensors OPTION=VALUE...
   BATCH is text, a sequence a line: its sample, next sentence's label (-1: none), tokens of the first part, number of
   tokens, token ids, number of masked tokens, and a position and label for each. Prints the loss as JSON.

   Of heads for fine-tuning, heads_oracle.py: head=pooled|rows|span loss=labels|square|choice|span group=G
   head_dropout=P. The masked tokens are then the target's rows; a value is label / 64 - 1. steps=N: the values of the
   parameters after so many steps of AdamW on the batch, and each step's loss. device=D: on that device. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/safetensors.h"
#include "model/backend/mirror.h"
#include "model/gradients/gradients.h"
#include "model/train/optimizer.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };
enum { WORDS, NEXT }; /* the batch's targets */

/* A whole batch, and memory for a part of it. */
struct read_batch {
    struct train_batch batch;
    int32_t *offsets;
    uint32_t *rows;
    uint32_t masked, *masked_row, *masked_label, *first, *next;
    float *value;
    bool pairs;
};

static uint32_t read_number(FILE *f)
{
    long long x;
    if (fscanf(f, "%lld", &x) != 1) {
        fputs("the batch is cut\n", stderr);
        exit(2);
    }
    return (uint32_t)x;
}

static void read_masked(FILE *f, struct read_batch *b)
{
    const uint32_t first = b->batch.tokens, n = read_number(f);
    for (uint32_t k = 0; k < n; k++, b->masked++) {
        b->masked_row[b->masked] = first + read_number(f);
        b->masked_label[b->masked] = read_number(f);
    }
}

static bool read_sequence(FILE *f, struct read_batch *r)
{
    struct train_batch *b = &r->batch;
    uint32_t sample, s = b->sequences;
    if (fscanf(f, "%" SCNu32, &sample) != 1)
        return false;
    b->sample[s] = sample;
    const uint32_t next = read_number(f);
    r->pairs = next != UINT32_MAX;
    r->first[s] = b->tokens;
    r->next[s] = next;
    b->list[s].first_part = read_number(f);
    b->list[s].count = read_number(f);
    uint32_t *ids = memory_new(b->list[s].count, sizeof *ids);
    for (uint32_t k = 0; k < b->list[s].count; k++)
        ids[k] = read_number(f);
    b->list[s].token_ids = ids;
    read_masked(f, r);
    b->tokens += b->list[s].count;
    b->offsets[++b->sequences] = (int32_t)b->tokens;
    return true;
}

static struct read_batch read_batch(const char *path)
{
    struct read_batch r = {{.list = memory_new(MOST, sizeof(struct sequence)),
                            .offsets = memory_new(MOST + 1, sizeof(int32_t)),
                            .sample = memory_new(MOST, sizeof(uint32_t))},
                           .offsets = memory_new(MOST + 1, sizeof(int32_t)),
                           .rows = memory_new((1 << 20) + MOST, sizeof(uint32_t)),
                           .masked_row = memory_new(1 << 20, sizeof(uint32_t)),
                           .masked_label = memory_new(1 << 20, sizeof(uint32_t)),
                           .first = memory_new(MOST, sizeof(uint32_t)),
                           .next = memory_new(MOST, sizeof(uint32_t))};
    FILE *f = fopen(path, "r");
    if (!f)
        exit(2);
    while (read_sequence(f, &r))
        ;
    fclose(f);
    r.value = memory_new(r.masked, sizeof *r.value);
    for (uint32_t k = 0; k < r.masked; k++)
        r.value[k] = (float)r.masked_label[k] / 64 - 1;
    r.batch.targets = r.pairs ? 2 : 1;
    r.batch.target[WORDS] =
        (struct train_target){TARGET_WORDS, r.masked, r.masked_row, r.masked_label};
    r.batch.target[NEXT] =
        (struct train_target){TARGET_NEXT, r.batch.sequences, r.first, r.next};
    return r;
}

static void free_batch(struct read_batch *r)
{
    for (uint32_t k = 0; k < r->batch.sequences; k++)
        free((void *)(uintptr_t)r->batch.list[k].token_ids);
    void *all[] = {r->batch.list,   r->batch.offsets, r->batch.sample, r->masked_row,
                   r->masked_label, r->first,         r->next,         r->offsets,
                   r->rows,         r->value};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int k = 4; k < argc; k++)
        if (!strncmp(argv[k], name, strlen(name)) && argv[k][strlen(name)] == '=')
            return argv[k] + strlen(name) + 1;
    return otherwise;
}

static void must(int r, const struct error *e)
{
    if (r < 0) {
        fprintf(stderr, "%s\n", e->text);
        exit(2);
    }
}

static uint32_t number(int argc, char **argv, const char *name, const char *otherwise)
{
    return (uint32_t)atoi(option(argc, argv, name, otherwise));
}

static uint32_t place_in(const char *const *names, const char *name)
{
    uint32_t k = 0;
    while (strcmp(names[k], name))
        k++;
    return k;
}

/* One head in the place of words and next sentences. */
static void set_head(int argc, char **argv, struct read_batch *b)
{
    static const char *const heads[] = {[TARGET_WORDS] = "words",
                                        [TARGET_NEXT] = "next",
                                        [TARGET_POOLED] = "pooled",
                                        [TARGET_ROWS] = "rows",
                                        [TARGET_SPAN] = "span"},
                             *const losses[] = {[LOSS_LABELS] = "labels",
                                                [LOSS_SQUARE] = "square",
                                                [LOSS_CHOICE] = "choice",
                                                [LOSS_SPAN] = "span"};
    struct train_target *t = &b->batch.target[0];
    if (!option(argc, argv, "head", NULL))
        return;
    t->head = place_in(heads, option(argc, argv, "head", ""));
    t->loss = place_in(losses, option(argc, argv, "loss", "labels"));
    t->value = b->value;
    b->batch.targets = 1;
    b->batch.group = number(argc, argv, "group", "1");
}

static uint32_t parts_of(const struct train_batch *b)
{
    uint32_t ret = 0;
    for (uint32_t k = 0; k < b->targets; k++)
        ret |= target_form(b->target[k].head)->parts;
    return ret;
}

static struct engine *load(int argc, char **argv, const struct train_batch *b)
{
    struct error e = {0};
    struct engine_options o = {.mask = option(argc, argv, "mask", NULL),
                               .device = option(argc, argv, "device", NULL),
                               .transform = option(argc, argv, "transform", NULL),
                               .dtype = strcmp(option(argc, argv, "dtype", "f32"), "bf16")
                                            ? ELEMENT_F32
                                            : ELEMENT_BF16,
                               .threads = number(argc, argv, "threads", "2"),
                               .parts = parts_of(b),
                               .trains = true,
                               .dropout = atof(option(argc, argv, "attention", "0")) > 0};
    struct engine *g = engine_load(argv[1], &o, &e);
    must(g ? 0 : -1, &e);
    return g;
}

/* of: the state's gradient or value */
static void save(const char *path, const struct engine *g, const struct train_state *s,
                 float *of)
{
    struct safetensors out = {0};
    struct error e = {0};
    uint64_t size;
    float *own;
    const float *host = array_view(&s->device, of, of, s->count, &own, &e);
    must(host ? 0 : -1, &e);
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct parameter *p = s->piece[k].parameter;
        char name[PARAMETER_NAME_BYTES];
        parameter_file_name(p, &g->config, name);
        safetensors_add(&out, name, "F32", p->rank, p->shape, host + s->piece[k].first);
    }
    uint8_t *bytes = safetensors_write(&out, &size);
    must(file_write(path, bytes, size, &e), &e);
    free(bytes);
    free(own);
    safetensors_finish(&out);
}

/* Computes gradients and loss of the batch in `parts` parts, cut between samples. */
static struct batch_loss compute(struct gradients_request r, struct read_batch *b,
                                 uint32_t parts, struct gradients_workspace *w)
{
    const uint32_t group = train_batch_group(&b->batch), all = b->batch.sequences / group;
    struct batch_loss loss = {0};
    struct error e = {0};
    for (uint32_t k = 0; k < parts; k++) {
        struct train_batch part;
        const uint32_t first = all * k / parts * group, end = all * (k + 1) / parts * group;
        train_batch_slice(&b->batch, first, end - first, &part, b->offsets, b->rows);
        r.batch = &part;
        must(gradients_compute(&r, w, &loss, &e), &e);
    }
    return loss;
}

static void print_loss(const struct batch_loss *l)
{
    printf("{\"mlm\": %.17g, \"next\": %.17g, \"masked\": %" PRIu64
           ", \"masked_right\": %" PRIu64 ", \"next_right\": %" PRIu64 "}\n",
           l->target[WORDS].sum, l->target[NEXT].sum, l->target[WORDS].count,
           l->target[WORDS].right, l->target[NEXT].right);
}

static void take_step(const struct gradients_request *r, uint64_t step)
{
    const struct optimizer o = {OPTIMIZER_ADAMW, 0.9, 0.999, 1e-8, 0.01, 1, true};
    const struct optimizer_step at = {step, 1e-3, r->engine->threads};
    struct error e = {0};
    double norm;
    must(optimizer_step(&o, r->state, &at, &norm, &e), &e);
    must(engine_repack(r->engine, &e), &e);
    must(train_state_clear(r->state, r->engine->threads, &e), &e);
}

static void run(int argc, char **argv, struct gradients_request r, struct read_batch *b)
{
    struct gradients_workspace *w = gradients_workspace_new(r.engine);
    const uint32_t parts = number(argc, argv, "parts", "1"),
                   steps = number(argc, argv, "steps", "0");
    for (uint32_t k = 0; k < (steps ? steps : 1); k++) {
        const struct batch_loss loss = compute(r, b, parts, w);
        print_loss(&loss);
        if (steps)
            take_step(&r, k + 1);
    }
    save(argv[3], r.engine, r.state, steps ? r.state->value : r.state->gradient);
    gradients_workspace_destroy(w);
}

static enum recompute recompute(const char *name)
{
    return !strcmp(name, "layer")       ? RECOMPUTE_LAYER
           : !strcmp(name, "attention") ? RECOMPUTE_ATTENTION
                                        : RECOMPUTE_NONE;
}

int main(int argc, char **argv)
{
    struct error e = {0};
    if (argc < 4)
        return 2;
    struct read_batch b = read_batch(argv[2]);
    set_head(argc, argv, &b);
    struct engine *g = load(argc, argv, &b.batch);
    struct gradients_request r = {
        .engine = g,
        .seed = strtoull(option(argc, argv, "seed", "1"), NULL, 10),
        .hidden_dropout = atof(option(argc, argv, "hidden", "0")),
        .attention_dropout = atof(option(argc, argv, "attention", "0")),
        .head_dropout = atof(option(argc, argv, "head_dropout", "0")),
        .recompute = recompute(option(argc, argv, "recompute", "none"))};
    for (uint32_t k = 0; k < b.batch.targets; k++) {
        const uint32_t count =
            train_target_count(&b.batch, &b.batch.target[k], 0, b.batch.sequences);
        r.weight[k] = count ? 1.0 / count : 0;
    }
    must(train_state_new(g, &r.state, &e), &e);
    must(engine_repack(g, &e), &e);
    run(argc, argv, r, &b);
    train_state_destroy(r.state);
    engine_destroy(g);
    free_batch(&b);
    return 0;
}
