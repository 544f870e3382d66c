/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA text in one piece that runs on this CPU. It implements the device "emulated", for kernels of any
   kind. */
#pragma once
#include "masks/base/error.h"
#include <stdint.h>

struct emulated_text;

/* Compiles the text (source_flatten's) with the host compiler, or takes it from the cache. `name` is
   for messages: "emulation of NAME: ..". Null with *e set. */
struct emulated_text *emulated_open(const char *text, const char *name, struct error *e);
void emulated_close(struct emulated_text *t); /* null is fine */
/* 0, or -1 with *e set where the text has no such entry. */
int emulated_find(const struct emulated_text *t, const char *entry, struct error *e);

struct emulated_grid {
    uint32_t blocks, threads, shared_bytes; /* threads and dynamic shared memory of a block */
    uint32_t waves;                         /* of so many blocks each; 0: one */
};
/* Runs all blocks of an entry with *args, which are what the entry takes. Blocks run side by side on
   OpenMP's threads, each watched. ERROR_FALSE where the kernel did wrong. */
int emulated_run(const struct emulated_text *t, const char *entry, const void *args,
                 const struct emulated_grid *grid, struct error *e);
