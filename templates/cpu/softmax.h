/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax in base 2, online over the blocks of a strip: rows carry their largest score m and
   l = sum of 2^(s - m). A row that has seen no active entry has m = -inf and only zeros. */
#ifndef MASKC_CPU_SOFTMAX_H
#define MASKC_CPU_SOFTMAX_H

INLINE vec row_largest(const float *score, u32 cols)
{
    vec m = load(score);
    for (u32 c = LANES; c < cols; c += LANES)
        m = larger(m, load(score + c));
    return m;
}

/* Scores to 2^(s - m); returns their sum. */
INLINE float row_exp2(float *score, u32 cols, float m)
{
    vec sum = {0};
    for (u32 c = 0; c < cols; c += LANES) {
        vec p = exp2_vec(load(score + c) - splat(m));
        store(score + c, p);
        sum += p;
    }
    return sum_lanes(sum);
}

static void sums_scale(float *sums, float factor)
{
    for (u32 d = 0; d < WIDTH; d += LANES)
        store(sums + d, load(sums + d) * splat(factor));
}

static void softmax_block(struct strip *t, struct block *b)
{
    struct strip_memory *m = t->m;
    for (u32 r = 0; r < t->rows; r++) {
        if (!row_live(t, r))
            continue;
        float old = m->largest[r], here = largest_lane(row_largest(b->score[r], b->cols));
        float now = here > old ? here : old;
        float base = now == -INFINITY_F ? 0 : now;
        float sum = row_exp2(b->score[r], b->cols, base);
        if (now > old) {
            float shrink = exp2_one(old - base);
            m->total[r] *= shrink;
            if (old > -INFINITY_F)
                sums_scale(m->sums[0][r], shrink);
        }
        m->largest[r] = now;
        m->total[r] += sum;
    }
}

static void softmax_forward(struct strip *t)
{
    struct block *b = t->blocks;
    for (u32 r = 0; r < t->rows; r++) {
        t->m->largest[r] = -INFINITY_F;
        t->m->total[r] = 0;
    }
    while (block_next(t, b)) {
        block_scores(t, b);
        softmax_block(t, b);
        if (dropping(t))
            block_drop(t, b);
        block_sums(t, b, (const float (*)[SCORE_STRIDE])b->score, 1, t->m->sums[0]);
    }
    for (u32 r = 0; r < t->rows; r++) {
        float l = t->m->total[r];
        t->m->offset[r] = l > 0 ? LN_2 * t->m->largest[r] + natural_log(l) : -INFINITY_F;
        t->m->total[r] = l > 0 ? 1 / l : 0;
    }
}

#endif
