/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's work on a device that is not the CPU: the same steps as model/cpu/forward.c and model/heads.c,
   each over the whole batch. */
#pragma once
#include "model/encoder.h"

/* A room's memory on the device, and recordings of batches that were run before; zeroed: empty. */
struct device_arena;
void device_arena_finish(const struct backend *b, struct device_arena *a); /* null is fine */

/* engine_encode's work once the batch is checked: `tokens` in all, the longest sequence `longest`.
   The last hidden states stay on the device. */
int device_encode(const struct engine *g, const struct sequence *list, uint32_t n,
                  uint32_t tokens, uint32_t longest, struct engine_room *room, struct error *e);

/* room->hidden, from the device. */
int device_fetch(const struct engine *g, struct engine_room *room, struct error *e);

/* The mean of each sequence's hidden states: [sequences, H] f32. */
int device_mean(const struct engine *g, struct engine_room *room, float *ret, struct error *e);

/* A head over some rows of the last hidden states: first product, norm, last product as in model/heads.c
   (each may be null, not all); [n, out] f32 into ret. */
int device_head(const struct engine *g, struct engine_room *room, const struct linear *first,
                const struct norm *norm, const struct linear *last, const uint32_t *rows,
                uint32_t n, float *ret, struct error *e);
