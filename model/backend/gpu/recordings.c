/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of forward passes. A workspace keeps the last few sizes of batches. A batch that cannot be recorded runs as it
   is. */
#include "model/backend/gpu/workspace.h"
#include <string.h>

static void forget(struct backend_workspace *m, struct recorded *r)
{
    if (r->recording)
        m->state->driver->forget(m->state->gpu, r->recording);
    r->recording = NULL;
}

void gpu_forget_all(struct backend_workspace *m)
{
    for (uint32_t k = 0; k < m->n_recorded; k++)
        forget(m, &m->recorded[k]);
    m->n_recorded = m->next = 0;
}

static struct recorded *find(struct backend_workspace *m, const struct batch_size *size)
{
    for (uint32_t k = 0; k < m->n_recorded; k++)
        if (!memcmp(&m->recorded[k].size, size, sizeof *size))
            return &m->recorded[k];
    return NULL;
}

/* A place for this size. Where all are taken the oldest one gives way. */
static void remember(struct backend_workspace *m, const struct batch_size *size)
{
    struct recorded *to = &m->recorded[m->next];
    if (m->next < m->n_recorded)
        forget(m, to);
    *to = (struct recorded){.size = *size};
    m->n_recorded += m->n_recorded < MOST_RECORDINGS;
    m->next = (m->next + 1) % MOST_RECORDINGS;
}

static int record(struct backend_workspace *m, const struct gpu_replayable *batch,
                  struct recorded *to, struct error *e)
{
    const struct backend_state *s = m->state;
    struct error ignored;
    if (s->driver->record(s->gpu, &m->stream, e) < 0)
        return -1;
    int r = batch->run(batch->context, e);
    to->recording = s->driver->record_end(s->gpu, &m->stream, r < 0 ? &ignored : e);
    return r < 0 || !to->recording ? -1 : 0;
}

int gpu_run_or_replay(struct backend_workspace *m, const struct gpu_replayable *batch,
                      struct error *e)
{
    struct recorded *r = find(m, &batch->size);
    struct error ignored;
    if (!r) {
        remember(m, &batch->size);
        return batch->run(batch->context, e);
    }
    if (!r->recording && record(m, batch, r, &ignored) < 0)
        return batch->run(batch->context, e);
    return m->state->driver->replay(m->state->gpu, &m->stream, r->recording, e);
}
