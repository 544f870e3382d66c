/* SPDX-License-Identifier: Apache-2.0 */
/* Loss and gradients of one batch, for gradient_oracle.py: gradients_dump FOLDER BATCH OUT.safetensors OPTION=VALUE...
   BATCH is text, a sequence a line: its sample, next sentence's label (-1: none), tokens of the first part, number of
   tokens, token ids, number of masked tokens, and a position and label for each. Prints the loss as JSON. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/safetensors.h"
#include "model/backend/mirror.h"
#include "model/gradients/gradients.h"
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
    void *all[] = {r->batch.list, r->batch.offsets, r->batch.sample,
                   r->masked_row, r->masked_label,  r->first,
                   r->next,       r->offsets,       r->rows};
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

static struct engine *load(int argc, char **argv, bool pairs)
{
    struct error e = {0};
    struct engine_options o = {.mask = option(argc, argv, "mask", NULL),
                               .transform = option(argc, argv, "transform", NULL),
                               .dtype = strcmp(option(argc, argv, "dtype", "f32"), "bf16")
                                            ? ELEMENT_F32
                                            : ELEMENT_BF16,
                               .threads = (uint32_t)atoi(option(argc, argv, "threads", "2")),
                               .parts = PART_MLM | (pairs ? PART_POOLER | PART_NSP : 0),
                               .trains = true,
                               .dropout = atof(option(argc, argv, "attention", "0")) > 0};
    struct engine *g = engine_load(argv[1], &o, &e);
    must(g ? 0 : -1, &e);
    return g;
}

static void save(const char *path, const struct engine *g, const struct train_state *s)
{
    struct safetensors out = {0};
    struct error e = {0};
    uint64_t size;
    float *own;
    const float *gradient =
        array_view(&s->device, s->gradient, s->gradient, s->count, &own, &e);
    must(gradient ? 0 : -1, &e);
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct parameter *p = s->piece[k].parameter;
        char name[PARAMETER_NAME_BYTES];
        parameter_file_name(p, &g->config, name);
        safetensors_add(&out, name, "F32", p->rank, p->shape, gradient + s->piece[k].first);
    }
    uint8_t *bytes = safetensors_write(&out, &size);
    must(file_write(path, bytes, size, &e), &e);
    free(bytes);
    free(own);
    safetensors_finish(&out);
}

static void run(int argc, char **argv, struct gradients_request r, struct read_batch *b)
{
    struct gradients_workspace *w = gradients_workspace_new(r.engine);
    struct batch_loss loss = {0};
    struct error e = {0};
    const uint32_t parts = (uint32_t)atoi(option(argc, argv, "parts", "1")),
                   all = b->batch.sequences;
    for (uint32_t k = 0; k < parts; k++) {
        struct train_batch part;
        const uint32_t first = all * k / parts, end = all * (k + 1) / parts;
        train_batch_slice(&b->batch, first, end - first, &part, b->offsets, b->rows);
        r.batch = &part;
        must(gradients_compute(&r, w, &loss, &e), &e);
    }
    printf("{\"mlm\": %.17g, \"next\": %.17g, \"masked\": %" PRIu64
           ", \"masked_right\": %" PRIu64 ", \"next_right\": %" PRIu64 "}\n",
           loss.target[WORDS].sum, loss.target[NEXT].sum, loss.target[WORDS].count,
           loss.target[WORDS].right, loss.target[NEXT].right);
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
    struct engine *g = load(argc, argv, b.pairs);
    struct gradients_request r = {
        .engine = g,
        .seed = strtoull(option(argc, argv, "seed", "1"), NULL, 10),
        .hidden_dropout = atof(option(argc, argv, "hidden", "0")),
        .attention_dropout = atof(option(argc, argv, "attention", "0")),
        .weight = {b.masked ? 1.0 / b.masked : 0, 1.0 / b.batch.sequences},
        .recompute = recompute(option(argc, argv, "recompute", "none"))};
    must(train_state_new(g, &r.state, &e), &e);

    must(engine_repack(g, &e), &e);
    run(argc, argv, r, &b);
    save(argv[3], g, r.state);
    train_state_destroy(r.state);
    engine_destroy(g);
    free_batch(&b);
    return 0;
}
