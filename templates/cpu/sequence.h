/* SPDX-License-Identifier: Apache-2.0 */
/* One head of one sequence: how long it is, and where it stands in the caller's tensors. */
#ifndef MASKC_CPU_SEQUENCE_H
#define MASKC_CPU_SEQUENCE_H
#include "cpu/vector.h"

struct sequence {
    const struct abi_args *a;
    u32 b, h;
    u32 length; /* entries at or beyond it are inactive */
    u32 rows;   /* to be written */
    i64 first;  /* row of position 0 in the tensors */
    i64 batch;  /* b, or 0 where sequences stand end to end */
#if BIAS
    float *part; /* the item's sums of dX along diagonals, or null: see bias.h */
#endif
#if GROUPED
    u32 key_head; /* of K and V */
#endif
#if RECTANGULAR
    u32 column_length; /* as `length`, of the other side: in the forward plan keys */
#else
#define column_length length
#endif
};

enum side { ROWS_ARE_QUERIES, ROWS_ARE_KEYS };

static inline u32 clamp_length(i32 length, u32 limit)
{
    return length < 0 ? 0 : (u32)length < limit ? (u32)length : limit;
}

#if RECTANGULAR
/* Each side has rows and a length of its own. */
static inline void sequence_sides(struct sequence *s, enum side side)
{
    const struct abi_args *a = s->a;
    const u32 queries = a->length ? clamp_length(a->length[s->b], a->queries) : a->queries;
    const u32 keys = a->key_length ? clamp_length(a->key_length[s->b], a->keys) : a->keys;
    s->rows = side == ROWS_ARE_KEYS ? a->keys : a->queries;
    s->length = side == ROWS_ARE_KEYS ? keys : queries;
    s->column_length = side == ROWS_ARE_KEYS ? queries : keys;
}
#endif

static inline struct sequence sequence_at(const struct abi_args *a, u32 b, u32 h,
                                          enum side side)
{
    struct sequence s = {.a = a, .b = b, .h = h, .length = a->n, .rows = a->n, .batch = b};
#if GROUPED
    s.key_head = h / a->group;
#endif
#if RECTANGULAR
    sequence_sides(&s, side);
#else
    (void)side;
    if (a->offsets) {
        s.rows = s.length = clamp_length(a->offsets[b + 1] - a->offsets[b], a->n);
        s.first = a->offsets[b];
        s.batch = 0;
    } else if (a->length) {
        s.length = clamp_length(a->length[b], a->n);
    }
#endif
    return s;
}

/* Index of this head in tensor t: in K and V that of its key head. */
INLINE u32 head_in(const struct sequence *s, const struct abi_tensor *t)
{
#if GROUPED
    return t == &s->a->k || t == &s->a->v ? s->key_head : s->h;
#else
    (void)t;
    return s->h;
#endif
}

#endif
