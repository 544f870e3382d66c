/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/scatter.h"
#include "masks/base/memory.h"
#include "model/train/optimizer.h"
#include "model/train/step/shards.h"
#include <math.h>
#include <stdlib.h>

bool scatter_works(const struct comm *c, const struct train_state *s)
{
    return c->size > 1 && c->exchange && s->device.does->gradient_squares;
}

/* of[k]: what rank k computed of a part of this rank's span, up to `each` elements; sent: a part of another span, where
   the host cannot reach the device's. */
struct scatter {
    const struct comm *comm;
    const struct train_state *state;
    bool whole_pieces;
    uint64_t each;
    float **of, *sent;
};

/* Elements of a rank's span in the part that begins at `at`. */
static uint64_t count_of(const struct scatter *x, struct span of, uint64_t at)
{
    return at >= of.count ? 0 : of.count - at < x->each ? of.count - at : x->each;
}

/* A part of the span of rank `to` goes there, and one of this rank's span comes from rank `from`. */
static int trade(const struct scatter *x, uint64_t at, uint32_t to, uint32_t from,
                 struct error *e)
{
    const struct comm *c = x->comm;
    const struct training_device *d = &x->state->device;
    const struct span his = shard_of(x->state, x->whole_pieces, to, c->size);
    const uint64_t sent = count_of(x, his, at), own = count_of(x, x->state->moments, at);
    float *gradient = x->state->gradient + his.first + at,
          *host = d->does->array_host(d->state, gradient);
    const struct comm_move m = {sent ? to : c->size,
                                own ? from : c->size,
                                host ? host : x->sent,
                                x->of[from],
                                sent,
                                own};
    if (!host && sent && d->does->array_read(d->state, gradient, sent, x->sent, e) < 0)
        return -1;
    return c->exchange(c, &m, e);
}

static void add_tree(float *const *of, uint32_t ranks, uint64_t count)
{
    for (uint32_t d = 1; d < ranks; d *= 2)
        for (uint32_t r = 0; r + d < ranks; r += 2 * d) {
            float *restrict to = of[r];
            const float *restrict from = of[r + d];
            for (uint64_t k = 0; k < count; k++)
                to[k] += from[k];
        }
}

static int sum_part(const struct scatter *x, uint64_t at, struct error *e)
{
    const struct comm *c = x->comm;
    const struct training_device *d = &x->state->device;
    const uint64_t own = count_of(x, x->state->moments, at);
    float *gradient = x->state->gradient + x->state->moments.first + at;
    for (uint32_t k = 1; k < c->size; k++)
        if (trade(x, at, (c->rank + k) % c->size, (c->rank + c->size - k) % c->size, e) < 0)
            return -1;
    if (!own)
        return 0;
    if (d->does->array_read(d->state, gradient, own, x->of[c->rank], e) < 0)
        return -1;
    add_tree(x->of, c->size, own);
    return d->does->array_write(d->state, gradient, own, x->of[0], e);
}

static uint64_t longest(const struct comm *c, const struct train_state *s, bool whole_pieces)
{
    uint64_t ret = 0;
    for (uint32_t k = 0; k < c->size; k++) {
        const struct span his = shard_of(s, whole_pieces, k, c->size);
        ret = his.count > ret ? his.count : ret;
    }
    return ret;
}

int scatter_sum(const struct comm *c, const struct train_state *s, bool whole_pieces,
                struct error *e)
{
    const uint64_t most = longest(c, s, whole_pieces), bucket = COMM_BUCKET / c->size,
                   each = most < bucket ? most : bucket;
    float *all = memory_new((c->size + UINT64_C(1)) * each, sizeof *all),
          **of = memory_new(c->size, sizeof *of);
    const struct scatter x = {c, s, whole_pieces, each, of, all + c->size * each};
    int r = 0;
    for (uint32_t k = 0; k < c->size; k++)
        of[k] = all + k * each;
    for (uint64_t at = 0; at < most && r == 0; at += each)
        r = sum_part(&x, at, e);
    free(of);
    free(all);
    return r;
}

int scatter_norm(const struct comm *c, const struct train_state *s, uint32_t threads,
                 double *ret, struct error *e)
{
    const uint64_t blocks = optimizer_blocks(s, s->count);
    double *part = NULL, sum = 0;
    int r = optimizer_squares(s, threads, &part, e);
    if (r == 0)
        r = c->sum_f64(c, part, blocks, e);
    for (uint64_t k = 0; k < blocks && r == 0; k++)
        sum += part[k];
    free(part);
    *ret = sqrt(sum);
    return r;
}
