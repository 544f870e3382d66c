/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and copies of the stages: words go from pinned memory on a stream of their own, while the pass before runs. */
#include "model/backend/gpu/train/train.h"

/* Memory of all stages; no pass uses it any more. */
static void release(const struct backend_state *s, struct stages *t)
{
    gpu_release(s, t->device);
    s->driver->release_pinned(s->gpu, t->words);
    t->device = t->words = t->current = NULL;
    t->capacity = 0;
}

static int allocate(const struct backend_state *s, struct stages *t, uint64_t words,
                    struct error *e)
{
    const uint64_t bytes = words * sizeof *t->words;
    t->words = s->driver->allocate_pinned(s->gpu, STAGES * bytes, e);
    t->device = t->words ? gpu_allocate(s, STAGE_PLACES * bytes, e) : NULL;
    if (!t->device)
        return -1;
    t->capacity = (uint32_t)words;
    t->current = t->device + STAGES * words;
    for (uint32_t k = 0; k < STAGES; k++) {
        t->each[k].word = t->words + k * words;
        t->each[k].device = t->device + k * words;
    }
    return 0;
}

static int reserve(struct backend_training *m, struct backend_state *s, uint64_t words,
                   struct error *e)
{
    struct stages *t = &m->stages;
    if (!t->open && s->driver->stream_open(s->gpu, false, &t->stream, e) < 0)
        return -1;
    t->open = true;
    if (words <= t->capacity)
        return 0;
    if (s->driver->wait(s->gpu, &s->stream, e) < 0)
        return -1;
    gpu_train_forget(m);
    release(s, t);
    return allocate(s, t, words, e);
}

/* To the stage on a stream of its own, and from there to where the kernels read. */
static int send(struct backend_state *s, struct stages *t, struct stage *stage, struct error *e)
{
    const struct gpu_driver *d = s->driver;
    const uint64_t bytes = stage->count * sizeof *stage->word;
    return d->send(s->gpu, &t->stream, stage->device, stage->word, bytes, e) < 0 ||
                   d->follow(s->gpu, &s->stream, &t->stream, e) < 0 ||
                   d->copy(s->gpu, &s->stream, t->current, stage->device, bytes, e) < 0 ||
                   d->mark(s->gpu, &stage->done, &s->stream, e) < 0
               ? -1
               : 0;
}

int gpu_train_stage(struct op_batch *p, struct error *e)
{
    struct backend_state *s = p->state;
    struct stages *t = &p->memory->stages;
    t->turn = (t->turn + 1) % STAGES;
    p->stage = &t->each[t->turn];
    if (reserve(p->memory, s, gpu_train_stage_most(&p->sizes), e) < 0 ||
        s->driver->reach(s->gpu, &p->stage->done, e) < 0)
        return -1;
    gpu_train_list(p);
    p->staged = t->current;
    return send(s, t, p->stage, e);
}

void gpu_train_stages_finish(const struct backend_state *s, struct stages *t)
{
    struct error ignored;
    if (t->open)
        s->driver->wait(s->gpu, &t->stream, &ignored);
    release(s, t);
    for (uint32_t k = 0; k < STAGES; k++)
        s->driver->event_close(s->gpu, &t->each[k].done);
    if (t->open)
        s->driver->stream_close(s->gpu, &t->stream);
    *t = (struct stages){0};
}
