/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for all row blocks: then nobody needs packed operands, which no row block can weigh by itself. All heads
   of a pass or none, because operands are packed for all of them. */
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include <math.h>

/* Entries that lines would take cost more than all there are cost in tiles? Then there is no need to look. */
static bool too_dense(const struct builder *b, const struct pattern *p)
{
    const double all = (double)b->row_block->all_rows * p->n;
    return (double)p->active * b->price.walk > b->price.full * all;
}

/* The price of a pattern in row blocks, of lines alone or of whatever is cheapest. Lines: infinite where some row block
   is not theirs to take, or where they are dearer than `most`. */
static double try_row_blocks(struct builder *b, const struct plan *p,
                             const struct pattern *pattern, bool lines, double most)
{
    b->dry = true;
    b->lines_only = lines;
    b->most = most;
    b->others = false;
    b->total = 0;
    builder_row_blocks(b, p, pattern, false, NULL);
    b->dry = b->lines_only = false;
    b->most = INFINITY;
    return lines && (b->others || b->total > most) ? INFINITY : b->total;
}

/* Seconds a head of packing in the passes over these tables. */
static double pack_seconds(const struct plan *p, bool transposed)
{
    if (transposed)
        return predict_pack(p, PASS_DKV);
    return predict_pack(p, PASS_FORWARD) +
           (p->config.request.backward ? predict_pack(p, PASS_DQ) : 0);
}

static double count_heads(const struct plan *p, uint32_t which)
{
    uint64_t heads = 0;
    for (uint64_t k = 0; k < (uint64_t)p->layers * p->heads; k++)
        heads += p->at[k] == which;
    return (double)heads;
}

/* Prices of a pattern for one head; infinite where that is more than `most`, or where it cannot be. */
static double in_lines(struct builder *b, const struct plan *p, const struct pattern *pattern,
                       double most)
{
    return try_row_blocks(b, p, pattern, true, most);
}

static double in_row_blocks(struct builder *b, const struct plan *p,
                            const struct pattern *pattern, double most)
{
    (void)most;
    return try_row_blocks(b, p, pattern, false, INFINITY) +
           pack_seconds(p, b->pass == &p->transposed);
}

static double in_classes_or_row_blocks(struct builder *b, const struct plan *p,
                                       const struct pattern *pattern, double most)
{
    return fmin(in_row_blocks(b, p, pattern, most),
                classes_price(b, p, pattern) + pack_seconds(p, b->pass == &p->transposed));
}

/* All heads; infinite where that is more than `most`. */
static double price_heads(struct builder *b, const struct plan *p, const struct mask *m,
                          double most,
                          double (*price)(struct builder *, const struct plan *,
                                          const struct pattern *, double))
{
    const bool transposed = b->pass == &p->transposed;
    double sum = 0;
    for (uint32_t k = 0; k < m->n_patterns && sum < most; k++) {
        struct pattern *transpose = transposed ? pattern_transpose(m->pattern[k], NULL) : NULL;
        const struct pattern *pattern = transposed ? transpose : m->pattern[k];
        const double heads = count_heads(p, k);
        sum += pattern ? heads * price(b, p, pattern, (most - sum) / heads) : INFINITY;
        pattern_destroy(transpose);
    }
    return sum;
}

/* All heads by the tables of a plan that is there. */
static double price_tables(const struct builder *b, const struct plan *p,
                           const struct plan_pass *t)
{
    double sum = 0;
    for (uint32_t k = 0; k < p->n_masks; k++)
        sum += count_heads(p, k) * price_of(&b->price, &t->summary[k].effort);
    return sum;
}

/* No plan of lines and global rows costs all heads less. */
static double least_lines(const struct builder *b, const struct plan *p, const struct mask *m)
{
    double sum = 0;
    for (uint32_t k = 0; k < m->n_patterns; k++)
        sum += count_heads(p, k) * (double)m->pattern[k]->active;
    return sum * fmin(b->price.walk, b->price.row);
}

bool lines_beat(struct builder *b, const struct plan *p, const struct mask *m,
                const struct plan *than)
{
    const bool transposed = b->pass == &p->transposed;
    const double most =
        price_tables(b, p, transposed ? &than->transposed : &than->forward) * (1 - LEAST_GAIN);
    if (!builder_can(b, CAN_PIECES) || !b->pass->kernels.diagonal_most || b->price.walk <= 0 ||
        least_lines(b, p, m) > most)
        return false;
    return price_heads(b, p, m, most, in_lines) < most;
}

bool lines_choose(struct builder *b, const struct plan *p, const struct mask *m)
{
    if (!b->row_block->halves || !builder_can(b, CAN_PIECES) ||
        !b->pass->kernels.diagonal_most || b->price.walk <= 0)
        return false;
    for (uint32_t k = 0; k < m->n_patterns; k++)
        if (too_dense(b, m->pattern[k]))
            return false;
    const double lines = price_heads(b, p, m, INFINITY, in_lines);
    return lines < INFINITY &&
           lines < price_heads(b, p, m, INFINITY, in_row_blocks) * (1 - LEAST_GAIN) &&
           lines * (1 - LEAST_GAIN) <= price_heads(b, p, m, INFINITY, in_classes_or_row_blocks);
}
