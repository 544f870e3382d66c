/* SPDX-License-Identifier: Apache-2.0 */
/* A row alone that sees one long range of columns, on a matrix unit: its products with packed
   operands, all columns at once. A tile of the row is the row sixteen times over, loaded from and
   stored to one place: the unit has time for that, and operands come in as strips take them. */
#ifndef MASKC_CPU_ROW_AMX_H
#define MASKC_CPU_ROW_AMX_H

#if AMX

enum {
    WIDE_LEAST = 128, /* columns; fewer are walked */
    WIDE_MOST = STRIP_ROWS * WEIGHT_STRIDE - 2 * TILE
};

struct wide_row {
    const struct sequence *s;
    u32 i; /* the row */
    u32 first,
        cols; /* columns that are worked on: from a multiple of 16, a multiple of 32 of them */
    u32 begin, end; /* of those, the ones that count */
    float gain;     /* |scale|, in base 2 */
    u16 sign;       /* that of the scale goes into the row */
    float *score, *slope;
    u16 *weight[2]; /* scores and slopes, rounded */
};

static int wide_alone(const struct sequence *s, const struct abi_plan *p,
                      const struct abi_item *item)
{
    const struct abi_piece *piece = &p->pieces[item->piece];
    return plain_softmax(s) && item->pieces == 1 && piece->kind == ABI_ROWS &&
           piece->count == 1 && item->cols >= WIDE_LEAST && item->cols <= WIDE_MOST &&
           p->uses & PRODUCTS && !item->resume[0] && !item->partial;
}

/* False where the row sees nothing. */
static int wide_open(struct wide_row *w, const struct sequence *s, const struct abi_plan *p,
                     const struct abi_item *item, u8 *scratch)
{
    const struct row_range at = row_range_of(s, p, item);
    struct block *b = (struct block *)(void *)(scratch + STRIP_BYTES);
    const float factor = s->a->scale * LOG2_E;
    w->s = s;
    w->i = item->row0;
    w->first = at.first / MATRIX_COLS * MATRIX_COLS;
    w->begin = at.first - w->first;
    w->end = w->begin + at.count;
    w->cols = (w->end + TILE - 1) / TILE * TILE;
    w->sign = factor < 0 ? 0x8000 : 0;
    w->gain = factor < 0 ? -factor : factor;
    w->score = b->score[0];
    w->slope = b->slope[0];
    w->weight[0] = b->weight[0][0];
    w->weight[1] = b->weight[BACKWARD][0];
    return w->i < s->length && at.count;
}

/* to[.. 16 x panels] = row x columns. */
INLINE void wide_panels(float *to, const u16 *row, const float *b, u32 panels)
{
    enum { PANEL = MATRIX_COLS * DEPTH / 2 };
    TILE_ZERO(0);
    TILE_ZERO(1);
    for (u32 d = 0; d < DEPTH; d += 32, b += 16 * MATRIX_COLS) {
        TILE_LOAD(4, row + d, 0);
        TILE_LOAD(6, b, 4 * MATRIX_COLS);
        TILE_LOAD(7, b + PANEL, 4 * MATRIX_COLS);
        TILE_PRODUCT(0, 4, 6);
        TILE_PRODUCT(1, 4, 7);
        if (panels < 4)
            continue;
        TILE_LOAD(6, b + 2 * PANEL, 4 * MATRIX_COLS);
        TILE_LOAD(7, b + 3 * PANEL, 4 * MATRIX_COLS);
        if (!d) {
            TILE_ZERO(2);
            TILE_ZERO(3);
        }
        TILE_PRODUCT(2, 4, 6);
        TILE_PRODUCT(3, 4, 7);
    }
    TILE_STORE(0, to, 0);
    TILE_STORE(1, to + MATRIX_COLS, 0);
    if (panels < 4)
        return;
    TILE_STORE(2, to + 2 * MATRIX_COLS, 0);
    TILE_STORE(3, to + 3 * MATRIX_COLS, 0);
}

/* Products of the row of a tensor with the operand's columns; `missing` for those that do not count. */
static void wide_products(const struct wide_row *w, const struct abi_tensor *t, u16 sign,
                          enum operand_kind k, float missing, float *to)
{
    u16 row[DEPTH] = {0};
    const u16 *from = (const u16 *)t->data + element_at(w->s, t, w->i);
    const float *panels = pack_panels(w->s, k) + (u64)w->first * (DEPTH / 2);
    for (u32 d = 0; d < HEAD_DIM; d++)
        row[d] = from[d] ^ sign;
    u32 c = 0;
    for (; c + 2 * TILE <= w->cols; c += 2 * TILE)
        wide_panels(to + c, row, panels + (u64)c * (DEPTH / 2), 4);
    if (c < w->cols)
        wide_panels(to + c, row, panels + (u64)c * (DEPTH / 2), 2);
    for (c = 0; c < w->begin; c++)
        to[c] = missing;
    for (c = w->end; c < w->cols; c++)
        to[c] = missing;
}

