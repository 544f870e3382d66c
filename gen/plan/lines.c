/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for all row blocks: then nobody needs packed operands, which no row block can weigh by itself. All heads
   of a pass or none, because operands are packed for all of them. */
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include <math.h>

/* Entries that lines would take cost more than all there are cost in tiles? Then there is no need to look. */
static bool too_dense(const struct builder *b, const struct pattern *p)
{
    return (double)p->active * b->price.walk > b->price.full * (double)p->n * p->n;
}

/* The price of a pattern in row blocks, of lines alone or of whatever is cheapest. */
static double try_row_blocks(struct builder *b, const struct plan *p,
                             const struct pattern *pattern, bool lines)
{
    b->dry = true;
    b->lines_only = lines;
    b->others = false;
    b->total = 0;
    builder_row_blocks(b, p, pattern, false, NULL);
    b->dry = b->lines_only = false;
    return lines && b->others ? INFINITY : b->total;
}

/* What packing costs a head in the passes over these tables. */
static double pack_seconds(const struct plan *p, bool transposed)
{
    if (transposed)
        return predict_pack(p, PASS_DKV);
    return predict_pack(p, PASS_FORWARD) +
           (p->config.request.backward ? predict_pack(p, PASS_DQ) : 0);
}

/* Prices of all heads, with lines alone and in row blocks. */
struct sums {
    double lines, row_blocks;
};

/* Adds those of pattern `which`, for all heads that have it. */
static int add_prices(struct builder *b, const struct plan *p, const struct mask *m,
                      uint32_t which, bool transposed, struct sums *sum)
{
    uint64_t heads = 0;
    for (uint64_t k = 0; k < (uint64_t)p->layers * p->heads; k++)
        heads += p->at[k] == which;
    struct pattern *transpose = transposed ? pattern_transpose(m->pattern[which], NULL) : NULL;
    const struct pattern *pattern = transposed ? transpose : m->pattern[which];
    if (!pattern)
        return -1;
    sum->lines += (double)heads * try_row_blocks(b, p, pattern, true);
    if (sum->lines < INFINITY)
        sum->row_blocks += (double)heads *
                           (try_row_blocks(b, p, pattern, false) + pack_seconds(p, transposed));
    pattern_destroy(transpose);
    return sum->lines < INFINITY ? 0 : -1;
}

bool lines_choose(struct builder *b, const struct plan *p, const struct mask *m,
                  bool transposed)
{
    struct sums sum = {0, 0};
    if (!b->row_block->halves || !builder_can(b, CAN_PIECES) ||
        !b->pass->kernels.diagonal_most || b->price.walk <= 0)
        return false;
    for (uint32_t k = 0; k < m->n_patterns; k++)
        if (too_dense(b, m->pattern[k]))
            return false;
    for (uint32_t k = 0; k < m->n_patterns; k++)
        if (add_prices(b, p, m, k, transposed, &sum) < 0)
            return false;
    return sum.lines < sum.row_blocks * (1 - LEAST_GAIN);
}
