/* SPDX-License-Identifier: Apache-2.0 */
/* One launch, the same on every device: it is checked, its arguments are filled in, and the device runs all phases of each
   slice of the batch. */
#include "runtime/launch/steps.h"

uint64_t launch_workspace(const struct maskc_kernel *k, const struct maskc_launch *l)
{
    return shape_of(k, l).total;
}

static int run_slices(const struct launch *c, struct device_launch *d)
{
    const struct device *device = c->k->device;
    const uint32_t slice = d->starts ? 1 : c->shape.slice;
    d->args.slice_batch = c->shape.batch;
    if (slice < c->shape.batch && !(device->whole && device->whole(d)))
        d->args.slice_batch = slice;
    for (uint32_t first = 0; first < c->shape.batch; first += d->args.slice_batch) {
        uint32_t left = c->shape.batch - first;
        d->args.first_batch = first;
        d->args.slice_batch = left < d->args.slice_batch ? left : d->args.slice_batch;
        if (device->launch(c->k->code, d, c->e) < 0)
            return -1;
    }
    return 0;
}

int launch_run(const struct maskc_kernel *k, const struct maskc_launch *l, struct error *e)
{
    return launch_run_inside(k, l, &(struct launch_inside){0}, e);
}

int launch_run_inside(const struct maskc_kernel *k, const struct maskc_launch *l,
                      const struct launch_inside *inside, struct error *e)
{
    const struct launch_record *r = &k->target->launch;
    const struct launch c = {k, l, shape_of(k, l), e};
    if (launch_check(&c) < 0)
        return -1;
    struct device_launch d = {
        .phases = l->pass == MASKC_BACKWARD ? r->backward : r->forward,
        .n_phases = l->pass == MASKC_BACKWARD ? r->n_backward : r->n_forward,
        .layer = l->layer,
        .scratch_bytes = c.shape.scratch,
        .workers = c.shape.workers,
        .stream = l->stream,
        .parallel = l->parallel,
        .pool = l->pool,
        .starts = l->starts,
        .element_bytes = dtype_bytes(k->artifact->request.dtype),
        .launches = inside->launches,
        .emulated = inside->emulated,
    };
    if (launch_fill(&c, &d.args) < 0)
        return -1;
    launch_clear_before(&c, &d.args);
    if (run_slices(&c, &d) < 0)
        return -1;
    launch_clear_unscaled(&c, &d.args);
    return 0;
}
