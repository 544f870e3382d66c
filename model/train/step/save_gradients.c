/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/save_gradients.h"
#include "masks/base/memory.h"
#include "masks/safetensors.h"
#include "model/backend/mirror.h"
#include "model/base/whole_file.h"
#include <stdlib.h>

/* Numbers as torch wants them. */
struct columns {
    int64_t *ids, *types;                        /* [B, N] */
    int64_t *lengths, *offsets, *next, *samples; /* [B], [B + 1], [B] */
    int64_t *positions, *labels;                 /* [masked] */
    uint32_t longest;
};

static void fill_sequence(struct columns *c, const struct train_batch *b, uint32_t k,
                          uint32_t pad)
{
    const struct sequence *s = &b->list[k];
    int64_t *ids = c->ids + (uint64_t)k * c->longest,
            *types = c->types + (uint64_t)k * c->longest;
    for (uint32_t i = 0; i < c->longest; i++) {
        ids[i] = i < s->count ? s->token_ids[i] : pad;
        types[i] = i < s->count && i >= s->first_part;
    }
    c->lengths[k] = s->count;
    c->samples[k] = b->sample[k];
    const struct train_target *next = train_batch_target(b, TARGET_NEXT);
    c->next[k] = next ? next->label[k] : 0;
}

/* Rows of the batch to positions of their sequences. */
static void fill_masked(struct columns *c, const struct train_batch *b)
{
    const struct train_target *words = train_batch_target(b, TARGET_WORDS);
    uint32_t s = 0;
    for (uint32_t k = 0; k < words->count; k++) {
        while (words->row[k] >= (uint32_t)b->offsets[s + 1])
            c->offsets[++s] = k;
        c->positions[k] = (int64_t)words->row[k] - b->offsets[s];
        c->labels[k] = words->label[k];
    }
    while (s < b->sequences)
        c->offsets[++s] = words->count;
}

static struct columns make_columns(const struct train_batch *b, uint32_t pad)
{
    const uint32_t masked = train_batch_target(b, TARGET_WORDS)->count;
    struct columns c = {.lengths = memory_new(b->sequences, sizeof(int64_t)),
                        .offsets = memory_new(b->sequences + UINT64_C(1), sizeof(int64_t)),
                        .next = memory_new(b->sequences, sizeof(int64_t)),
                        .samples = memory_new(b->sequences, sizeof(int64_t)),
                        .positions = memory_new(masked, sizeof(int64_t)),
                        .labels = memory_new(masked, sizeof(int64_t))};
    for (uint32_t k = 0; k < b->sequences; k++)
        c.longest = b->list[k].count > c.longest ? b->list[k].count : c.longest;
    const size_t all = (size_t)b->sequences * c.longest;
    c.ids = memory_new(all, sizeof(int64_t));
    c.types = memory_new(all, sizeof(int64_t));
    for (uint32_t k = 0; k < b->sequences; k++)
        fill_sequence(&c, b, k, pad);
    fill_masked(&c, b);
    return c;
}

static void free_columns(struct columns *c)
{
    int64_t *all[] = {c->ids,  c->types,   c->lengths,   c->offsets,
                      c->next, c->samples, c->positions, c->labels};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
}

static void add_batch(struct safetensors *out, const struct columns *c,
                      const struct train_batch *b)
{
    const uint64_t table[] = {b->sequences, c->longest}, more = b->sequences + UINT64_C(1),
                   masked = train_batch_target(b, TARGET_WORDS)->count;
    safetensors_add(out, "batch.input_ids", "I64", 2, table, c->ids);
    safetensors_add(out, "batch.token_type_ids", "I64", 2, table, c->types);
    safetensors_add(out, "batch.lengths", "I64", 1, table, c->lengths);
    safetensors_add(out, "batch.samples", "I64", 1, table,
                    c->samples); /* dropout depends on them */
    safetensors_add(out, "batch.masked_positions", "I64", 1, &masked, c->positions);
    safetensors_add(out, "batch.masked_labels", "I64", 1, &masked, c->labels);
    safetensors_add(out, "batch.masked_offsets", "I64", 1, &more, c->offsets);
    if (train_batch_target(b, TARGET_NEXT))
        safetensors_add(out, "batch.nsp_labels", "I64", 1, table, c->next);
}

/* gradient: the state's, on the host */
static void add_gradients(struct safetensors *out, const struct trainer *t,
                          const float *gradient)
{
    const struct train_state *s = t->state;
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct parameter *p = s->piece[k].parameter;
        char name[PARAMETER_NAME_BYTES];
        parameter_file_name(p, &t->engine->config, name);
        safetensors_add(out, name, "F32", p->rank, p->shape, gradient + s->piece[k].first);
    }
}

/* The gradient of alpha, the alpha that it was taken at, and the noise of each unit. */
static void add_alpha(struct safetensors *out, const struct learner *l)
{
    uint64_t alpha[4], unit[4];
    const uint32_t rank = alpha_dimensions(&l->shape, alpha),
                   unit_rank = alpha_unit_dimensions(&l->shape, unit);
    safetensors_add(out, "alpha", "F32", rank, alpha, l->alpha_gradient.host);
    safetensors_add(out, "batch.alpha", "F32", rank, alpha, l->before);
    if (l->options.kind != LEARN_P)
        safetensors_add(out, "batch.noise", "F32", unit_rank, unit, l->noise);
}

int gradients_save(const char *path, const struct trainer *t, const struct step_result *r,
                   struct error *e)
{
    const struct train_state *s = t->state;
    struct safetensors out = {0};
    struct whole_file file;
    float *own;
    const float *gradient = array_view(&s->device, s->gradient, s->gradient, s->count, &own, e);
    if (!gradient)
        return -1;
    struct columns c = make_columns(&t->batch->batch, t->engine->config.pad);
    add_gradients(&out, t, gradient);
    add_batch(&out, &c, &t->batch->batch);
    if (t->learner)
        add_alpha(&out, t->learner);
    safetensors_add(&out, "loss", "F64", 0, NULL, &r->loss);
    whole_file_begin(&file, path);
    safetensors_stream(&out, whole_file_write, &file);
    int ret = whole_file_end(&file, e);
    safetensors_finish(&out);
    free_columns(&c);
    free(own);
    return ret;
}
