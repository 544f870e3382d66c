/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of a pass, each stored once. */
#pragma once
#include "gen/tables/pass.h"

struct pattern_index {
    u32 *slot; /* 1 + index of a pattern, or 0; open addressing, a power of two */
    uint64_t capacity;
};

/* 1 + index of these block_rows words among the patterns of the pass, which get them where they lack them. */
u32 pattern_intern(struct plan_pass *t, struct pattern_index *index, const u32 *words,
                   uint32_t block_rows);
