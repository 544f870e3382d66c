/* SPDX-License-Identifier: Apache-2.0 */
/* Where things lie: the caller's tensors, the packed operands of a head, a thread's scratch. */
#ifndef MASKC_CPU_LAYOUT_H
#define MASKC_CPU_LAYOUT_H
#include "cpu/half.h"
#include "cpu/matrix/unit.h"
#include "cpu/sequence.h"

enum {
    IS_F32 =
        (int)DTYPE == (int)ABI_F32, /* constants of two enums: gcc warns without the casts */
    IS_F16 = (int)DTYPE == (int)ABI_F16,
    IS_SOFTMAX = (int)TRANSFORM == (int)ABI_SOFTMAX,
    TILE = ABI_TILE_COLS,
    WIDTH = CPU_WIDTH(VECTOR_BYTES, HEAD_DIM), /* of a row of floats; the rest is zero */
    /* Rows of the caller's tensors serve as they are where they are floats that fill vectors. */
    ROWS_PACKED = !IS_F32 || WIDTH != HEAD_DIM,
    /* True if an item's score columns are all held at once. */
    BLOCKS_KEPT = !IS_SOFTMAX,
    ELEMENT_BYTES = IS_F32 ? 4 : 2,
    /* Strides of a block: see sizes.h. */
    SCORE_STRIDE = CPU_SCORE_STRIDE(CHUNK_COLS),
    KEEP_WORDS = CPU_KEEP_WORDS(CHUNK_COLS),
    /* A panel: PANEL_COLS columns of a transposed operand, and the next 32 once more, so that any
       32 neighbouring columns that begin in it lie in it. */
    PANEL_COLS = CPU_PANEL_COLS,
    PANEL_EXTRA = CPU_PANEL_EXTRA,
    GATHER_STRIDE = CPU_GATHER_STRIDE, /* of gathered columns, transposed */
    /* Matrix units: features come 32 at a time, as 16 pairs, zero beyond the head's. A panel is 16 columns wide, and
       column tiles begin at multiples of 16. */
    DEPTH = CPU_DEPTH(HEAD_DIM),
    MATRIX_COLS = 16,
    /* With a matrix unit column lists read bf16 rows, not floats, if these fill vectors. */
    LISTS_HALF = MATRIX && HEAD_DIM % LANES == 0,
    /* Even and odd features apart, if rows fill pairs of vectors: see row_load(). */
    LISTS_DEINTERLEAVED = LISTS_HALF && HEAD_DIM % (2 * LANES) == 0,
};

/* ---- the caller's tensors ---- */

INLINE i64 element_at(const struct sequence *s, const struct abi_tensor *t, u32 i)
{
    return s->batch * t->batch + (s->first + i) * t->row + (i64)head_in(s, t) * t->head;
}

INLINE float *lse_at(const struct sequence *s, u32 i)
{
    return s->a->lse + s->batch * s->a->lse_batch + (i64)s->h * s->a->lse_head + s->first + i;
}

/* Offset subtracted from a score: LSE in base 2, or tau. 0 for a row without active entries (-inf). */
INLINE float score_offset(float lse)
{
    if (lse == -INFINITY_F)
        return 0;
    return IS_SOFTMAX ? lse * LOG2_E : lse;
}

INLINE float *delta_at(const struct sequence *s, u32 i)
{
    return s->a->delta + ((u64)s->b * s->a->heads + s->h) * s->a->delta_rows + i;
}

/* Bytes of so many sequences of a tensor. */
INLINE u64 tensor_bytes(const struct abi_args *a, u32 sequences)
{
    return (u64)sequences * a->n * a->heads * (HEAD_DIM * ELEMENT_BYTES);
}

/* True where the tensors are too large to be in a core's cache already. */
INLINE int tensors_far(const struct sequence *s)
{
    enum { NEAR = 512 << 10 };
    return tensor_bytes(s->a, s->a->slice_batch) > NEAR;
}

/* True where an output is written past the caches: where it would not stay cached until it is read, writing past
   the caches saves fetching its old lines. */
INLINE int rows_streamed(const struct sequence *s, const struct abi_tensor *t)
{
    enum { STAYS = 2 << 20, LINE = 64 };
    return MATRIX && HEAD_DIM % (2 * LANES) == 0 && tensor_bytes(s->a, s->a->batch) > STAYS &&
           !(((u64)t->data | (u64)(t->batch | t->row | t->head) * ELEMENT_BYTES) % LINE);
}

/* True for the dK and dV of query heads that share a key head: key_heads.h still adds them up, so
   they stay floats. */
INLINE int holds_floats(const struct sequence *s, const struct abi_tensor *t)
{
#if GROUPED
    return t == &s->a->d_k || t == &s->a->d_v;
#else
    (void)s, (void)t;
    return 0;
#endif
}

