/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor cores and what feeds them, from sm_80 on: 16-bit products with sums in float, loads of 8 x 8 matrices
   from shared memory, asynchronous copies. The emulation has its own version of each. All 32 lanes of a warp
   call the collective ones together. */
#ifndef MASKC_CUDA_COMMON_MATRIX_H
#define MASKC_CUDA_COMMON_MATRIX_H
#include "cuda/common/device.h"
#include "kernel_config.h"

typedef u16 half_t; /* bf16 or f16, as DTYPE says */

/* Lane l holds rows g = l / 4 and g + 8, and column pairs 2 t, 2 t + 1 with t = l % 4. */
struct frag_a { /* 16 x 16 halves: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8) */
    u32 x[4];
};

struct frag_c { /* 16 x 8 floats: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) */
    float x[4];
};

struct __attribute__((aligned(8))) u32x2 {
    u32 x, y;
};

struct ALIGNED_16 u32x4 {
    u32 x, y, z, w;
};

/* An address in shared memory, in bytes. Not a pointer: 64-bit arithmetic for each load compiles slowly. */
#ifdef MASKC_EMULATION
typedef const u8 *shared_at;
#else
typedef u32 shared_at;
#endif

#ifndef MASKC_EMULATION

#define SHARED_HALF() ((half_t *)shared_memory)

/* The address XOR `bytes`, which is below 128. */
DEVICE shared_at shared_flip(shared_at at, u32 bytes)
{
    return at ^ bytes;
}

DEVICE shared_at shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

/* ---- shared memory, 4, 8 and 16 bytes at a time, aligned alike ---- */

DEVICE u32 shared_get_u32(const void *p)
{
    return *(const u32 *)p;
}

DEVICE void shared_put_u32(void *p, u32 x)
{
    *(u32 *)p = x;
}

DEVICE struct u32x2 shared_get_u32x2(const void *p)
{
    return *(const struct u32x2 *)p;
}

DEVICE void shared_put_u32x2(void *p, struct u32x2 x)
{
    *(struct u32x2 *)p = x;
}

DEVICE struct u32x4 shared_get_u32x4(const void *p)
{
    return *(const struct u32x4 *)p;
}

DEVICE void shared_put_u32x4(void *p, struct u32x4 x)
{
    *(struct u32x4 *)p = x;
}

/* ---- products (collective) ---- */

/* c += a b. B is 16 x 8 halves, each lane holding rows 2t, 2t + 1 (b0) and 2t + 8, 2t + 9 (b1) of
   column g. */
DEVICE void mma_16816(struct frag_c *c, const struct frag_a *a, u32 b0, u32 b1)
{
    if (DTYPE == ABI_F16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c->x[0]), "+f"(c->x[1]), "+f"(c->x[2]), "+f"(c->x[3])
                     : "r"(a->x[0]), "r"(a->x[1]), "r"(a->x[2]), "r"(a->x[3]), "r"(b0),
                       "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c->x[0]), "+f"(c->x[1]), "+f"(c->x[2]), "+f"(c->x[3])
                     : "r"(a->x[0]), "r"(a->x[1]), "r"(a->x[2]), "r"(a->x[3]), "r"(b0),
                       "r"(b1));
}

/* To the nearest of 11 bits, ties away from zero. */
DEVICE u32 tf32_of(float x)
{
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

/* c += a b in tf32. A is 16 x 8: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); B is 8 x 8, each lane
   holding rows t (b0) and t + 4 (b1) of column g. */
DEVICE void mma_1688(struct frag_c *c, const struct frag_a *a, u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c->x[0]), "+f"(c->x[1]), "+f"(c->x[2]), "+f"(c->x[3])
                 : "r"(a->x[0]), "r"(a->x[1]), "r"(a->x[2]), "r"(a->x[3]), "r"(b0), "r"(b1));
}

/* one_value of an address in shared memory. */
DEVICE shared_at one_address(const half_t *p)
{
    return one_value(shared_address(p));
}

/* ---- 8 x 8 matrices of halves from shared memory (collective) ---- */

/* Lane l gives the address of row l % 8 of matrix l / 8, 16 bytes, aligned. It gets, of each
   matrix m, (g, 2t) and (g, 2t + 1) in r[m]; transposed, (2t, g) and (2t + 1, g). */
DEVICE void matrix_load4(u32 r[4], shared_at row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

DEVICE void matrix_load4_transposed(u32 r[4], shared_at row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

/* ---- asynchronous copies ---- */

/* 16 bytes, both addresses aligned; zeros where !there, `from_global` being any valid address then. */
DEVICE void copy_async_16(half_t *to_shared, const void *from_global, u32 there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(to_shared)), "l"(__cvta_generic_to_global(from_global)),
                   "r"(there ? 16 : 0)
                 : "memory");
}

/* The thread's copies since the last commit become one group, maybe an empty one. */
DEVICE void copy_async_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All but the thread's newest n groups (a constant) have arrived: its own; others' need a barrier
   too. */
#define COPY_ASYNC_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

/* ---- lanes (collective) ---- */

DEVICE u32 warp_or(u32 x)
{
    u32 y;
    asm volatile("redux.sync.or.b32 %0, %1, 0xffffffff;" : "=r"(y) : "r"(x));
    return y;
}

/* ---- two halves in a word ---- */

/* f16, whatever the halves of the kernel's tensors are; nearest, ties to even. */
DEVICE u32 f16_pack(float low, float high)
{
    u32 y;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

DEVICE float f16_low(u32 x)
{
    float y;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(y) : "r"(x));
    return y;
}

DEVICE float f16_high(u32 x)
{
    float y;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}" : "=f"(y) : "r"(x));
    return y;
}

DEVICE u32 half_pack(float low, float high)
{
    u32 y;
    if (DTYPE == ABI_F16)
        return f16_pack(low, high);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

DEVICE float half_low(u32 x)
{
    return DTYPE == ABI_F16 ? f16_low(x) : float_of(x << 16);
}

DEVICE float half_high(u32 x)
{
    return DTYPE == ABI_F16 ? f16_high(x) : float_of(x & 0xffff0000u);
}

#endif
#endif
