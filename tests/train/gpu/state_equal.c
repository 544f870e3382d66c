/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/gpu/state_equal.h"
#include "tests/support/test.h"
#include <math.h>

double piece_norm(const struct piece *p, const float *a, const float *b)
{
    double sum = 0;
    for (uint64_t k = p->first; k < p->first + p->count; k++) {
        const double d = (double)a[k] - (b ? (double)b[k] : 0);
        sum += d * d;
    }
    return sqrt(sum);
}

/* The largest norm of a tensor of the piece's layer. */
static double largest_in_layer(const struct train_state *s, const struct piece *of,
                               const float *truth)
{
    double ret = 0;
    for (uint32_t k = 0; k < s->pieces; k++)
        if (s->piece[k].parameter->layer == of->parameter->layer)
            ret = fmax(ret, piece_norm(&s->piece[k], truth, NULL));
    return ret;
}

bool is_key_bias(const struct piece *p)
{
    return p->parameter->id == PARAMETER_KEY_BIAS;
}

void gradients_must_equal(const char *name, const struct train_state *s, const float *got,
                          const float *truth, double tolerance)
{
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct piece *p = &s->piece[k];
        const double d = piece_norm(p, got, truth),
                     of = fmax(piece_norm(p, truth, NULL),
                               (is_key_bias(p) ? 0.1 : 1e-3) * largest_in_layer(s, p, truth));
        if (!(d <= tolerance * of))
            fail_msg("%s: %s is off by %g of %g", name, p->parameter->name, d, of);
    }
}

void losses_must_equal(const char *name, const struct gradients_request *r,
                       const struct batch_loss *got, const struct batch_loss *truth,
                       double tolerance)
{
    const double is = total_loss(r, got), must = total_loss(r, truth);
    if (!(fabs(is - must) <= tolerance * must))
        fail_msg("%s: loss %.9g, and not %.9g", name, is, must);
    for (uint32_t k = 0; k < r->batch->targets; k++)
        assert_int_equal(got->target[k].count, truth->target[k].count);
}
