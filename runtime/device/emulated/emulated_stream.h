/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of the device "emulated". It runs work when it is given, or records it: recorded work does not run, and a replay
   runs it with the arguments that it had. For one thread at a time. */
#pragma once
#include "masks/base/error.h"
#include "runtime/device/emulated/emulated_text.h"
#include <stdbool.h>
#include <stddef.h>

struct emulated_stream;
struct emulated_recording;

struct emulated_stream *emulated_stream_new(void);
void emulated_stream_destroy(struct emulated_stream *s); /* null is fine */

/* A function and its arguments, which a recording copies. Returns 0, or -1 with *e set. */
struct emulated_work {
    int (*run)(const void *arguments, struct error *e);
    const void *arguments;
    size_t bytes;
};
/* A null stream runs it. */
int emulated_submit(struct emulated_stream *s, const struct emulated_work *w, struct error *e);

/* A launch of emulated_run(), whose arguments a recording copies, too. */
struct emulated_launch {
    const struct emulated_text *text;
    const char *entry;
    struct emulated_grid grid;
    const void *args;
    size_t bytes; /* of the longest arguments of the text */
};
int emulated_submit_launch(struct emulated_stream *s, const struct emulated_launch *l,
                           struct error *e);

/* -1 with *e set if it records already. */
int emulated_record(struct emulated_stream *s, struct error *e);
bool emulated_records(const struct emulated_stream *s); /* null: false */
/* Null with *e set if nothing is recorded. */
struct emulated_recording *emulated_record_end(struct emulated_stream *s, struct error *e);
int emulated_replay(struct emulated_stream *s, const struct emulated_recording *r,
                    struct error *e);
void emulated_recording_destroy(struct emulated_recording *r);
