/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/learn/alpha.h"
#include "masks/base/memory.h"
#include "masks/mask.h"
#include "model/base/order.h"
#include <math.h>
#include <stdlib.h>

#define FIRST_DEVIATION 1e-3

int alpha_shape_of(const struct learn_options *o, const struct model_config *c,
                   struct alpha_shape *ret, struct error *e)
{
    const bool distances = o->kind == LEARN_DISTANCES;
    *ret = (struct alpha_shape){.kind = o->kind,
                                .layers = o->per_layer ? c->layers : 1,
                                .heads = c->heads,
                                .n = c->positions,
                                .per_layer = o->per_layer,
                                .distances = distances,
                                .border = distances && !o->code,
                                .pairs = o->code,
                                .symmetric = o->kind == LEARN_P || o->symmetric};
    if (ret->border && ret->n < 3)
        return error_set(e, ERROR_INPUT,
                         "--learn-mask dam-s: %u positions; 3 or more are expected", ret->n);
    /* the kernels' arrays X and dX have as many entries */
    if ((uint64_t)ret->layers * ret->heads * ret->n > UINT32_MAX / ret->n)
        return error_set(
            e, ERROR_INPUT,
            "--learn-mask: %u x %u heads of %u x %u entries; fewer than 2^32 are expected",
            ret->layers, ret->heads, ret->n, ret->n);
    return 0;
}

uint64_t alpha_head_units(const struct alpha_shape *s)
{
    return !s->distances ? (uint64_t)s->n * s->n : s->border ? s->n - 2 : s->n;
}

uint64_t alpha_units(const struct alpha_shape *s)
{
    return (uint64_t)s->layers * s->heads * alpha_head_units(s);
}

uint64_t alpha_count(const struct alpha_shape *s)
{
    return (s->pairs ? 2 : 1) * alpha_units(s);
}

uint32_t alpha_unit_dimensions(const struct alpha_shape *s, uint64_t ret[4])
{
    uint32_t rank = 0;
    if (s->per_layer)
        ret[rank++] = s->layers;
    ret[rank++] = s->heads;
    ret[rank++] = s->border ? s->n - 2 : s->n;
    if (!s->distances)
        ret[rank++] = s->n;
    return rank;
}

uint32_t alpha_dimensions(const struct alpha_shape *s, uint64_t ret[4])
{
    uint32_t rank = alpha_unit_dimensions(s, ret);
    if (s->pairs)
        ret[rank++] = 2;
    return rank;
}

int64_t alpha_unit_at(const struct alpha_shape *s, uint32_t i, uint32_t j)
{
    if (!s->distances)
        return (int64_t)i * s->n + j;
    if (s->border && (i == 0 || j == 0 || i + 1 == s->n || j + 1 == s->n))
        return -1;
    return i > j ? i - j : j - i;
}

/* ---- first values ---- */

static float normal(struct draws *d)
{
    const double radius = sqrt(-2 * log(1 - draw_share(d)));
    return (float)(FIRST_DEVIATION * radius * cos(2 * 3.14159265358979323846 * draw_share(d)));
}

/* Copies the entries above the diagonal to those below it. */
static void mirror(const struct alpha_shape *s, float *alpha)
{
    const uint64_t n = s->n, heads = (uint64_t)s->layers * s->heads;
    for (uint64_t h = 0; h < heads; h++)
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t j = 0; j < i; j++)
                alpha[(h * n + i) * n + j] = alpha[(h * n + j) * n + i];
}

void alpha_initialise(const struct alpha_shape *s, uint64_t seed, float *ret)
{
    const uint64_t heads = (uint64_t)s->layers * s->heads, each = alpha_count(s) / heads;
#pragma omp parallel for
    for (uint64_t h = 0; h < heads; h++) {
        struct draws d = data_draws(seed, STREAM_ALPHA, (uint32_t)h, 0);
        for (uint64_t k = 0; k < each; k++)
            ret[h * each + k] = normal(&d);
    }
    if (s->symmetric)
        mirror(s, ret);
}

/* ---- the mask ---- */

static struct pattern *head_pattern(const struct alpha_shape *s, const float *alpha)
{
    struct pattern *p = pattern_new(s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t j = 0; j < s->n; j++) {
            const int64_t unit = alpha_unit_at(s, i, j);
            if (unit < 0 || alpha_logit(s, alpha, (uint64_t)unit) > 0)
                pattern_add(p, i, j, j + 1);
        }
        pattern_row(p, i);
    }
    return pattern_finish(p);
}

struct mask *alpha_mask(const struct alpha_shape *s, const float *alpha)
{
    const uint32_t heads = s->layers * s->heads;
    const uint64_t each = alpha_count(s) / heads;
    struct pattern **given = memory_new(heads, sizeof *given);
#pragma omp parallel for
    for (uint32_t h = 0; h < heads; h++)
        given[h] = head_pattern(s, alpha + h * each);
    struct mask *ret = mask_new(s->layers, s->heads, given, "alpha");
    free(given);
    return ret;
}