/* Row i times `scale`, as WIDTH floats. */
INLINE void row_read(const struct sequence *s, const struct abi_tensor *t, u32 i, float scale,
                     float *restrict to)
{
    i64 at = element_at(s, t, i);
    if (IS_F32) {
        const float *from = (const float *)t->data + at;
        for (u32 d = 0; d < HEAD_DIM; d++)
            to[d] = from[d] * scale;
    } else if (IS_F16) {
        const u16 *from = (const u16 *)t->data + at;
        for (u32 d = 0; d < HEAD_DIM; d += HALF_GROUP)
            floats_of_f16(from + d, to + d);
        for (u32 d = 0; d < HEAD_DIM; d++)
            to[d] *= scale;
    } else {
        const u16 *from = (const u16 *)t->data + at;
        for (u32 d = 0; d < HEAD_DIM; d++)
            to[d] = float_of_bf16(from[d]) * scale;
    }
    for (u32 d = HEAD_DIM; d < WIDTH; d++)
        to[d] = 0;
}

INLINE void row_write(const struct sequence *s, const struct abi_tensor *t, u32 i, float scale,
                      const float *restrict from)
{
    i64 at = element_at(s, t, i);
    if (IS_F32 || holds_floats(s, t)) {
        float *to = (float *)t->data + at;
        for (u32 d = 0; d < HEAD_DIM; d++)
            to[d] = from[d] * scale;
    } else if (IS_F16) {
        u16 *to = (u16 *)t->data + at;
        float scaled[HEAD_DIM];
        for (u32 d = 0; d < HEAD_DIM; d++)
            scaled[d] = from[d] * scale;
        for (u32 d = 0; d < HEAD_DIM; d += HALF_GROUP)
            f16_of_floats(scaled + d, to + d);
    } else {
        u16 *to = (u16 *)t->data + at;
        u32 d = 0;
#if MATRIX
        const u32 streamed = rows_streamed(s, t) ? HEAD_DIM : 0;
        for (; d < streamed; d += 2 * LANES)
            half_stream2(to + d, load(from + d) * splat(scale),
                         load(from + d + LANES) * splat(scale));
        for (; d + LANES <= HEAD_DIM; d += LANES)
            half_store(to + d, load(from + d) * splat(scale));
#endif
        for (; d < HEAD_DIM; d++)
            to[d] = bf16_of_float(from[d] * scale);
    }
}

INLINE void row_clear(const struct sequence *s, const struct abi_tensor *t, u32 i)
{
    const u32 halves = holds_floats(s, t) ? 2 : ELEMENT_BYTES / 2;
    u16 *to = (u16 *)t->data + element_at(s, t, i) * halves;
    for (u32 d = 0; d < HEAD_DIM * halves; d++)
        to[d] = 0;
}

/* ---- packed operands ---- */

/* Operands are tensors whose rows are score columns: K and V in the forward plan, Q and dO in the transposed one. */
enum operand_kind { OPERAND_KEY, OPERAND_VALUE, OPERAND_QUERY, OPERAND_GRADIENT };
enum { OPERANDS = CPU_PACK_OPERANDS(BACKWARD), PANEL_OPERANDS = CPU_PACK_PANELS(BACKWARD) };
_Static_assert(PACK_ROW_BYTES >= CPU_PACK_ROW_BYTES(MATRIX, BACKWARD, HEAD_DIM, WIDTH, DEPTH),
               "pack space is what the emitter promised");
_Static_assert(2 * (PANEL_COLS + PANEL_EXTRA) <= 3 * PANEL_COLS, "a panel is 3/2 of its rows");

struct operand {
    const float *rows; /* row i at rows + i * stride; see LISTS_HALF */
    i64 stride;
    const float *panels; /* transposed; valid where the plan has tiles or ranges */
    const u32 *pairs;    /* matrix units: see pack_pairs(); valid there too */
    u32 padded;          /* length of the padded layout, to a multiple of 32 */
    int has_margin; /* 15 rows before the first and after the last may be read, whatever they hold */
};

static inline u32 padded_rows(const struct abi_args *a)
{
    return (a->n + TILE - 1) / TILE * TILE;
}

static inline u32 panel_stride(u32 padded, u32 panel)
{
    u32 left = padded - panel * PANEL_COLS;
    return (left < PANEL_COLS ? left : PANEL_COLS) + PANEL_EXTRA;
}

static inline u64 panel_floats(u32 padded)
{
    u64 panels = (padded + PANEL_COLS - 1) / PANEL_COLS;
    if (MATRIX)
        return (u64)(padded + MATRIX_COLS) * DEPTH / 2;
    return HEAD_DIM * (padded + panels * PANEL_EXTRA);
}

