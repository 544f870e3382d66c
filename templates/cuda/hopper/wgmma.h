/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous products of a warpgroup (wgmma): 64 x n sums in float, k = 16 at a time, operands in bf16 or f16 by DTYPE.
   The emulation has its own version of each.

   Warp w of a warpgroup holds rows 16 w .. 16 w + 15 of the sums: for each 8 columns a struct frag_c, four floats of d. A
   first operand in registers is a struct frag_a of the warp's 16 rows. Both are those of mma_16816 (matrix.h). */
#ifndef MASKC_CUDA_HOPPER_WGMMA_H
#define MASKC_CUDA_HOPPER_WGMMA_H
#include "cuda/common/matrix.h"

/* Descriptor of an operand in shared memory under the swizzle of 128 bytes: rows of 128 bytes, groups of 8 rows 1024 bytes
   apart. k contiguous: the next 16 of k are 32 bytes further. n contiguous: the next 16 of k are 2048 bytes further, and
   `leading` is the distance in bytes between parts of 64 columns. Addresses are below 2^18. */
DEVICE u64 matrix_descriptor(u32 at, u32 leading)
{
    return (u64)(at >> 4) | (u64)(leading >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

/* Descriptor of the operand so many bytes further, by one addition to the low word. */
DEVICE u64 matrix_further(u64 descriptor, u32 bytes)
{
    return (descriptor & 0xffffffff00000000u) | (u32)((u32)descriptor + (bytes >> 4));
}

#ifndef MASKC_EMULATION

/* ---- the registers of n / 2 sums: their numbers in an asm statement, and the operands themselves ---- */

/* clang-format off */
#define WGMMA_NAMES_16  "%0, %1, %2, %3, %4, %5, %6, %7"
#define WGMMA_NAMES_32  WGMMA_NAMES_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_NAMES_48  WGMMA_NAMES_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define WGMMA_NAMES_64  WGMMA_NAMES_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_NAMES_80  WGMMA_NAMES_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define WGMMA_NAMES_96  WGMMA_NAMES_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define WGMMA_NAMES_112 WGMMA_NAMES_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define WGMMA_NAMES_128 WGMMA_NAMES_112 ", %56, %57, %58, %59, %60, %61, %62, %63"

#define WGMMA_SUMS_16(d)  WGMMA_EIGHT(d, 0)
#define WGMMA_SUMS_32(d)  WGMMA_SUMS_16(d), WGMMA_EIGHT(d, 8)
#define WGMMA_SUMS_48(d)  WGMMA_SUMS_32(d), WGMMA_EIGHT(d, 16)
#define WGMMA_SUMS_64(d)  WGMMA_SUMS_48(d), WGMMA_EIGHT(d, 24)
#define WGMMA_SUMS_80(d)  WGMMA_SUMS_64(d), WGMMA_EIGHT(d, 32)
#define WGMMA_SUMS_96(d)  WGMMA_SUMS_80(d), WGMMA_EIGHT(d, 40)
#define WGMMA_SUMS_112(d) WGMMA_SUMS_96(d), WGMMA_EIGHT(d, 48)
#define WGMMA_SUMS_128(d) WGMMA_SUMS_112(d), WGMMA_EIGHT(d, 56)
#define WGMMA_EIGHT(d, i) \
    "+f"((d)[i]), "+f"((d)[i + 1]), "+f"((d)[i + 2]), "+f"((d)[i + 3]), "+f"((d)[i + 4]), "+f"((d)[i + 5]), \
    "+f"((d)[i + 6]), "+f"((d)[i + 7])

/* n, and the numbers of the operands after the sums: n / 2, n / 2 + 1, ... */
#define WGMMA_EACH_SS(row) row(32, 16, 17, 18) row(64, 32, 33, 34) row(128, 64, 65, 66)
#define WGMMA_EACH_RK(row) \
    row(32, 16, 17, 18, 19, 20, 21) row(64, 32, 33, 34, 35, 36, 37) row(128, 64, 65, 66, 67, 68, 69)
#define WGMMA_EACH_RS(row) \
    row(16, 8, 9, 10, 11, 12, 13)   row(32, 16, 17, 18, 19, 20, 21) row(48, 24, 25, 26, 27, 28, 29) \
    row(64, 32, 33, 34, 35, 36, 37) row(80, 40, 41, 42, 43, 44, 45) row(96, 48, 49, 50, 51, 52, 53) \
    row(112, 56, 57, 58, 59, 60, 61) row(128, 64, 65, 66, 67, 68, 69)
/* clang-format on */

/* ---- one statement for each n and type ---- */

#define WGMMA_TEXT(n, type, operands, scale, tail)                               \
    "{\n.reg .pred p;\nsetp.ne.b32 p, " scale ", 0;\n"                           \
    "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" /* d */ \
        WGMMA_NAMES_##n "}, " operands ", p, 1, 1, " tail ";\n}"

#define WGMMA_SS_AS(n, type, a, b, scale)                                 \
    asm volatile(WGMMA_TEXT(n, type, "%" #a ", %" #b, "%" #scale, "0, 0") \
                 : WGMMA_SUMS_##n(d)                                      \
                 : "l"(a_at), "l"(b_at), "r"(accumulate))

#define WGMMA_SS(n_, a, b, scale)                 \
    if (n == n_) {                                \
        if (DTYPE == ABI_F16)                     \
            WGMMA_SS_AS(n_, "f16", a, b, scale);  \
        else                                      \
            WGMMA_SS_AS(n_, "bf16", a, b, scale); \
    }

#define WGMMA_R_AS(n, type, a0, a1, a2, a3, b, scale, tail)                            \
    asm volatile(WGMMA_TEXT(n, type, "{%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b, \
                            "%" #scale, tail)                                          \
                 : WGMMA_SUMS_##n(d)                                                   \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_at), "r"(accumulate))

#define WGMMA_R(n_, a0, a1, a2, a3, b, scale, tail)                 \
    if (n == n_) {                                                  \
        if (DTYPE == ABI_F16)                                       \
            WGMMA_R_AS(n_, "f16", a0, a1, a2, a3, b, scale, tail);  \
        else                                                        \
            WGMMA_R_AS(n_, "bf16", a0, a1, a2, a3, b, scale, tail); \
    }
#define WGMMA_RK(n, a0, a1, a2, a3, b, scale) WGMMA_R(n, a0, a1, a2, a3, b, scale, "0")
#define WGMMA_RS(n, a0, a1, a2, a3, b, scale) WGMMA_R(n, a0, a1, a2, a3, b, scale, "1")

/* ---- products (collective in a warpgroup); n is a constant after inlining ---- */

/* d = a b^T, or d += a b^T: both operands in shared memory, k contiguous; n = 32, 64, 128. */
DEVICE void wgmma_ss(u32 n, float *d, u64 a_at, u64 b_at,
                     u32 accumulate){WGMMA_EACH_SS(WGMMA_SS)}

/* The first operand in registers, the second in shared memory, n contiguous; n = 16, 32, .. 128. */
DEVICE void wgmma_rs(u32 n, float *d, const u32 *a, u64 b_at,
                     u32 accumulate){WGMMA_EACH_RS(WGMMA_RS)}

/* The first operand in registers, the second in shared memory, k contiguous; n = 32, 64, 128. */
DEVICE void wgmma_rk(u32 n, float *d, const u32 *a, u64 b_at,
                     u32 accumulate){WGMMA_EACH_RK(WGMMA_RK)}

/* Before the first product, and after other code has changed registers of the next one. */
DEVICE void wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* The warpgroup's products since the last commit become one group. */
DEVICE void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* All but the newest n groups (a constant) have ended. */
#define WGMMA_WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")

/* Pin the first n floats or words of an array: after a wait, nothing else keeps the compiler from moving uses of sums
   before it. n is a constant after inlining. */
DEVICE void hold_floats(float *x, u32 n)
{
    UNROLL
    for (u32 k = 0; k < n; k++)
        asm volatile("" : "+f"(x[k])::"memory");
}

DEVICE void hold_words(u32 *x, u32 n)
{
    UNROLL
    for (u32 k = 0; k < n; k++)
        asm volatile("" : "+r"(x[k])::"memory");
}

#endif
#endif
