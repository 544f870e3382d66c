/* SPDX-License-Identifier: Apache-2.0 */
/* Values that the backend keeps beside the products' weights. */
#include "model/engine/encoder_kept.h"
#include "model/arch/arch.h"
#include <math.h>
#include <string.h>

uint64_t kept_count(const struct kept_source *s)
{
    const uint64_t heads = s->kind == KEPT_RELATIVE ? s->tensor->parameter.shape[1] : 0;
    return s->kind == KEPT_COPY       ? s->tensor->parameter.count
           : s->kind == KEPT_RELATIVE ? heads * s->n * s->n
                                      : s->n;
}

/* value: [buckets, heads] */
static void expand_relative(const struct kept_source *s, const float *value, float *ret)
{
    const int64_t n = (int64_t)s->n, heads = (int64_t)s->tensor->parameter.shape[1];
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                ret[(h * n + i) * n + j] = value[arch_relative((int32_t)(j - i)) * heads + h];
}

/* Angles are position / theta^(2k / dim), rounded to f32 where transformers rounds: the exponent, the power, its inverse, the
   product. At thousands of positions that shows. */
static void expand_rotation(const struct kept_source *s, float *ret)
{
    const uint64_t half = s->dim / 2, positions = s->n / s->dim;
    for (uint64_t k = 0; k < half; k++) {
        const float power = (float)pow(s->theta, (double)((float)(2 * k) / (float)s->dim)),
                    inverse = 1.0F / power;
        for (uint64_t i = 0; i < positions; i++) {
            const float angle = (float)i * inverse;
            ret[i * half + k] = (float)cos((double)angle);
            ret[(positions + i) * half + k] = (float)sin((double)angle);
        }
    }
}

void kept_expand(const struct kept_source *s, const float *value, float *ret)
{
    switch (s->kind) {
    case KEPT_COPY:
        memcpy(ret, value, s->tensor->parameter.count * sizeof *ret);
        break;
    case KEPT_RELATIVE:
        expand_relative(s, value, ret);
        break;
    case KEPT_ZEROS:
        memset(ret, 0, s->n * sizeof *ret);
        break;
    case KEPT_ROTATION:
        expand_rotation(s, ret);
        break;
    }
}
