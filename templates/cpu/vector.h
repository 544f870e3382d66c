/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of VECTOR_BYTES as the compilers' vector extensions give them. The few operations that
   have no operator are compiler builtins; others, and asm, are in draw.h, half.h and matrix/. */
#ifndef MASKC_CPU_VECTOR_H
#define MASKC_CPU_VECTOR_H
#include "cpu/config.h"

enum { LANES = VECTOR_BYTES / 4 };

typedef float vec __attribute__((vector_size(VECTOR_BYTES)));
typedef i32 ivec __attribute__((vector_size(VECTOR_BYTES)));
typedef u32 uvec __attribute__((vector_size(VECTOR_BYTES)));
typedef float quad __attribute__((vector_size(16)));
/* The same in memory, at any address of a float. */
typedef float oct_at __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vec_at __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef u32 uvec_at __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef float quad_at __attribute__((vector_size(16), aligned(4), may_alias));

#define INLINE     static inline __attribute__((always_inline))
#define INFINITY_F __builtin_inff()

INLINE vec load(const float *p)
{
    return *(const vec_at *)p;
}

INLINE void store(float *p, vec x)
{
    *(vec_at *)p = x;
}

INLINE vec splat(float x)
{
#if VECTOR_BYTES == 64
    return (vec){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#elif VECTOR_BYTES == 32
    return (vec){x, x, x, x, x, x, x, x};
#else
    return (vec){x, x, x, x};
#endif
}

/* Lanes of `yes` where the mask is all ones, of `no` where it is zero. */
INLINE vec pick(ivec mask, vec yes, vec no)
{
    return (vec)(((ivec)yes & mask) | ((ivec)no & ~mask));
}

INLINE vec pick_or_zero(ivec mask, vec yes)
{
    return (vec)((ivec)yes & mask);
}

/* All ones in lane k where bit k of `bits` is set. */
INLINE ivec mask_of_bits(u32 bits)
{
#if VECTOR_BYTES == 64
    const uvec lane = {1,      2,      4,       8,       1 << 4,  1 << 5,  1 << 6,  1 << 7,
                       1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
#elif VECTOR_BYTES == 32
    const uvec lane = {1, 2, 4, 8, 16, 32, 64, 128};
#else
    const uvec lane = {1, 2, 4, 8};
#endif
    return (ivec)((lane & bits) != 0);
}

typedef u64 wide __attribute__((vector_size(VECTOR_BYTES)));

/* Bit k: lane k, all ones or zero. */
INLINE u32 bits_of_wide(wide mask)
{
#if VECTOR_BYTES == 64
    typedef long long lanes __attribute__((vector_size(VECTOR_BYTES)));
    return (u8)__builtin_ia32_cvtq2mask512((lanes)mask);
#elif VECTOR_BYTES == 32
    typedef double lanes __attribute__((vector_size(VECTOR_BYTES)));
    return (u32)__builtin_ia32_movmskpd256((lanes)mask);
#else
    typedef double lanes __attribute__((vector_size(VECTOR_BYTES)));
    return (u32)__builtin_ia32_movmskpd((lanes)mask);
#endif
}

/* Maximum as the instruction computes it: the second operand if either is NaN. */
INLINE vec larger(vec a, vec b)
{
#if VECTOR_BYTES == 64 && defined __clang__
    return __builtin_ia32_maxps512(a, b, 4);
#elif VECTOR_BYTES == 64
    return __builtin_ia32_maxps512_mask(a, b, a, (u16)-1, 4);
#elif VECTOR_BYTES == 32
    return __builtin_ia32_maxps256(a, b);
#else
    return __builtin_ia32_maxps(a, b);
#endif
}

typedef i32 quad_mask __attribute__((vector_size(16)));

INLINE quad larger_quad(quad a, quad b)
{
    return __builtin_ia32_maxps(a, b);
}

/* Four vectors to one quad, lane by lane through `f` (and `f4` on quads): they are folded together,
   which shares the shuffles that an operation across lanes needs. */
#if VECTOR_BYTES == 64
#define FOLD_HALVES(f, a, b)                                                                  \
    f(__builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),  \
      __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, \
                              31))
#define FOLD_QUARTERS(f, a, b)                                                                 \
    f(__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27), \
      __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30,    \
                              31))
#define FOLD_PAIRS(f, a) \
    f(a, __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13))
#define FOLD(f, f4, a, b, c, d)                                   \
    {                                                             \
        vec ab = FOLD_HALVES(f, a, b), cd = FOLD_HALVES(f, c, d); \
        vec abcd = FOLD_QUARTERS(f, ab, cd);                      \
        vec x = FOLD_PAIRS(f, abcd);                              \
        return f4(__builtin_shufflevector(x, x, 0, 4, 8, 12),     \
                  __builtin_shufflevector(x, x, 1, 5, 9, 13));    \
    }
#elif VECTOR_BYTES == 32
#define FOLD_HALVES(f, a, b)                                   \
    f(__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11), \
      __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15))
#define FOLD_QUARTERS(f, a, b)                                 \
    f(__builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13), \
      __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15))
#define FOLD(f, f4, a, b, c, d)                                   \
    {                                                             \
        vec ab = FOLD_HALVES(f, a, b), cd = FOLD_HALVES(f, c, d); \
        vec x = FOLD_QUARTERS(f, ab, cd);                         \
        return f4(__builtin_shufflevector(x, x, 0, 2, 4, 6),      \
                  __builtin_shufflevector(x, x, 1, 3, 5, 7));     \
    }
#else
#define FOLD(f, f4, a, b, c, d)                                  \
    {                                                            \
        quad ab = f4(__builtin_shufflevector(a, b, 0, 1, 4, 5),  \
                     __builtin_shufflevector(a, b, 2, 3, 6, 7)); \
        quad cd = f4(__builtin_shufflevector(c, d, 0, 1, 4, 5),  \
                     __builtin_shufflevector(c, d, 2, 3, 6, 7)); \
        return f4(__builtin_shufflevector(ab, cd, 0, 2, 4, 6),   \
                  __builtin_shufflevector(ab, cd, 1, 3, 5, 7));  \
    }
#endif

#define SUM_OF(a, b) ((a) + (b))

INLINE quad sum4(vec a, vec b, vec c, vec d) FOLD(SUM_OF, SUM_OF, a, b, c, d)

    INLINE quad max4(vec a, vec b, vec c, vec d) FOLD(larger, larger_quad, a, b, c, d)

        INLINE float sum_lanes(vec x)
{
    vec zero = {0};
    return sum4(x, zero, zero, zero)[0];
}

INLINE float max_lanes(vec x)
{
    return max4(x, x, x, x)[0];
}

#endif