/* Row i of a tensor = factor x sum of weight x the operand's rows. */
static void wide_put(const struct wide_row *w, const struct abi_tensor *t, float factor,
                     const u16 *weight, enum operand_kind k)
{
    float sums[WIDTH];
    const u32 *pairs = pack_pairs(w->s, k) + (u64)w->first / 2 * WIDTH;
    u32 d = 0;
    for (; d + 64 <= WIDTH; d += 64) {
        const u32 *b = pairs + d;
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        for (u32 c = 0; c < w->cols; c += TILE, b += TILE / 2 * WIDTH) {
            TILE_LOAD(4, weight + c, 0);
            TILE_LOAD(6, b, 4 * WIDTH);
            TILE_LOAD(7, b + 16, 4 * WIDTH);
            TILE_PRODUCT(0, 4, 6);
            TILE_PRODUCT(1, 4, 7);
            TILE_LOAD(6, b + 32, 4 * WIDTH);
            TILE_LOAD(7, b + 48, 4 * WIDTH);
            TILE_PRODUCT(2, 4, 6);
            TILE_PRODUCT(3, 4, 7);
        }
        TILE_STORE(0, sums + d, 0);
        TILE_STORE(1, sums + d + 16, 0);
        TILE_STORE(2, sums + d + 32, 0);
        TILE_STORE(3, sums + d + 48, 0);
    }
    for (; d < WIDTH; d += 16) {
        const u32 *b = pairs + d;
        TILE_ZERO(0);
        for (u32 c = 0; c < w->cols; c += TILE, b += TILE / 2 * WIDTH) {
            TILE_LOAD(4, weight + c, 0);
            TILE_LOAD(6, b, 4 * WIDTH);
            TILE_PRODUCT(0, 4, 6);
        }
        TILE_STORE(0, sums + d, 0);
    }
    row_write(w->s, t, w->i, factor, sums);
}

static void wide_forward(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct wide_row w;
    if (item->row0 >= s->rows)
        return;
    if (!wide_open(&w, s, &s->a->forward, item, scratch)) {
        row_clear(s, &s->a->o, item->row0);
        *lse_at(s, item->row0) = -INFINITY_F;
        return;
    }
    wide_products(&w, &s->a->q, w.sign, OPERAND_KEY, -INFINITY_F, w.score);
    float m = largest_lane(row_largest(w.score, w.cols)) * w.gain;
    vec sum = {0};
    for (u32 c = 0; c < w.cols; c += 2 * LANES) {
        vec low = exp2_half(load(w.score + c) * w.gain - splat(m));
        vec high = exp2_half(load(w.score + c + LANES) * w.gain - splat(m));
        half_store2(w.weight[0] + c, low, high);
        sum += low + high;
    }
    float l = sum_lanes(sum);
    wide_put(&w, &s->a->o, 1 / l, w.weight[0], OPERAND_VALUE);
    *lse_at(s, w.i) = m * LN_2 + natural_log(splat(l))[0];
}

#if BACKWARD
static void wide_dq(const struct wide_row *w)
{
    const struct sequence *s = w->s;
    const vec offset = splat(score_offset(*lse_at(s, w->i)));
    vec sum = {0};
    wide_products(w, &s->a->q, w->sign, OPERAND_KEY, -INFINITY_F, w->score);
    wide_products(w, &s->a->d_o, 0, OPERAND_VALUE, 0, w->slope);
    for (u32 c = 0; c < w->cols; c += LANES) {
        vec p = exp2_half(load(w->score + c) * w->gain - offset);
        store(w->score + c, p);
        sum += p * load(w->slope + c);
    }
    float delta = *state_at(s, w->i) = sum_lanes(sum);
    for (u32 c = 0; c < w->cols; c += LANES)
        half_store(w->weight[1] + c, load(w->score + c) * (load(w->slope + c) - splat(delta)));
    wide_put(w, &s->a->d_q, s->a->scale, w->weight[1], OPERAND_KEY);
}

static void wide_dkv(const struct wide_row *w)
{
    const struct sequence *s = w->s;
    const float *lse = lse_at(s, w->first), *delta = state_at(s, w->first);
    wide_products(w, &s->a->k, w->sign, OPERAND_QUERY, -INFINITY_F, w->score);
    wide_products(w, &s->a->v, 0, OPERAND_GRADIENT, 0, w->slope);
    for (u32 c = w->begin; c < w->end; c++) {
        w->score[c] = w->score[c] * w->gain - score_offset(lse[c]);
        w->slope[c] -= delta[c];
    }
    for (u32 c = 0; c < w->cols; c += LANES) {
        vec p = exp2_half(load(w->score + c));
        half_store(w->weight[0] + c, p);
        half_store(w->weight[1] + c, p * load(w->slope + c));
    }
    wide_put(w, &s->a->d_k, s->a->scale, w->weight[1], OPERAND_QUERY);
    wide_put(w, &s->a->d_v, 1, w->weight[0], OPERAND_GRADIENT);
}

static void wide_backward(const struct sequence *s, const struct abi_plan *p,
                          const struct abi_item *item, u8 *scratch)
{
    const int transposed = p == &s->a->transposed;
    struct wide_row w;
    if (item->row0 >= s->rows)
        return;
    if (wide_open(&w, s, p, item, scratch)) {
        (transposed ? wide_dkv : wide_dq)(&w);
        return;
    }
    row_without_entries(s, item->row0, transposed);
}
#endif
#else

INLINE int wide_alone(const struct sequence *s, const struct abi_plan *p,
                      const struct abi_item *item)
{
    (void)s, (void)p, (void)item;
    return 0;
}

INLINE void wide_forward(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    (void)s, (void)item, (void)scratch;
}

INLINE void wide_backward(const struct sequence *s, const struct abi_plan *p,
                          const struct abi_item *item, u8 *scratch)
{
    (void)s, (void)p, (void)item, (void)scratch;
}

#endif
#endif
