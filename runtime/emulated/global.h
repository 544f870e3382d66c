/* SPDX-License-Identifier: Apache-2.0 */
/* Global memory by which the threads of a block hand something on, under watch: the latest writes are
   remembered, so that a barrier that is missing between one and a read of it is an error whatever order the
   threads happened to run in. A write whose place in the table another one took is forgotten: there are many
   more for each barrier. */
#pragma once
#include "shared.h"

enum { LATEST = 4096 };

struct latest {
    struct {
        const void *p;
        uint64_t write; /* a tag of shared.h */
    } at[LATEST];
};

static uint32_t latest_place(const void *p)
{
    return (uint32_t)((uintptr_t)p / sizeof(float) % LATEST);
}

static void watch_global_write(const void *p)
{
    uint32_t k = latest_place(p);
    the_block->latest->at[k].p = p;
    the_block->latest->at[k].write = my_tag();
}

static void watch_global_read(const void *p, struct place at)
{
    struct block *b = the_block;
    uint32_t k = latest_place(p);
    if (b->latest->at[k].p != p || !is_others(b->latest->at[k].write, my_tag()))
        return;
    snprintf(b->launch->error, sizeof b->launch->error,
             "block %u: thread %u reads from global memory what another wrote since the last "
             "barrier, in %s (line %d)",
             b->launch->block, b->face.current, at.function, at.line);
    fail_block(b);
}
