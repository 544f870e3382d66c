/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of work on a stream, by a key that all arguments of its launches depend on. The first work of a key runs as it is,
   so that what a library does once is done; the second is recorded, and its recording is replayed from then on. */
#pragma once
#include "model/backend/gpu/gpu.h"

enum { RECORDINGS_MOST = 32 };

/* The work of one key. It may have several segments, between which the host or other streams do something. */
struct recorded {
    void *key;
    size_t key_bytes;
    struct recording **segment; /* null: not recorded yet */
    bool repeats;               /* there was work with this key before */
};

struct recordings {
    uint32_t segments; /* of each key, at most */
    struct recorded each[RECORDINGS_MOST];
    uint32_t count, next; /* next: the one that is replaced if all are used */
};

/* A part of the work. */
struct segment {
    struct recorded *of;
    uint32_t index;
    int (*run)(void *context, uint32_t index, struct error *e);
    void *context;
};

/* Returns the key's entry, which may be a new one in the place of the oldest. Valid until the next call. */
struct recorded *gpu_recordings_find(const struct backend_state *s, struct recordings *all,
                                     const void *key, size_t bytes);
void gpu_recordings_forget(const struct backend_state *s, struct recordings *all);
/* Returns the segment's recording and makes it if there is none. Null with *e set if it cannot be made; then nothing has run.
   Launches are not counted here but when the recording is replayed. */
const struct recording *gpu_recording_of(const struct backend_state *s,
                                         struct gpu_stream *stream, const struct segment *part,
                                         struct error *e);
