/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the inputs of a pass, besides parameters, into the stage: tokens, places, targets, and which rows' gradients each embedding sums. */
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/backend/gpu/train/train.h"
#include <stdlib.h>
#include <string.h>

enum { WORDS_OF_LINE = 64 }; /* lists begin at multiples of 256 bytes */

uint32_t stage_add(struct stage *s, const void *words, uint64_t count)
{
    const uint32_t at = s->count, end = at + (uint32_t)count;
    const uint32_t padded = (end + WORDS_OF_LINE - 1) / WORDS_OF_LINE * WORDS_OF_LINE;
    memset(s->word + at, 0, (padded - at) * sizeof *s->word);
    if (count)
        memcpy(s->word + at, words, count * sizeof *s->word);
    s->count = padded;
    return at;
}

/* ---- rows by their target ---- */

/* target[r] of each row, or SKIPPED. */
static const uint32_t SKIPPED = UINT32_MAX;

/* Rows by target, those of one in their order: first[t] .. first[t + 1] of the list are of target t. capacity: of the list. */
static uint32_t *sort_rows(const uint32_t *target, uint32_t rows, uint32_t capacity,
                           uint32_t n_targets, uint32_t *first)
{
    uint32_t *from = memory_new(capacity ? capacity : 1, sizeof *from), *at = first + 1;
    for (uint32_t r = 0; r < rows; r++)
        if (target[r] != SKIPPED)
            first[target[r] + 2]++;
    for (uint32_t t = 0; t < n_targets; t++)
        first[t + 2] += first[t + 1];
    for (uint32_t r = 0; r < rows; r++)
        if (target[r] != SKIPPED)
            from[at[target[r]]++] = r;
    return from;
}

struct cuts {
    uint32_t *begin, *begin_of_target, *target;
    uint32_t pieces, targets, most_pieces, most_targets;
};

