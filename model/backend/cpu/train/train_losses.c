/* SPDX-License-Identifier: Apache-2.0 */
/* Losses over the logits of a target, and their gradients in place. One thread, in the order of rows: there are few
   logits. */
#include "model/backend/cpu/train/labels.h"
#include <math.h>

/* Logits z[0], z[step], .. of which `right` is the right one. */
struct choice {
    double *z;
    uint32_t count, step, right;
};

static double *logit(const struct choice *c, uint32_t k)
{
    return c->z + (uint64_t)k * c->step;
}

/* The right one is the first of the largest logits; NaN has none. */
static bool is_right(const struct choice *c)
{
    const double right = *logit(c, c->right);
    bool ret = true;
    for (uint32_t k = 0; k < c->count; k++)
        ret &= k < c->right ? right > *logit(c, k) : right >= *logit(c, k);
    return ret;
}

/* Returns the cross-entropy. The logits become weight * its gradient. */
static double cross_entropy(const struct choice *c, double weight)
{
    double most = -HUGE_VAL, sum = 0;
    for (uint32_t k = 0; k < c->count; k++)
        most = fmax(most, *logit(c, k));
    for (uint32_t k = 0; k < c->count; k++)
        sum += exp(*logit(c, k) - most);
    const double ret = most + log(sum) - *logit(c, c->right);
    for (uint32_t k = 0; k < c->count; k++) {
        double *z = logit(c, k);
        *z = weight * (exp(*z - most) / sum - (k == c->right ? 1 : 0));
    }
    return ret;
}

/* The row among these whose label has the bit. */
static uint32_t row_with(const struct labels *n, struct target_rows rows, uint32_t bit)
{
    uint32_t k = rows.first;
    while (!(n->target->label[k] & bit))
        k++;
    return k - rows.first;
}

static void add_choice(const struct labels *n, const struct choice *c)
{
    n->loss->right += is_right(c);
    n->loss->sum += cross_entropy(c, n->target_weight);
}

static void add_square(const struct labels *n, uint32_t row, double *z)
{
    const double d = *z - (double)n->target->value[row];
    n->loss->sum += d * d;
    *z = n->target_weight * 2 * d;
}

static void add_span(const struct labels *n, struct target_rows rows, double *z)
{
    const uint32_t count = rows.end - rows.first;
    const struct choice start = {z, count, n->count, row_with(n, rows, 1)},
                        end = {z + 1, count, n->count, row_with(n, rows, 2)};
    n->loss->right += is_right(&start) && is_right(&end);
    n->loss->sum += (cross_entropy(&start, n->target_weight / 2) +
                     cross_entropy(&end, n->target_weight / 2)) /
                    2;
}

static void add_loss(const struct labels *n, struct target_rows rows)
{
    double *z = n->b->labels.logits + (uint64_t)rows.first * n->count;
    switch (n->target->loss) {
    case LOSS_LABELS:
        add_choice(n, &(struct choice){z, n->count, 1, n->target->label[rows.first]});
        break;
    case LOSS_SQUARE:
        add_square(n, rows.first, z);
        break;
    case LOSS_CHOICE:
        add_choice(n, &(struct choice){z, rows.end - rows.first, 1, row_with(n, rows, 1)});
        break;
    case LOSS_SPAN:
        add_span(n, rows, z);
        break;
    }
}

void labels_find_loss(const struct labels *n)
{
    const struct train_batch *b = n->b->request->batch;
    const uint32_t places = train_target_places(b, n->target);
    for (uint32_t k = 0; k < places; k++) {
        const struct target_rows rows = train_target_rows(b, n->target, k);
        if (rows.first == rows.end)
            continue;
        add_loss(n, rows);
        n->loss->count++;
    }
}
