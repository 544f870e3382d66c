/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and copies of the stages: words go from pinned memory on a stream of their own, while the pass before runs. */
#include "model/backend/gpu/train/train.h"

/* Memory of all stages; no pass uses it any more. */
static void release(const struct backend_state *s, struct stages *t)
{
    gpu_release(s, t->device);
    s->driver->release_pinned(s->gpu, t->words);
    t->device = t->words = NULL;
    t->capacity = 0;
}

static int allocate(const struct backend_state *s, struct stages *t, uint64_t words,
                    struct error *e)
{
    const uint64_t bytes = STAGES * words * sizeof *t->words;
    t->words = s->driver->allocate_pinned(s->gpu, bytes, e);
    t->device = t->words ? gpu_allocate(s, bytes, e) : NULL;
    if (!t->device)
        return -1;
    t->capacity = (uint32_t)words;
    for (uint32_t k = 0; k < STAGES; k++) {
        t->each[k].word = t->words + k * words;
        t->each[k].device = t->device + k * words;
    }
    return 0;
}

static int reserve(struct backend_state *s, struct stages *t, uint64_t words, struct error *e)
{
    if (!t->open && s->driver->stream_open(s->gpu, false, &t->stream, e) < 0)
        return -1;
    t->open = true;
    if (words <= t->capacity)
        return 0;
    if (s->driver->wait(s->gpu, &s->stream, e) < 0)
        return -1;
    release(s, t);
    return allocate(s, t, words, e);
}

static int send(struct backend_state *s, struct stages *t, const struct stage *stage,
                struct error *e)
{
    return s->driver->send(s->gpu, &t->stream, stage->device, stage->word,
                           stage->count * sizeof *stage->word, e) < 0
               ? -1
               : s->driver->follow(s->gpu, &s->stream, &t->stream, e);
}

int gpu_train_stage(struct op_batch *p, struct error *e)
{
    struct backend_state *s = p->state;
    struct stages *t = &p->memory->stages;
    t->turn = (t->turn + 1) % STAGES;
    p->stage = &t->each[t->turn];
    if (reserve(s, t, gpu_train_stage_most(&p->sizes), e) < 0 ||
        s->driver->reach(s->gpu, &p->stage->done, e) < 0)
        return -1;
    gpu_train_list(p);
    p->staged = p->stage->device;
    return send(s, t, p->stage, e);
}

int gpu_train_stage_end(struct op_batch *p, struct error *e)
{
    return p->state->driver->mark(p->state->gpu, &p->stage->done, &p->state->stream, e);
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