static void cut(const uint32_t *first, uint32_t n_targets, struct cuts *c)
{
    for (uint32_t t = 0; t < n_targets; t++) {
        if (first[t] == first[t + 1])
            continue;
        c->target[c->targets] = t;
        c->begin_of_target[c->targets++] = c->pieces;
        for (uint32_t at = first[t]; at < first[t + 1]; at += SEGMENT_ROWS)
            c->begin[c->pieces++] = at;
    }
    for (uint32_t k = c->pieces; k <= c->most_pieces; k++)
        c->begin[k] = first[n_targets];
    c->begin_of_target[c->targets] = c->pieces;
    for (uint32_t k = c->targets; k < c->most_targets; k++)
        c->target[k] = TRAIN_NOWHERE;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Pieces and targets that `rows` rows have at most. */
static struct segments most_segments(uint32_t rows, uint32_t n_targets)
{
    const uint32_t most = smaller(rows, n_targets);
    return (struct segments){smaller(rows, most + rows / SEGMENT_ROWS), most, 0, 0, 0, 0};
}

/* padded: the batch's rows with the added ones, which have no target. */
static struct segments stage_segments(struct op_batch *p, const uint32_t *target,
                                      uint32_t n_targets)
{
    const uint32_t rows = p->request->batch->tokens, padded = p->sizes.tokens;
    struct segments ret = most_segments(padded, n_targets);
    uint32_t *first = memory_new(n_targets + (size_t)2, sizeof *first),
             *from = sort_rows(target, rows, padded, n_targets, first);
    struct cuts c = {memory_new(ret.pieces + (size_t)1, sizeof *first),
                     memory_new(ret.targets + (size_t)1, sizeof *first),
                     memory_new(ret.targets + (size_t)1, sizeof *first),
                     0,
                     0,
                     ret.pieces,
                     ret.targets};
    cut(first, n_targets, &c);
    ret.from = stage_add(p->stage, from, padded);
    ret.begin = stage_add(p->stage, c.begin, ret.pieces + UINT64_C(1));
    ret.begin_of_target = stage_add(p->stage, c.begin_of_target, ret.targets + UINT64_C(1));
    ret.target = stage_add(p->stage, c.target, ret.targets);
    uint32_t *all[] = {first, from, c.begin, c.begin_of_target, c.target};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
    return ret;
}

/* ---- the batch ---- */

/* The padding token's row learns nothing from where the token stands, as in transformers (padding_idx). Nor does the
   padding's row of the positions. */
static void stage_embeddings(struct op_batch *p, const uint32_t *number,
                             const uint32_t *position, const uint32_t *type)
{
    const struct model_config *m = &p->g->config;
    const uint32_t rows = p->request->batch->tokens;
    uint32_t *target = memory_new(rows, sizeof *target);
    for (uint32_t r = 0; r < rows; r++)
        target[r] = number[r] == m->pad ? SKIPPED : number[r];
    p->inputs.words = stage_segments(p, target, m->vocabulary);
    for (uint32_t r = 0; r < rows; r++)
        target[r] = position[r] >= m->first_position ? position[r] : SKIPPED;
    if (p->c->embeddings.positions)
        p->inputs.positions = stage_segments(p, target, m->positions + m->first_position);
    if (p->c->embeddings.types)
        p->inputs.types = stage_segments(p, type, m->types);
    free(target);
}

/* A list of a target's rows; the added ones are `rest`. */
static uint32_t stage_rows(struct stage *s, const struct train_target *t, const uint32_t *list,
                           uint32_t rest)
{
    const uint32_t rows = gpu_train_target_rows(t);
    uint32_t *own = memory_new(rows ? rows : 1, sizeof *own);
    for (uint32_t i = 0; i < rows; i++)
        own[i] = i < t->count ? list[i] : rest;
    const uint32_t ret = stage_add(s, own, rows);
    free(own);
    return ret;
}

/* place: [T][2] */
static uint32_t stage_places(struct stage *s, const struct train_target *t,
                             const uint32_t *place)
{
    const uint32_t rows = gpu_train_target_rows(t);
    uint32_t *own = memory_new(2 * (size_t)rows + 1, sizeof *own);
    for (uint32_t i = 0; i < t->count; i++)
        memcpy(own + 2 * (size_t)i, place + 2 * (uint64_t)t->row[i], 2 * sizeof *own);
    const uint32_t ret = stage_add(s, own, 2 * (uint64_t)rows);
    free(own);
    return ret;
}

static void stage_target(struct op_batch *p, uint32_t k, const uint32_t *place)
{
    const struct train_target *t = &p->request->batch->target[k];
    const float weight = (float)p->request->weight[k];
    struct staged_target *to = &p->inputs.target[k];
    to->row = stage_rows(p->stage, t, t->row, 0);
    to->to = stage_rows(p->stage, t, t->row, TRAIN_NOWHERE);
    if (t->head == TARGET_WORDS) {
        to->label = stage_rows(p->stage, t, t->label, TRAIN_NOWHERE);
        to->weight = stage_add(p->stage, &weight, 1);
    } else {
        to->place = stage_places(p->stage, t, place);
    }
}

static void stage_sequences(struct op_batch *p)
{
    const struct train_batch *b = p->request->batch;
    const uint64_t count = p->sizes.sequences;
    int32_t *offsets = memory_new(count + 1, sizeof *offsets);
    uint32_t *sample = memory_new(count, sizeof *sample);
    gpu_train_padded_offsets(&p->sizes, b, offsets);
    memcpy(sample, b->sample, b->sequences * sizeof *sample);
    p->inputs.offsets = stage_add(p->stage, offsets, count + 1);
    p->inputs.sample = stage_add(p->stage, sample, count);
    free(offsets);
    free(sample);
}

/* Targets come last: the places of all other lists depend only on the sizes of batch_key. Added rows have the first token of the
   vocabulary. */
static void stage_tokens(struct op_batch *p)
{
    const struct train_batch *b = p->request->batch;
    const struct model_config *m = &p->g->config;
    const uint64_t rows = p->sizes.tokens;
    uint32_t *all = memory_new(5 * rows, sizeof *all), *number = all, *position = all + rows,
             *type = all + 2 * rows, *place = all + 3 * rows;
    for (uint32_t s = 0, row = 0; s < b->sequences; s++)
        for (uint32_t i = 0, counted = 0; i < b->list[s].count; i++, row++) {
            number[row] = b->list[s].token_ids[i];
            position[row] = arch_position(m, number[row], &counted);
            type[row] = !m->one_type && i >= b->list[s].first_part;
            place[2 * (uint64_t)row] = b->sample[s];
            place[2 * (uint64_t)row + 1] = i;
        }
    struct stage *s = p->stage;
    p->inputs.number = stage_add(s, number, rows);
    p->inputs.position = stage_add(s, position, rows);
    p->inputs.type = stage_add(s, type, rows);
    p->inputs.place = stage_add(s, place, 2 * rows);
    stage_sequences(p);
    if (!p->request->loss_only)
        stage_embeddings(p, number, position, type);
    for (uint32_t k = 0; k < b->targets; k++)
        stage_target(p, k, place);
    free(all);
}

static uint64_t in_lines(uint64_t words)
{
    return (words + WORDS_OF_LINE - 1) / WORDS_OF_LINE * WORDS_OF_LINE;
}

uint64_t gpu_train_stage_most(const struct gradients_sizes *s)
{
    const uint64_t rows = s->tokens, words = s->words, labels = s->labels,
                   segments = 2 * in_lines(rows) + 2 * in_lines(rows + 1),
                   of_words = 3 * in_lines(words) + in_lines(1),
                   of_labels = in_lines(2 * labels) + 2 * in_lines(labels);
    return 3 * in_lines(rows) + in_lines(2 * rows) + 3 * segments + of_words +
           (TARGETS_MOST - 1) * of_labels + in_lines(s->sequences + UINT64_C(1)) +
           in_lines(s->sequences);
}

void gpu_train_list(struct op_batch *p)
{
    p->stage->count = 0;
    stage_tokens(p);
}
