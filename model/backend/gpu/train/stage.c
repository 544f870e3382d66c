/* SPDX-License-Identifier: Apache-2.0 */
/* Input of a pass besides parameters: tokens, places, targets, and the rows to sum for each embedding. */
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

/* Rows by target, those of one in their order: first[t] .. first[t + 1] of the list are of target t. */
static uint32_t *sort_rows(const uint32_t *target, uint32_t rows, uint32_t n_targets,
                           uint32_t *first)
{
    uint32_t *from = memory_new(rows ? rows : 1, sizeof *from), *at = first + 1;
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
    uint32_t pieces, targets;
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
    c->begin[c->pieces] = first[n_targets];
    c->begin_of_target[c->targets] = c->pieces;
}

/* No more pieces than rows. */
static struct segments stage_segments(struct stage *s, const uint32_t *target, uint32_t rows,
                                      uint32_t n_targets)
{
    uint32_t *first = memory_new(n_targets + (size_t)2, sizeof *first),
             *from = sort_rows(target, rows, n_targets, first);
    struct cuts c = {memory_new(rows + (size_t)1, sizeof *first),
                     memory_new(rows + (size_t)1, sizeof *first),
                     memory_new(rows + (size_t)1, sizeof *first), 0, 0};
    cut(first, n_targets, &c);
    const struct segments ret = {c.pieces,
                                 c.targets,
                                 stage_add(s, from, first[n_targets]),
                                 stage_add(s, c.begin, c.pieces + UINT64_C(1)),
                                 stage_add(s, c.begin_of_target, c.targets + UINT64_C(1)),
                                 stage_add(s, c.target, c.targets)};
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
    struct stage *s = p->stage;
    uint32_t *target = memory_new(rows, sizeof *target);
    for (uint32_t r = 0; r < rows; r++)
        target[r] = number[r] == m->pad ? SKIPPED : number[r];
    p->inputs.words = stage_segments(s, target, rows, m->vocabulary);
    for (uint32_t r = 0; r < rows; r++)
        target[r] = position[r] >= m->first_position ? position[r] : SKIPPED;
    if (p->c->embeddings.positions)
        p->inputs.positions = stage_segments(s, target, rows, m->positions + m->first_position);
    if (p->c->embeddings.types)
        p->inputs.types = stage_segments(s, type, rows, m->types);
    free(target);
}

/* place: [T][2] */
static void stage_target(struct op_batch *p, uint32_t k, const uint32_t *place)
{
    const struct train_target *t = &p->request->batch->target[k];
    struct stage *s = p->stage;
    uint32_t *own = memory_new(2 * (size_t)t->count, sizeof *own);
    for (uint32_t i = 0; i < t->count; i++)
        memcpy(own + 2 * (size_t)i, place + 2 * (uint64_t)t->row[i], 2 * sizeof *own);
    p->inputs.target[k].place = stage_add(s, own, 2 * (uint64_t)t->count);
    p->inputs.target[k].row = stage_add(s, t->row, t->count);
    if (t->label)
        p->inputs.target[k].label = stage_add(s, t->label, t->count);
    free(own);
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

/* Lists of rows and of sequences come first: their places depend only on the batch's size. Added rows have the first token of
   the vocabulary. */
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
    for (uint32_t k = 0; k < b->targets; k++)
        stage_target(p, k, place);
    if (!p->request->loss_only)
        stage_embeddings(p, number, position, type);
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
                   of_words = in_lines(2 * words) + 2 * in_lines(words),
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
