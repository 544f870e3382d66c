/* SPDX-License-Identifier: Apache-2.0 */
/* AMX: eight registers of 16 rows x 64 bytes, and C += A B on them with bf16 pairs. The compilers
   have no common builtins for it, so the instructions are asm, all of them in this file: tests
   replace it on CPUs without AMX. */
#ifndef MASKC_CPU_MATRIX_AMX_H
#define MASKC_CPU_MATRIX_AMX_H
#include "cpu/vector.h"

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

/* At the end of a phase: releases the tiles, and makes writes past the caches visible to other threads. */
INLINE void matrix_end(void)
{
    __asm__ volatile("tilerelease\n\tsfence" ::: "memory");
}

#define TILE_LOAD(t, from, stride)                   \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t \
                     :                               \
                     : "r"(from), "r"((i64)(stride)) \
                     : "memory")
/* The same for data that is used once and should not stay in the caches. */
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

#endif
