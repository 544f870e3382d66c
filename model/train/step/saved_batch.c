/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/saved_batch.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { NO_LABEL = -100 }; /* torch's ignore_index */

/* The first target other than masked words: a task's, or pre-training's pairs; null if there is none. */
static const struct train_target *labelled(const struct train_batch *b)
{
    for (uint32_t k = 0; k < b->targets; k++)
        if (b->target[k].head != TARGET_WORDS)
            return &b->target[k];
    return NULL;
}

/* ---- sequences ---- */

static void fill_sequence(struct saved_batch *s, const struct train_batch *b, uint32_t k,
                          uint32_t pad)
{
    const struct sequence *from = &b->list[k];
    int64_t *ids = s->ids + (uint64_t)k * s->longest,
            *types = s->types + (uint64_t)k * s->longest;
    for (uint32_t i = 0; i < s->longest; i++) {
        ids[i] = i < from->count ? from->token_ids[i] : pad;
        types[i] = i < from->count && i >= from->first_part;
    }
    s->lengths[k] = from->count;
    s->samples[k] = b->sample[k];
}

static void fill_sequences(struct saved_batch *s, const struct train_batch *b, uint32_t pad)
{
    for (uint32_t k = 0; k < b->sequences; k++)
        s->longest = b->list[k].count > s->longest ? b->list[k].count : s->longest;
    const size_t all = (size_t)b->sequences * s->longest;
    s->ids = memory_new(all, sizeof *s->ids);
    s->types = memory_new(all, sizeof *s->types);
    s->lengths = memory_new(b->sequences, sizeof *s->lengths);
    s->samples = memory_new(b->sequences, sizeof *s->samples);
    for (uint32_t k = 0; k < b->sequences; k++)
        fill_sequence(s, b, k, pad);
}

/* ---- masked words ---- */

/* Converts rows of the batch to positions in their sequences. */
static void fill_words(struct saved_batch *c, const struct train_batch *b,
                       const struct train_target *words)
{
    uint32_t s = 0;
    c->offsets = memory_new(b->sequences + UINT64_C(1), sizeof *c->offsets);
    c->positions = memory_new(words->count, sizeof *c->positions);
    c->words = memory_new(words->count, sizeof *c->words);
    for (uint32_t k = 0; k < words->count; k++) {
        while (words->row[k] >= (uint32_t)b->offsets[s + 1])
            c->offsets[++s] = k;
        c->positions[k] = (int64_t)words->row[k] - b->offsets[s];
        c->words[k] = words->label[k];
    }
    while (s < b->sequences)
        c->offsets[++s] = words->count;
}

/* ---- labels ---- */

static void fill_numbers(struct saved_batch *s, const struct train_target *t)
{
    s->values = memory_copy(t->value, t->count * sizeof *t->value);
}

static void fill_classes(struct saved_batch *s, const struct train_target *t)
{
    s->labels = memory_new(t->count, sizeof *s->labels);
    for (uint32_t k = 0; k < t->count; k++)
        s->labels[k] = t->label[k];
}

/* Stores the index of the right row of each group. */
static void fill_choices(struct saved_batch *s, const struct train_batch *b,
                         const struct train_target *t)
{
    const uint32_t group = train_batch_group(b);
    s->labels = memory_new(t->count / group, sizeof *s->labels);
    for (uint32_t k = 0; k < t->count; k++)
        if (t->label[k])
            s->labels[k / group] = k % group;
}

/* Copies the labels of each row to [B,N]. */
static void fill_rows(struct saved_batch *s, const struct train_batch *b,
                      const struct train_target *t)
{
    const size_t all = (size_t)b->sequences * s->longest;
    s->labels = memory_new(all, sizeof *s->labels);
    for (size_t k = 0; k < all; k++)
        s->labels[k] = NO_LABEL;
    for (uint32_t k = 0, i = 0; k < t->count; k++) {
        while (t->row[k] >= (uint32_t)b->offsets[i + 1])
            i++;
        s->labels[(size_t)i * s->longest + t->row[k] - (uint32_t)b->offsets[i]] = t->label[k];
    }
}

