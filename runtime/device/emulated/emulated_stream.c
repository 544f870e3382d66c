/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/emulated/emulated_stream.h"
#include "masks/base/memory.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct emulated_recording {
    struct emulated_work *work; /* their arguments are the recording's */
    uint32_t count, capacity;
};

struct emulated_stream {
    struct emulated_recording *records; /* null: work runs */
};

struct emulated_stream *emulated_stream_new(void)
{
    return memory_new(1, sizeof(struct emulated_stream));
}

void emulated_recording_destroy(struct emulated_recording *r)
{
    for (uint32_t k = 0; k < r->count; k++)
        free((void *)(uintptr_t)r->work[k].arguments);
    free(r->work);
    free(r);
}

void emulated_stream_destroy(struct emulated_stream *s)
{
    if (s && s->records)
        emulated_recording_destroy(s->records);
    free(s);
}

/* Aligned as the arguments of kernels are. */
static void *copy(const void *arguments, size_t bytes)
{
    void *ret = memory_aligned(bytes, 1);
    return memcpy(ret, arguments, bytes);
}

int emulated_submit(struct emulated_stream *s, const struct emulated_work *w, struct error *e)
{
    if (!emulated_records(s))
        return w->run(w->arguments, e);
    struct emulated_recording *r = s->records;
    *MEMORY_PUSH(r->work, r->count, r->capacity) =
        (struct emulated_work){w->run, copy(w->arguments, w->bytes), w->bytes};
    return 0;
}

/* ---- launches ---- */

/* A launch in one piece: its arguments follow at ARGS. */
enum { ARGS = 64 };
_Static_assert(sizeof(struct emulated_launch) <= ARGS, "the arguments come behind it");

static int run_launch(const void *arguments, struct error *e)
{
    const struct emulated_launch *l = arguments;
    return emulated_run(l->text, l->entry, (const uint8_t *)arguments + ARGS, &l->grid, e);
}

int emulated_submit_launch(struct emulated_stream *s, const struct emulated_launch *l,
                           struct error *e)
{
    if (!emulated_records(s))
        return emulated_run(l->text, l->entry, l->args, &l->grid, e);
    const struct emulated_work w = {run_launch, memory_aligned(ARGS + l->bytes, 1),
                                    ARGS + l->bytes};
    uint8_t *own = (uint8_t *)(uintptr_t)w.arguments;
    memcpy(own, l, sizeof *l);
    memcpy(own + ARGS, l->args, l->bytes);
    const int r = emulated_submit(s, &w, e);
    free(own);
    return r;
}

/* ---- recordings ---- */

int emulated_record(struct emulated_stream *s, struct error *e)
{
    if (s->records)
        return error_set(e, ERROR_UNAVAILABLE, "emulated: the stream records already");
    s->records = memory_new(1, sizeof *s->records);
    return 0;
}

bool emulated_records(const struct emulated_stream *s)
{
    return s && s->records;
}

struct emulated_recording *emulated_record_end(struct emulated_stream *s, struct error *e)
{
    struct emulated_recording *ret = s->records;
    s->records = NULL;
    if (!ret)
        error_set(e, ERROR_UNAVAILABLE, "emulated: the stream does not record");
    return ret;
}

int emulated_replay(struct emulated_stream *s, const struct emulated_recording *r,
                    struct error *e)
{
    for (uint32_t k = 0; k < r->count; k++)
        if (emulated_submit(s, &r->work[k], e) < 0)
            return -1;
    return 0;
}
