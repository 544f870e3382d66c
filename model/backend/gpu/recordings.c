/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/gpu/recordings.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* ---- keeping ---- */

static void forget(const struct backend_state *s, struct recorded *r, uint32_t segments)
{
    for (uint32_t k = 0; k < segments; k++)
        if (r->segment[k])
            s->driver->forget(s->gpu, r->segment[k]);
    free(r->segment);
    free(r->key);
    *r = (struct recorded){0};
}

void gpu_recordings_forget(const struct backend_state *s, struct recordings *all)
{
    for (uint32_t k = 0; k < all->count; k++)
        forget(s, &all->each[k], all->segments);
    all->count = all->next = 0;
}

static struct recorded *find(struct recordings *all, const void *key, size_t bytes)
{
    for (uint32_t k = 0; k < all->count; k++) {
        struct recorded *r = &all->each[k];
        if (r->key_bytes == bytes && !memcmp(r->key, key, bytes))
            return r;
    }
    return NULL;
}

/* A place for this key. If all are used, the oldest one is forgotten. */
static struct recorded *remember(const struct backend_state *s, struct recordings *all,
                                 const void *key, size_t bytes)
{
    struct recorded *ret = &all->each[all->next];
    if (all->next < all->count)
        forget(s, ret, all->segments);
    *ret = (struct recorded){.key = memory_copy(key, bytes),
                             .key_bytes = bytes,
                             .segment = memory_new(all->segments, sizeof(struct recording *))};
    all->count += all->count < RECORDINGS_MOST;
    all->next = (all->next + 1) % RECORDINGS_MOST;
    return ret;
}

struct recorded *gpu_recordings_find(const struct backend_state *s, struct recordings *all,
                                     const void *key, size_t bytes)
{
    struct recorded *ret = find(all, key, bytes);
    if (!ret)
        return remember(s, all, key, bytes);
    ret->repeats = true;
    return ret;
}

/* ---- recording ---- */

static struct recording *record(const struct backend_state *s, struct gpu_stream *stream,
                                const struct segment *part, struct error *e)
{
    struct error ignored;
    if (s->driver->record(s->gpu, stream, e) < 0)
        return NULL;
    const int r = part->run(part->context, part->index, e);
    struct recording *ret = s->driver->record_end(s->gpu, stream, r < 0 ? &ignored : e);
    if (r == 0)
        return ret;
    if (ret)
        s->driver->forget(s->gpu, ret);
    return NULL;
}

const struct recording *gpu_recording_of(const struct backend_state *s,
                                         struct gpu_stream *stream, const struct segment *part,
                                         struct error *e)
{
    struct recording **to = &part->of->segment[part->index];
    const uint64_t before = stream->launches;
    if (!*to) {
        *to = record(s, stream, part, e);
        stream->launches = before;
    }
    return *to;
}