static void fill_spans(struct saved_batch *s, const struct train_batch *b,
                       const struct train_target *t)
{
    s->labels = memory_new(b->sequences, sizeof *s->labels);
    s->ends = memory_new(b->sequences, sizeof *s->ends);
    for (uint32_t k = 0, i = 0; k < t->count; k++) {
        while (t->row[k] >= (uint32_t)b->offsets[i + 1])
            i++;
        const int64_t at = (int64_t)t->row[k] - b->offsets[i];
        s->labels[i] = t->label[k] & 1 ? at : s->labels[i];
        s->ends[i] = t->label[k] & 2 ? at : s->ends[i];
    }
}

static void fill_labels(struct saved_batch *s, const struct train_batch *b,
                        const struct train_target *t)
{
    if (t->loss == LOSS_SQUARE)
        fill_numbers(s, t);
    else if (t->loss == LOSS_CHOICE)
        fill_choices(s, b, t);
    else if (t->loss == LOSS_SPAN)
        fill_spans(s, b, t);
    else if (t->head == TARGET_ROWS)
        fill_rows(s, b, t);
    else
        fill_classes(s, t);
}

struct saved_batch saved_batch_new(const struct train_batch *b, uint32_t pad)
{
    struct saved_batch s = {0};
    const struct train_target *words = train_batch_target(b, TARGET_WORDS), *t = labelled(b);
    fill_sequences(&s, b, pad);
    if (words)
        fill_words(&s, b, words);
    if (t)
        fill_labels(&s, b, t);
    return s;
}

/* ---- tensors ---- */

static void add_words(const struct saved_batch *s, const struct train_batch *b,
                      const struct train_target *words, struct safetensors *to)
{
    const uint64_t more = b->sequences + UINT64_C(1), masked = words->count;
    safetensors_add(to, "batch.masked_positions", "I64", 1, &masked, s->positions);
    safetensors_add(to, "batch.masked_labels", "I64", 1, &masked, s->words);
    safetensors_add(to, "batch.masked_offsets", "I64", 1, &more, s->offsets);
}

static void add_labels(const struct saved_batch *s, const struct train_batch *b,
                       const struct train_target *t, struct safetensors *to)
{
    const uint64_t table[] = {b->sequences, s->longest}, count = t->count,
                   samples = b->sequences / train_batch_group(b);
    if (t->loss == LOSS_SPAN) {
        safetensors_add(to, "batch.start_positions", "I64", 1, table, s->labels);
        safetensors_add(to, "batch.end_positions", "I64", 1, table, s->ends);
    } else if (t->loss == LOSS_SQUARE) {
        safetensors_add(to, "batch.labels", "F32", 1, &count, s->values);
    } else if (t->loss == LOSS_CHOICE) {
        safetensors_add(to, "batch.labels", "I64", 1, &samples, s->labels);
    } else if (t->head == TARGET_ROWS) {
        safetensors_add(to, "batch.labels", "I64", 2, table, s->labels);
    } else {
        const bool next = t->head == TARGET_NEXT;
        safetensors_add(to, next ? "batch.nsp_labels" : "batch.labels", "I64", 1, &count,
                        s->labels);
    }
}

void saved_batch_add(const struct saved_batch *s, const struct train_batch *b,
                     struct safetensors *to)
{
    const uint64_t table[] = {b->sequences, s->longest};
    const struct train_target *words = train_batch_target(b, TARGET_WORDS), *t = labelled(b);
    safetensors_add(to, "batch.input_ids", "I64", 2, table, s->ids);
    safetensors_add(to, "batch.token_type_ids", "I64", 2, table, s->types);
    safetensors_add(to, "batch.lengths", "I64", 1, table, s->lengths);
    safetensors_add(to, "batch.samples", "I64", 1, table, s->samples);
    if (words)
        add_words(s, b, words, to);
    if (t)
        add_labels(s, b, t, to);
}

void saved_batch_finish(struct saved_batch *s)
{
    int64_t *all[] = {s->ids,       s->types, s->lengths, s->samples, s->offsets,
                      s->positions, s->words, s->labels,  s->ends};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
    free(s->values);
}
