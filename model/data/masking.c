/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/masking.h"
#include "masks/base/memory.h"
#include "model/base/order.h"
#include <math.h>
#include <stdlib.h>

void masking_finish(struct masking_memory *m)
{
    free(m->candidate);
    free(m->chosen);
    *m = (struct masking_memory){0};
}

static void reserve(struct masking_memory *m, uint32_t count)
{
    if (count <= m->capacity)
        return;
    m->capacity = count;
    m->candidate = memory_resize(m->candidate, count, sizeof *m->candidate);
    m->chosen = memory_resize(m->chosen, count, sizeof *m->chosen);
}

static bool follows(const struct masking *m, uint32_t token)
{
    return m->follows[token / 8] >> token % 8 & 1;
}

static bool is_candidate(const struct masking *m, uint32_t token)
{
    return token != m->begin && token != m->end;
}

/* The places where a word begins, or, without whole words, every place. */
static uint32_t list_candidates(const struct masking *m, const struct masking_target *t,
                                uint32_t *ret)
{
    uint32_t n = 0;
    bool open = false; /* the place before is a candidate's */
    for (uint32_t k = 0; k < t->count; k++) {
        bool is = is_candidate(m, t->token[k]);
        if (is && !(m->whole_words && open && follows(m, t->token[k])))
            ret[n++] = k;
        open = is;
    }
    return n;
}

static uint32_t word_size(const struct masking *m, const struct masking_target *t, uint32_t at)
{
    uint32_t end = at + 1;
    while (m->whole_words && end < t->count && is_candidate(m, t->token[end]) &&
           follows(m, t->token[end]))
        end++;
    return end - at;
}

static uint32_t wanted(const struct masking *m, uint32_t count)
{
    double n = rint(m->probability * count); /* halves to even, as Python's round */
    return n < 1 ? 1 : (uint32_t)n;
}

/* Draws candidates without return until there are enough places; the places go to chosen[]. */
static uint32_t choose(const struct masking *m, const struct masking_target *t,
                       struct masking_memory *memory, struct draws *d)
{
    uint32_t left = list_candidates(m, t, memory->candidate), n = 0;
    uint32_t want = wanted(m, t->count);
    while (left && n < want) {
        uint32_t k = draws_below(d, left), at = memory->candidate[k];
        memory->candidate[k] = memory->candidate[--left];
        uint32_t size = word_size(m, t, at);
        for (uint32_t j = 0; j < size && n + size - j <= want; j++)
            memory->chosen[n++] = at + j;
    }
    return n;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t replacement(const struct masking *m, uint32_t token, struct draws *d)
{
    if (draw_share(d) < 0.8)
        return m->mask;
    return draw_share(d) < 0.5 ? token : draws_below(d, m->vocabulary);
}

uint32_t masking_apply(const struct masking *m, struct masking_key key,
                       struct masking_memory *memory, struct masking_target t)
{
    struct draws d = data_draws(key.seed, STREAM_MASKING, key.sample, key.epoch);
    reserve(memory, t.count);
    uint32_t n = choose(m, &t, memory, &d);
    qsort(memory->chosen, n, sizeof *memory->chosen, ascending);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = memory->chosen[k];
        t.place[k] = at;
        t.label[k] = t.token[at];
        t.token[at] = replacement(m, t.token[at], &d);
    }
    return n;
}
