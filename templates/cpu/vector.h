/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of VECTOR_BYTES as the compilers' vector extensions give them. The few things that have
   no operator are compiler builtins, and they stand in this file alone. */
#ifndef MASKC_CPU_VECTOR_H
#define MASKC_CPU_VECTOR_H

enum { LANES = VECTOR_BYTES / 4 };

typedef float vec __attribute__((vector_size(VECTOR_BYTES)));
typedef i32 ivec __attribute__((vector_size(VECTOR_BYTES)));
typedef u32 uvec __attribute__((vector_size(VECTOR_BYTES)));
typedef float quad __attribute__((vector_size(16)));
/* The same in memory, at any address of a float. */
typedef float vec_at __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef float quad_at __attribute__((vector_size(16), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
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
    const uvec lane = {1,      2,      4,      8,      1 << 4,  1 << 5,  1 << 6,  1 << 7,
                       1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
#elif VECTOR_BYTES == 32
    const uvec lane = {1, 2, 4, 8, 16, 32, 64, 128};
#else
    const uvec lane = {1, 2, 4, 8};
#endif
    return (ivec)((lane & bits) != 0);
}

/* As the instruction does it: the second operand where either is NaN. */
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

/* One quad with the sums of four vectors: their lanes are folded together, which shares the
   shuffles that a sum across lanes needs. */
INLINE quad sum4(vec a, vec b, vec c, vec d)
{
#if VECTOR_BYTES == 64
    vec x = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
            __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                                    31);
    vec y = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
            __builtin_shufflevector(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                                    31);
    vec z = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26,
                                    27) +
            __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30,
                                    31);
    z += __builtin_shufflevector(z, z, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    return __builtin_shufflevector(z, z, 0, 4, 8, 12) + __builtin_shufflevector(z, z, 1, 5, 9, 13);
#elif VECTOR_BYTES == 32
    vec x = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
            __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    vec y = __builtin_shufflevector(c, d, 0, 1, 2, 3, 8, 9, 10, 11) +
            __builtin_shufflevector(c, d, 4, 5, 6, 7, 12, 13, 14, 15);
    vec z = __builtin_shufflevector(x, y, 0, 1, 4, 5, 8, 9, 12, 13) +
            __builtin_shufflevector(x, y, 2, 3, 6, 7, 10, 11, 14, 15);
    return __builtin_shufflevector(z, z, 0, 2, 4, 6) + __builtin_shufflevector(z, z, 1, 3, 5, 7);
#else
    quad x = __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
    quad y = __builtin_shufflevector(c, d, 0, 1, 4, 5) + __builtin_shufflevector(c, d, 2, 3, 6, 7);
    return __builtin_shufflevector(x, y, 0, 2, 4, 6) + __builtin_shufflevector(x, y, 1, 3, 5, 7);
#endif
}

INLINE float sum_lanes(vec x)
{
    vec zero = {0};
    return sum4(x, zero, zero, zero)[0];
}

INLINE float largest_lane(vec x)
{
#if VECTOR_BYTES == 64
    x = larger(x, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6,
                                          7));
    x = larger(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10,
                                          11));
    x = larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12,
                                          13));
    x = larger(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15,
                                          14));
#elif VECTOR_BYTES == 32
    x = larger(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    x = larger(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6));
#else
    x = larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1));
    x = larger(x, __builtin_shufflevector(x, x, 1, 0, 3, 2));
#endif
    return x[0];
}

/* The compilers may ask for these two; there is no C library beside a kernel. */
__attribute__((visibility("hidden"))) void *memcpy(void *to, const void *from, unsigned long bytes);
__attribute__((visibility("hidden"))) void *memset(void *to, int byte, unsigned long bytes);

void *memcpy(void *to, const void *from, unsigned long bytes)
{
    void *ret = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return ret;
}

void *memset(void *to, int byte, unsigned long bytes)
{
    void *ret = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
    return ret;
}

#endif
