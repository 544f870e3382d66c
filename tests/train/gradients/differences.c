/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/gradients/differences.h"
#include "masks/base/memory.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdlib.h>

/* Moves a piece by distance * direction, exactly as far as f32 can say. moved: where it is then. */
static void move(const struct train_state *s, const struct piece *p, const float *from,
                 const float *direction, float distance, float *moved)
{
    for (uint64_t k = 0; k < p->count; k++)
        moved[k] = from[k] + distance * direction[k];
    state_write(s, s->value + p->first, p->count, moved);
}

/* Measured slope of the loss, and the slope according to the gradient. */
struct slope {
    double loss, gradient, size;
};

static struct slope slope_of(const struct gradients_request *r, const struct piece *p,
                             float distance, loss_function *loss, void *context)
{
    struct train_state *s = r->state;
    float *all = memory_new(5 * p->count, sizeof *all), *from = all,
          *direction = all + p->count, *up = direction + p->count, *down = up + p->count,
          *gradient = down + p->count;
    struct slope ret = {0};
    state_read(s, s->value + p->first, p->count, from);
    state_read(s, s->gradient + p->first, p->count, gradient);
    for (uint64_t k = 0; k < p->count; k++)
        direction[k] = random_draw(2) ? 1 : -1;
    move(s, p, from, direction, distance, up);
    ret.loss = loss(context, r);
    move(s, p, from, direction, -distance, down);
    ret.loss -= loss(context, r);
    for (uint64_t k = 0; k < p->count; k++) {
        double g = (double)gradient[k], moved = (double)up[k] - (double)down[k];
        ret.gradient += g * moved;
        ret.size += g * moved * g * moved;
    }
    ret.size = sqrt(ret.size);
    state_write(s, s->value + p->first, p->count, from);
    free(all);
    return ret;
}

static uint32_t one_in = 1, next_first;

void differences_are_few(void)
{
    one_in = 3;
}

void gradients_must_fit(const char *name, const struct gradients_request *r,
                        const struct difference *d)
{
    for (uint32_t k = next_first++ % one_in; k < r->state->pieces; k += one_in) {
        const struct piece *p = &r->state->piece[k];
        struct slope s = slope_of(r, p, d->distance, d->loss, d->context);
        if (!(fabs(s.loss - s.gradient) <=
              d->tolerance * fmax(s.size, fabs(s.gradient)) + d->noise))
            fail_msg("%s: %s: the loss moves by %g, the gradient says %g", name,
                     p->parameter->name, s.loss, s.gradient);
    }
}

double own_loss(void *context, const struct gradients_request *r)
{
    struct train_subject *s = context;
    struct error e = {0};
    struct batch_loss loss = {0};
    struct gradients_workspace *w = s->workspace;
    struct train_state aside = *r->state;
    struct gradients_request without = *r;
    const struct training_device *d = &aside.device;
    aside.gradient = d->does->array_new(d->state, aside.count, &e);
    without.state = &aside;
    if (!aside.gradient || engine_repack(r->engine, &e) < 0 ||
        gradients_compute(&without, w, &loss, &e) < 0)
        fail_msg("%s", e.text);
    d->does->array_destroy(d->state, aside.gradient);
    return total_loss(r, &loss);
}
