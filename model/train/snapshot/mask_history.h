/* SPDX-License-Identifier: Apache-2.0 */
/* The masks that a run had while it learned them, by the states that it keeps (--save-every, --keep). */
#pragma once
#include "masks/mask.h"

struct mask_frame {
    uint64_t step;
    struct mask *mask; /* what alpha had above 0 then: [layers or 1][heads] */
};

struct mask_history {
    struct mask_frame *frame; /* by ascending step */
    uint32_t frames, capacity;
};

/* A run without a state in which a mask was learned is an error. */
int mask_history_read(const char *run, struct mask_history *ret, struct error *e);
void mask_history_finish(struct mask_history *h); /* a zeroed one is fine */
