/* SPDX-License-Identifier: Apache-2.0 */
/* AMX: eight registers of 16 rows x 64 bytes, and C += A B on them with bf16 pairs. The compilers
   have no common builtins for it, so the instructions are asm, and they stand in this file alone.
   Four registers hold a 32 x 32 block of C, two hold A's row blocks and two B's column blocks. */
#ifndef MASKC_CPU_AMX_H
#define MASKC_CPU_AMX_H

struct tile_config {
    u8 palette, start, reserved[14];
    u16 row_bytes[16];
    u8 rows[16];
};

/* At the entry of a phase, in each thread. */
INLINE void matrix_begin(void)
{
    const struct tile_config config = {
        .palette = 1,
        .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
        .rows = {16, 16, 16, 16, 16, 16, 16, 16},
    };
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

/* At its end: what follows in this thread saves no tiles, and who waits for it finds what was written past
   the caches. */
INLINE void matrix_end(void)
{
    __asm__ volatile("tilerelease\n\tsfence" ::: "memory");
}

#define TILE_LOAD(t, from, stride)                   \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t \
                     :                               \
                     : "r"(from), "r"((i64)(stride)) \
                     : "memory")
/* The same of what is used once and would only drive out what is used again. */
#define TILE_STREAM(t, from, stride)                   \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #t \
                     :                                 \
                     : "r"(from), "r"((i64)(stride))   \
                     : "memory")
#define TILE_STORE(t, to, stride)                        \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" \
                     :                                   \
                     : "r"(to), "r"((i64)(stride))       \
                     : "memory")
#define TILE_ZERO(t)          __asm__ volatile("tilezero %tmm" #t)
#define TILE_PRODUCT(c, a, b) __asm__ volatile("tdpbf16ps %tmm" #b ", %tmm" #a ", %tmm" #c)

/* Row blocks of C to be worked on (bits of `live`), by column blocks (1 or 2). */
INLINE void block_zero(u32 live, u32 columns)
{
    if (live & 1) {
        TILE_ZERO(0);
        if (columns > 1)
            TILE_ZERO(1);
    }
    if (live & 2) {
        TILE_ZERO(2);
        if (columns > 1)
            TILE_ZERO(3);
    }
}

INLINE void block_load(const float *c, u32 stride, u32 live, u32 columns)
{
    if (live & 1) {
        TILE_LOAD(0, c, 4 * stride);
        if (columns > 1)
            TILE_LOAD(1, c + 16, 4 * stride);
    }
    if (live & 2) {
        TILE_LOAD(2, c + 16 * stride, 4 * stride);
        if (columns > 1)
            TILE_LOAD(3, c + 16 * stride + 16, 4 * stride);
    }
}

INLINE void block_store(float *c, u32 stride, u32 live, u32 columns)
{
    if (live & 1) {
        TILE_STORE(0, c, 4 * stride);
        if (columns > 1)
            TILE_STORE(1, c + 16, 4 * stride);
    }
    if (live & 2) {
        TILE_STORE(2, c + 16 * stride, 4 * stride);
        if (columns > 1)
            TILE_STORE(3, c + 16 * stride + 16, 4 * stride);
    }
}

/* C += A B over a depth of 32. A: rows of bf16, stride_a apart. B: two blocks of 16 columns, in rows
   of pairs, stride_b pairs apart; row k has elements 2 k and 2 k + 1. */
INLINE void block_step(const u16 *a, u32 stride_a, const void *b0, const void *b1, u32 stride_b,
                       u32 live, u32 columns)
{
    TILE_STREAM(6, b0, 4 * stride_b);
    if (columns > 1)
        TILE_STREAM(7, b1, 4 * stride_b);
    if (live & 1) {
        TILE_LOAD(4, a, 2 * stride_a);
        TILE_PRODUCT(0, 4, 6);
        if (columns > 1)
            TILE_PRODUCT(1, 4, 7);
    }
    if (live & 2) {
        TILE_LOAD(5, a + 16 * stride_a, 2 * stride_a);
        TILE_PRODUCT(2, 5, 6);
        if (columns > 1)
            TILE_PRODUCT(3, 5, 7);
    }
}

#endif
