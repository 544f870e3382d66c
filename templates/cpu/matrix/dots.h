/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of bf16 pairs, VDPBF16PS: each lane adds the products of its two. Twice a multiply-add's
   work in its time where the processor has it whole. The compilers have no common builtin for it. */
#ifndef MASKC_CPU_MATRIX_DOTS_H
#define MASKC_CPU_MATRIX_DOTS_H
#include "cpu/vector.h"

#define DOT(sum, a, b) __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))

typedef u32 word_at __attribute__((aligned(2), may_alias));

/* The pair at `p` in all lanes. */
INLINE vec pair_splat(const u16 *p)
{
    return (vec)((uvec){0} + *(const word_at *)p);
}

INLINE void matrix_begin(void)
{
}

/* At the end of a phase: makes writes past the caches visible to other threads. */
INLINE void matrix_end(void)
{
    __asm__ volatile("sfence" ::: "memory");
}

#endif