/* Where a panel begins. All panels before it are full. */
static inline u64 panel_first(u32 panel)
{
    return (u64)panel * HEAD_DIM * (PANEL_COLS + PANEL_EXTRA);
}

static inline float *pack_place(const struct sequence *s, u32 h)
{
    u64 head = (u64)(s->b - s->a->first_batch) * s->a->heads + h;
    return (float *)(void *)(s->a->pack + head * s->a->pack_stride);
}

static inline float *pack_of_head(const struct sequence *s)
{
    return pack_place(s, s->h);
}

/* K and V of query heads that share a key head are packed once, in the place of the first of them. */
static inline float *pack_of_operand(const struct sequence *s, enum operand_kind k)
{
#if GROUPED
    return pack_place(s, k < OPERAND_QUERY ? s->key_head * s->a->group : s->h);
#else
    (void)k;
    return pack_of_head(s);
#endif
}

static inline float *pack_panels(const struct sequence *s, enum operand_kind k)
{
    return pack_of_operand(s, k) + k * panel_floats(padded_rows(s->a));
}

static inline float *pack_rows(const struct sequence *s, enum operand_kind k)
{
    u32 padded = padded_rows(s->a);
    return pack_of_operand(s, k) + PANEL_OPERANDS * panel_floats(padded) +
           (u64)k * padded * WIDTH;
}

/* Matrix units: operand k with rows in pairs. Rows 2 i and 2 i + 1 share WIDTH words, the second row's element in the upper half. */
static inline u32 *pack_pairs(const struct sequence *s, enum operand_kind k)
{
    u32 padded = padded_rows(s->a);
    float *first = pack_of_operand(s, k) + PANEL_OPERANDS * panel_floats(padded) +
                   (u64)OPERANDS * padded * WIDTH;
    return (u32 *)(void *)first + (u64)k * (padded + MATRIX_COLS) / 2 * WIDTH;
}

static inline const struct abi_tensor *operand_tensor(const struct abi_args *a,
                                                      enum operand_kind k)
{
    const struct abi_tensor *tensor[] = {&a->k, &a->v, &a->q, &a->d_o};
    return tensor[k];
}

/* Rows of the plan that reads operand k as columns. */
INLINE u32 rows_beside(const struct sequence *s, enum operand_kind k)
{
#if RECTANGULAR
    return k < OPERAND_QUERY ? s->a->queries : s->a->keys;
#else
    (void)k;
    return s->a->n;
#endif
}

/* True where column lists read bf16 rows from a packed copy. In the caller's tensors a head's rows are about a page
   apart and fall on few cache sets, which is too slow where many rows visit each. */
INLINE int rows_copied(const struct sequence *s, enum operand_kind k)
{
    enum { MANY = 16 }; /* columns of a row; rows */
    const struct abi_plan *p = k < OPERAND_QUERY ? &s->a->forward : &s->a->transposed;
    return LISTS_HALF && tensors_far(s) && p->max_cols >= MANY && rows_beside(s, k) >= MANY &&
           !(p->uses & ABI_PACKED_KINDS);
}

static inline struct operand operand_of(const struct sequence *s, enum operand_kind k)
{
    const struct abi_tensor *t = operand_tensor(s->a, k);
    struct operand o = {.stride = WIDTH, .padded = padded_rows(s->a)};
    o.panels = pack_panels(s, k);
    if (MATRIX)
        o.pairs = pack_pairs(s, k);
    if (rows_copied(s, k)) {
        o.rows = pack_rows(s, k); /* after the panels; half the space */
        o.stride = HEAD_DIM / 2;
        o.has_margin = 1;
    } else if (LISTS_HALF) {
        o.rows = (const float *)(const void *)((const u16 *)t->data + element_at(s, t, 0));
        o.stride = t->row / 2;
    } else if (ROWS_PACKED) {
        o.rows = pack_rows(s, k);
    } else {
        o.rows = (const float *)t->data + element_at(s, t, 0);
        o.stride = t->row;
    }
    return o;
}

/* Feature 0 of column j. Feature d is d * *stride floats further. */
INLINE const float *panel_column(const struct operand *o, u32 j, u32 *stride)
{
    u32 panel = j / PANEL_COLS;
    *stride = panel_stride(o->padded, panel);
    return o->panels + panel_first(panel) + j % PANEL_COLS;
}

/* delta from sum(P dP) and sum(P). In f32 it divides by sum(P), which is not quite 1 as LSE is rounded. */
INLINE float delta_of(float sum, float p_sum)
{
    return IS_F32 && p_sum > 0 ? sum / p_sum : sum;
}

#endif
