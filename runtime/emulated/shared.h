/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory under watch. Each 4 bytes remember who wrote and who read them since which
   barrier, so that a missing barrier is an error whatever order the threads happened to run in;
   so are accesses outside, misaligned ones, and reads of what nobody wrote. */
#pragma once
#include "block.h"

/* Tags: epoch * 2048 + thread. */
enum { TAG_EPOCH = 2048, TAG_MANY = TAG_EPOCH - 1 };

struct shadow {
    uint32_t write, read; /* 0: never; read may say TAG_MANY */
};

static void refuse_access(const char *what, const void *p)
{
    struct block *b = the_block;
    snprintf(b->launch->error, sizeof b->launch->error,
             "block %u: thread %u %s at byte %lld of %u of shared memory", b->launch->block,
             b->current, what, (long long)((const uint8_t *)p - b->shared),
             b->launch->shared_bytes);
    fail_block(b);
}

/* Another thread touched it since the last barrier. */
static inline bool is_others(uint32_t tag, uint32_t mine)
{
    return (tag / TAG_EPOCH == mine / TAG_EPOCH) & (tag != mine);
}

static inline struct shadow *shadow_of(const void *p, uint32_t bytes)
{
    struct block *b = the_block;
    uint64_t offset = (uint64_t)((const uint8_t *)p - b->shared);
    if (offset > b->launch->shared_bytes || bytes > b->launch->shared_bytes - offset)
        refuse_access("goes outside", p);
    if (offset % bytes)
        refuse_access("is misaligned", p);
    return b->shadow + offset / 4;
}

/* What is wrong with the access, once it is known that something is. */
static __attribute__((noinline)) void explain_read(const void *p, const struct shadow *s,
                                                   uint32_t words)
{
    bool written = true;
    for (uint32_t k = 0; k < words; k++)
        written &= s[k].write != 0;
    refuse_access(written ? "reads what another wrote since the last barrier"
                          : "reads what nobody wrote",
                  p);
}

static inline void watch_read(const void *p, uint32_t bytes)
{
    struct shadow *s = shadow_of(p, bytes);
    uint32_t mine = the_block->epoch * TAG_EPOCH + the_block->current;
    bool wrong = false;
    for (uint32_t k = 0; k < bytes / 4; k++)
        wrong |= !s[k].write | is_others(s[k].write, mine);
    if (__builtin_expect(wrong, 0))
        explain_read(p, s, bytes / 4);
    for (uint32_t k = 0; k < bytes / 4; k++)
        s[k].read = is_others(s[k].read, mine) ? mine | TAG_MANY : mine;
}

static inline void watch_write(const void *p, uint32_t bytes)
{
    struct shadow *s = shadow_of(p, bytes);
    uint32_t mine = the_block->epoch * TAG_EPOCH + the_block->current;
    for (uint32_t k = 0; k < bytes / 4; k++) {
        if (is_others(s[k].write, mine))
            refuse_access("writes what another wrote since the last barrier", p);
        if (is_others(s[k].read, mine))
            refuse_access("writes what another read since the last barrier", p);
        s[k].write = mine;
    }
}

/* Tags have room for 2^21 barriers; then the past becomes one epoch. */
static void forget_past(struct block *b)
{
    for (uint32_t k = 0; k < b->launch->shared_bytes / 4; k++)
        b->shadow[k] = (struct shadow){.write = b->shadow[k].write ? 1 : 0};
    b->epoch = 1;
}
