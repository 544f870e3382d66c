/* SPDX-License-Identifier: Apache-2.0 */
/* Results that the host reads during a pass: they are copied to pinned memory, and the host waits only for that copy. */
#include "model/backend/gpu/train/train.h"

/* The host has read all results of the passes before. A copy from their memory, of gradients, may not have ended. */
static int reserve(struct backend_state *s, struct result *r, uint64_t bytes, struct error *e)
{
    if (bytes <= r->bytes)
        return 0;
    if (r->host && s->driver->wait(s->gpu, &s->stream, e) < 0)
        return -1;
    s->driver->release_pinned(s->gpu, r->host);
    r->bytes = 0;
    r->host = s->driver->allocate_pinned(s->gpu, bytes, e);
    if (!r->host)
        return -1;
    r->bytes = bytes;
    return 0;
}

int gpu_train_read(const struct op_batch *p, struct result *r, const void *from, uint64_t bytes,
                   struct error *e)
{
    struct backend_state *s = p->state;
    return reserve(s, r, bytes, e) < 0 ||
                   s->driver->read(s->gpu, &s->stream, r->host, from, bytes, e) < 0 ||
                   s->driver->mark(s->gpu, &r->done, &s->stream, e) < 0
               ? -1
               : 0;
}

int gpu_train_reach(const struct op_batch *p, const struct result *r, struct error *e)
{
    return p->state->driver->reach(p->state->gpu, &r->done, e);
}

void gpu_train_result_finish(const struct backend_state *s, struct result *r)
{
    s->driver->release_pinned(s->gpu, r->host);
    s->driver->event_close(s->gpu, &r->done);
    *r = (struct result){0};
}
