/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles, ranges and gathered columns: up to 32 columns that all rows of the row block share, by matrix
   products. Stores are 32 columns wide; what they leave beyond the group's width the next group, or
   the end of the block, overwrites. */
#ifndef MASKC_CPU_PANELS_H
#define MASKC_CPU_PANELS_H

static void panel_fill(float *to, u32 blocks, float value)
{
    for (u32 k = 0; k < BLOCKS; k++)
        for (u32 r = k * MICRO_ROWS; (blocks >> k & 1) && r < (k + 1) * MICRO_ROWS; r++)
            for (u32 c = 0; c < TILE; c += LANES)
                store(to + r * SCORE_STRIDE + c, splat(value));
}

/* Of a vector of scores those whose bit is 0 become -inf. */
INLINE void bits_keep(float *at, u32 bits)
{
#if MATRIX
    lanes_exclude(at, ~bits);
#else
    store(at, pick(mask_of_bits(bits), load(at), splat(-INFINITY_F)));
#endif
}

/* Inactive scores become -inf. */
static void panel_mask(const struct row_block *t, float *to, const struct group *g)
{
    const u32 *pattern = t->plan->patterns + (u64)(g->pattern - 1) * BLOCK_ROWS;
    const u32 *next = g->next ? t->plan->patterns + (u64)(g->next - 1) * BLOCK_ROWS : 0;
    const u32 live = g->live;
    for (u32 r = 0; r < BLOCK_ROWS; r++) {
        u32 word = pattern[r] >> g->shift;
        if (next)
            word |= next[r] << (TILE - g->shift);
        if (!(live >> (r / MICRO_ROWS) & 1) || word == 0xffffffff)
            continue;
        for (u32 c = 0; c < TILE; c += LANES)
            bits_keep(to + r * SCORE_STRIDE + c, word >> c);
    }
}

/* Matrix units take 32 columns where the group has fewer, and groups at multiples of 32. */
static void panel_cut(float *to, u32 columns, u32 rows)
{
    for (u32 r = 0; r < rows; r++)
        for (u32 c = 0; c < TILE; c += LANES)
            bits_keep(to + r * SCORE_STRIDE + c, columns >> c);
}

static void panel_skip(const struct row_block *t, struct block *b, const struct group *g)
{
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = g->at - g->gap; c < g->at; c++) {
            b->score[r][c] = -INFINITY_F;
            if (BACKWARD)
                b->slope[r][c] = 0;
        }
}

/* c = rows of operand 0 or 1 x the group's columns, in the row blocks that are live. */
static void panel_product(const struct row_block *t, const struct group *g, u32 operand,
                          float *c)
{
    if (g->kind == GROUP_COLUMNS)
        columns_product(t, g, operand, c);
    else
        scores_product(c, block_rows(t, operand), &t->operand[operand], g->first, g->live);
}

/* Its inactive scores become -inf. */
static void panel_exclude(const struct row_block *t, const struct group *g, float *to)
{
    if (g->pattern)
        panel_mask(t, to, g);
    if (MATRIX && g->columns != 0xffffffff)
        panel_cut(to, g->columns, t->rows);
}

#if MATRIX
/* A word for each row, bit c: it sees column c of the group; null where all rows see all. Some are put
   together in `room`. Inactive scores stay what they are: they are left out where they are read. */
static const u32 *group_words(const struct row_block *t, const struct group *g, u32 *room)
{
    const u32 *words = t->plan->patterns;
    const u32 *pattern = g->pattern ? words + (u64)(g->pattern - 1) * BLOCK_ROWS : 0;
    const u32 *next = g->next ? words + (u64)(g->next - 1) * BLOCK_ROWS : 0;
    if (!pattern && g->columns == 0xffffffff)
        return 0;
    if (pattern && !g->shift && g->columns == 0xffffffff)
        return pattern;
    for (u32 r = 0; r < BLOCK_ROWS; r++) {
        u32 word = pattern ? pattern[r] >> g->shift : 0xffffffff;
        word |= next ? next[r] << (TILE - g->shift) : 0;
        room[r] = word & g->columns;
    }
    return room;
}
#endif

INLINE u32 blocks_idle(const struct row_block *t, const struct group *g)
{
    return ((1u << (t->rows / MICRO_ROWS)) - 1) & ~g->live;
}

static void panel_scores(const struct row_block *t, struct block *b, const struct group *g)
{
    float *to = &b->score[0][g->at];
    panel_product(t, g, 0, to);
    panel_exclude(t, g, to);
    panel_fill(to, blocks_idle(t, g), -INFINITY_F);
    if (g->gap)
        panel_skip(t, b, g);
}

static void panel_keep(const struct row_block *t, struct block *b, const struct group *g)
{
    u32 keep[BLOCK_ROWS];
    keep_columns(t, g->first, keep);
    for (u32 r = 0; r < t->rows; r++)
        keep_put(b, r, g->at, g->width, keep[r]);
}

/* Sums over the columns of groups from `k` that belong together; returns the next group. */
#if MATRIX
static u32 panel_sums(const struct row_block *t, const struct block *b, u32 k,
                      const float (*weight)[SCORE_STRIDE], u32 operand, u32 which)
{
    struct sums_step step[WEIGHT_STRIDE / TILE];
    u32 steps = 0, kept = 0, live = b->group[k].live;
    for (; k < b->groups && group_is_panel(&b->group[k]) && b->group[k].live == live; k++) {
        const struct group *g = &b->group[k];
        const u32 *pairs = t->operand[operand].pairs + (u64)g->first / 2 * WIDTH;
        if (g->kind == GROUP_COLUMNS) {
            if (kept++ == GATHERED) /* the first one is about to go */
                break;
            pairs = gathered_pairs(t, g, operand);
        }
        step[steps++] = (struct sums_step){g->at, pairs};
    }
    const u16 *rounded = b->weight[weight != (const float(*)[SCORE_STRIDE])b->score][0];
    sums_product(t->m->sums[which][0], rounded, step, steps, live, t->m->blank[which]);
    t->m->blank[which] = 0;
    return k;
}
#else
static u32 panel_sums(const struct row_block *t, const struct block *b, u32 k,
                      const float (*weight)[SCORE_STRIDE], u32 operand, u32 which)
{
    enum { MOST = 256 };
    const struct group *g = &b->group[k];
    u32 width = g->width;
    for (k++; k < b->groups && width < MOST; k++) {
        const struct group *n = &b->group[k];
        if (n->kind != GROUP_PANEL || n->first != g->first + width || n->live != g->live)
            break;
        width += n->width;
    }
    sums_product(t->m->sums[which][0], weight[0] + g->at, &t->operand[operand], g->first, width,
                 g->live);
    return k;
}
#endif

#endif
