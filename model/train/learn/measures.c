/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/learn/measures.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

/* Sums over a head, in the order of its entries. */
struct sums {
    double value, on, diagonal, neighbour, special, entropy;
};

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

/* -p log p - (1 - p) log(1 - p), of a logit: log(1 + e^-|x|) + |x| sigmoid(-|x|). */
static double entropy_of(double x)
{
    const double a = fabs(x);
    return log1p(exp(-a)) + a * sigmoid(-a);
}

static bool is_special(const struct alpha_shape *s, uint32_t i, uint32_t j)
{
    return i == 0 || j == 0 || i + 1 == s->n || j + 1 == s->n;
}

/* Adds a head's entries to *ret; the border counts as 1. p: P of each unit; value: M or P, as the penalty counts it. */
static void add_entries(const struct alpha_shape *s, const double *p, const float *value,
                        struct sums *ret)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < s->n; j++) {
            const int64_t unit = alpha_unit_at(s, i, j);
            const double of = unit < 0 ? 1 : p[unit];
            ret->value += unit < 0 ? 1 : (double)value[unit];
            ret->on += of > 0.5;
            ret->diagonal += i == j ? of : 0;
            ret->neighbour += i == j + 1 || j == i + 1 ? of : 0;
            ret->special += is_special(s, i, j) ? of : 0;
        }
}

static struct sums head_sums(const struct alpha_shape *s, const float *alpha,
                             const float *value, uint64_t head)
{
    const uint64_t each = alpha_head_units(s);
    double *p = memory_new(each, sizeof *p);
    struct sums ret = {0};
    for (uint64_t k = 0; k < each; k++) {
        const double x = (double)alpha_logit(s, alpha, head * each + k);
        p[k] = sigmoid(x);
        ret.entropy += entropy_of(x);
    }
    add_entries(s, p, value + head * each, &ret);
    free(p);
    return ret;
}

static struct mask_measures means(const struct alpha_shape *s, const struct sums *t)
{
    const double n = s->n, heads = (double)s->layers * s->heads,
                 neighbours = n > 1 ? 2 * (n - 1) : 1, special = n > 1 ? 4 * (n - 1) : 1;
    return (struct mask_measures){.l1 = t->value,
                                  .density = t->on / (heads * n * n),
                                  .entropy = t->entropy / (double)alpha_units(s),
                                  .p_diagonal = t->diagonal / (heads * n),
                                  .p_neighbour = t->neighbour / (heads * neighbours),
                                  .p_special = t->special / (heads * special)};
}

struct mask_measures measures_of(const struct alpha_shape *s, const float *alpha,
                                 const float *value)
{
    const uint64_t heads = (uint64_t)s->layers * s->heads;
    struct sums *each = memory_new(heads, sizeof *each), all = {0};
#pragma omp parallel for
    for (uint64_t h = 0; h < heads; h++)
        each[h] = head_sums(s, alpha, value, h);
    for (uint64_t h = 0; h < heads; h++) {
        all.value += each[h].value;
        all.on += each[h].on;
        all.diagonal += each[h].diagonal;
        all.neighbour += each[h].neighbour;
        all.special += each[h].special;
        all.entropy += each[h].entropy;
    }
    free(each);
    return means(s, &all);
}
