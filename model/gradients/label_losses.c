/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gradients/label_losses.h"
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
static uint32_t row_with(const struct label_logits *n, struct target_rows rows, uint32_t bit)
{
    uint32_t k = rows.first;
    while (!(n->target->label[k] & bit))
        k++;
    return k - rows.first;
}

static void add_choice(const struct label_logits *n, const struct choice *c,
                       struct target_loss *loss)
{
    loss->right += is_right(c);
    loss->sum += cross_entropy(c, n->weight);
}

static void add_square(const struct label_logits *n, uint32_t row, double *z,
                       struct target_loss *loss)
{
    const double d = *z - (double)n->target->value[row];
    loss->sum += d * d;
    *z = n->weight * 2 * d;
}

static void add_span(const struct label_logits *n, struct target_rows rows, double *z,
                     struct target_loss *loss)
{
    const uint32_t count = rows.end - rows.first;
    const struct choice start = {z, count, n->labels, row_with(n, rows, 1)},
                        end = {z + 1, count, n->labels, row_with(n, rows, 2)};
    loss->right += is_right(&start) && is_right(&end);
    loss->sum +=
        (cross_entropy(&start, n->weight / 2) + cross_entropy(&end, n->weight / 2)) / 2;
}

static void add_loss(const struct label_logits *n, struct target_rows rows,
                     struct target_loss *loss)
{
    double *z = n->logits + (uint64_t)rows.first * n->labels;
    switch (n->target->loss) {
    case LOSS_LABELS:
        add_choice(n, &(struct choice){z, n->labels, 1, n->target->label[rows.first]}, loss);
        break;
    case LOSS_SQUARE:
        add_square(n, rows.first, z, loss);
        break;
    case LOSS_CHOICE:
        add_choice(n, &(struct choice){z, rows.end - rows.first, 1, row_with(n, rows, 1)},
                   loss);
        break;
    case LOSS_SPAN:
        add_span(n, rows, z, loss);
        break;
    }
}

void label_losses(const struct label_logits *n, struct target_loss *loss)
{
    const uint32_t places = train_target_places(n->batch, n->target);
    for (uint32_t k = 0; k < places; k++) {
        const struct target_rows rows = train_target_rows(n->batch, n->target, k);
        if (rows.first == rows.end)
            continue;
        add_loss(n, rows, loss);
        loss->count++;
    }
}
