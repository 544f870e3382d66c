/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ranks/random_objective.h"
#include "masks/base/memory.h"
#include "tests/model/random/random_bert.h"
#include <stdlib.h>

enum { MOST = 64, DATA = 40, LONGEST = 24, WORST = MOST * LONGEST };

struct random_batch {
    struct objective_batch base;
    struct sequence list[MOST];
    int32_t offsets[MOST + 1];
    uint32_t sample[MOST], token[WORST], row[WORST], label[WORST], first[MOST], next[MOST];
};

static struct objective_batch *new_batch(void)
{
    return memory_new(1, sizeof(struct random_batch));
}

static void destroy_batch(struct objective_batch *b)
{
    free(b);
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

uint32_t random_group = 1;
bool random_spoilt;

static void add_sequence(struct random_batch *b, uint32_t k, uint32_t sample)
{
    struct train_batch *t = &b->base.batch;
    uint64_t state = sample;
    const uint32_t count = 2 + draw(&state, LONGEST - 2);
    struct train_target *words = &t->target[0];
    b->list[k] = (struct sequence){b->token + t->tokens, count, (count + 1) / 2};
    b->first[k] = t->tokens;
    b->next[k] = draw(&state, 2);
    b->sample[k] = sample;
    for (uint32_t i = 0; i < count; i++) {
        b->token[t->tokens + i] = 1 + draw(&state, VOCABULARY - 1);
        if (draw(&state, 4) == 0) {
            b->row[words->count] = t->tokens + i;
            b->label[words->count++] = draw(&state, VOCABULARY);
        }
    }
    t->tokens += count;
    b->offsets[k + 1] = (int32_t)t->tokens;
}

static void make_batch(const struct objective_data *d, const struct batch_request *r,
                       struct objective_batch *ret)
{
    struct random_batch *b = (struct random_batch *)ret;
    const uint32_t sequences = r->count * random_group;
    ret->batch = (struct train_batch){.sequences = sequences,
                                      .group = random_group,
                                      .list = b->list,
                                      .offsets = b->offsets,
                                      .sample = b->sample,
                                      .targets = 2,
                                      .target = {{TARGET_WORDS, 0, b->row, b->label},
                                                 {TARGET_NEXT, sequences, b->first, b->next}}};
    for (uint32_t k = 0; k < sequences; k++)
        add_sequence(b, k,
                     (uint32_t)((r->first + k / random_group) % d->count) * random_group +
                         k % random_group);
    if (random_spoilt)
        b->token[ret->batch.tokens - 1] = VOCABULARY;
}

const struct objective random_objective = {.name = "random",
                                           .parts = PART_MLM | PART_POOLER | PART_NSP,
                                           .targets = 2,
                                           .weight = {1, 0.5},
                                           .batch_new = new_batch,
                                           .batch_destroy = destroy_batch,
                                           .batch = make_batch};
const struct objective_data random_data = {.natural = &random_objective, .count = DATA};
