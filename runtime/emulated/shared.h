/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory under watch. Each 4 bytes remember who wrote and who read them since which
   barrier, so that a missing barrier is an error whatever order the threads happened to run in;
   so are accesses outside, misaligned ones, reads of what nobody wrote, and any access to what a
   copy is still on its way to. */
#pragma once
#include "banks.h"

/* Tags: the barriers that the block has passed (32 bits), the warp barriers since then (20), and
   who (12): a thread, several of a warp (readers), several warps, and whether a copy is on its way
   (writers). */
enum {
    WHO_WARP = 1024,
    WHO_MANY = 2047,
    UNDER_WAY = 2048,
    WARP_EPOCH = 4096,
    MAX_WARP_EPOCH = 0xfffff
};

struct shadow {
    uint64_t write, read; /* 0: never */
};

static __attribute__((noinline)) void refuse_access(const char *what, const void *p,
                                                    struct place at)
{
    struct block *b = the_block;
    snprintf(b->launch->error, sizeof b->launch->error,
             "block %u: thread %u %s at byte %lld of %u of shared memory, in %s (line %d)",
             b->launch->block, b->face.current, what,
             (long long)((const uint8_t *)p - b->face.shared), b->launch->shared_bytes,
             at.function, at.line);
    fail_block(b);
}

static inline uint64_t my_tag(void)
{
    const struct block *b = the_block;
    uint32_t passed = b->warp_epoch[b->face.current / WARP];
    uint64_t warp_epoch = passed < MAX_WARP_EPOCH ? passed : MAX_WARP_EPOCH;
    return (uint64_t)b->epoch << 32 | warp_epoch * WARP_EPOCH | b->face.current;
}

/* No barrier that both passed lies between the access of the tag and mine. */
static inline bool is_others(uint64_t tag, uint64_t mine)
{
    uint32_t who = tag & 2047, me = mine & 2047;
    if (tag >> 32 != mine >> 32 || who == me)
        return false;
    if (who < WHO_WARP ? who / WARP == me / WARP : who == WHO_WARP + me / WARP)
        return (tag ^ mine) / WARP_EPOCH == 0;
    return true;
}

/* Complete, and from before the last barrier: most of what is read. */
static inline bool is_settled(uint64_t tag, uint64_t mine)
{
    return tag && !(tag & UNDER_WAY) && tag >> 32 != mine >> 32;
}

/* The readers so far, and me. */
static inline uint64_t join_readers(uint64_t tag, uint64_t mine)
{
    if (tag >> 32 != mine >> 32 || tag == mine)
        return mine;
    uint32_t who = tag & 2047, warp = (mine & 2047) / WARP;
    if (!is_others(tag, mine))
        return mine;
    bool same_warp = who < WHO_WARP ? who / WARP == warp : who == WHO_WARP + warp;
    return (mine & ~(uint64_t)2047) | (same_warp ? WHO_WARP + warp : WHO_MANY);
}

/* Its shadow; what the access asks of the banks is noted. */
static inline struct shadow *shadow_of(const void *p, uint32_t bytes,
                                       enum emulation_access access, struct place at)
{
    struct block *b = the_block;
    uint64_t offset = (uint64_t)((const uint8_t *)p - b->face.shared);
    if (offset > b->launch->shared_bytes || bytes > b->launch->shared_bytes - offset)
        refuse_access("goes outside", p, at);
    if (offset & (bytes - 1))
        refuse_access("is misaligned", p, at);
    if (b->lately)
        note_access((uint32_t)offset, bytes, access, at);
    return b->shadow + offset / 4;
}

/* Reports the error of an access that is known to be wrong. */
static __attribute__((noinline)) void explain_read(const void *p, const struct shadow *s,
                                                   uint32_t words, struct place at)
{
    bool written = true, under_way = false;
    for (uint32_t k = 0; k < words; k++) {
        written &= s[k].write != 0;
        under_way |= (s[k].write & UNDER_WAY) != 0;
    }
    refuse_access(under_way ? "reads what a copy has still to bring"
                  : written ? "reads what another wrote since the last barrier"
                            : "reads what nobody wrote",
                  p, at);
}

static inline void watch_access(const void *p, uint32_t bytes, enum emulation_access access,
                                struct place at)
{
    struct shadow *s = shadow_of(p, bytes, access, at);
    const uint64_t mine = my_tag();
    bool wrong = false;
    for (uint32_t k = 0; k < bytes / 4; k++)
        if (!is_settled(s[k].write, mine))
            wrong |= !s[k].write || s[k].write & UNDER_WAY || is_others(s[k].write, mine);
    if (__builtin_expect(wrong, 0))
        explain_read(p, s, bytes / 4, at);
    for (uint32_t k = 0; k < bytes / 4; k++)
        s[k].read = join_readers(s[k].read, mine);
}

static inline void watch_read(const void *p, uint32_t bytes, struct place at)
{
    watch_access(p, bytes, EMULATION_READ, at);
}

/* under_way: 0, or UNDER_WAY where a copy begins. */
static inline void watch_write(const void *p, uint32_t bytes, uint32_t under_way,
                               struct place at)
{
    struct shadow *s = shadow_of(p, bytes, under_way ? EMULATION_COPY : EMULATION_WRITE, at);
    const uint64_t mine = my_tag();
    for (uint32_t k = 0; k < bytes / 4; k++) {
        if (s[k].write & UNDER_WAY)
            refuse_access("writes where a copy is still on its way", p, at);
        if (is_others(s[k].write, mine))
            refuse_access("writes what another wrote since the last barrier", p, at);
        if (is_others(s[k].read, mine))
            refuse_access("writes what another read since the last barrier", p, at);
        s[k].write = mine | under_way;
    }
}
