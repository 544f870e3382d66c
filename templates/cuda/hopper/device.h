/* SPDX-License-Identifier: Apache-2.0 */
/* Primitives of sm_90a beyond those of common/device.h and common/matrix.h: addresses in shared memory, mbarriers, named
   barriers, bulk and tensor copies. The emulation has its own version of each. Products are in wgmma.h. */
#ifndef MASKC_CUDA_HOPPER_DEVICE_H
#define MASKC_CUDA_HOPPER_DEVICE_H
#include "cuda/common/matrix.h"
#include "cuda/common/work_item.h"
#include "cuda/hopper/args.h"
#include "cuda/hopper/wgmma.h"

typedef u32 smem_t; /* a byte of shared memory */

#define LARGEST_ARGS struct hopper_args

#ifndef MASKC_EMULATION

#define HOPPER_ARGS const __grid_constant__ struct hopper_args

/* ---- shared memory ---- */

/* Start of the block's shared memory, a multiple of 1024. The launch asks for 1024 bytes of slack. */
DEVICE smem_t smem_base(void)
{
    return (shared_address(shared_memory) + 1023) & ~1023u;
}

DEVICE u32 smem_get_u32(smem_t at)
{
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}

DEVICE void smem_put_u32(smem_t at, u32 x)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
}

DEVICE struct u32x4 smem_get_u32x4(smem_t at)
{
    struct u32x4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
}

DEVICE void smem_put_u32x4(smem_t at, struct u32x4 x)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x.x), "r"(x.y),
                 "r"(x.z), "r"(x.w)
                 : "memory");
}

DEVICE struct f2 smem_get_f2(smem_t at)
{
    struct f2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(x.x), "=f"(x.y)
                 : "r"(at)
                 : "memory");
    return x;
}

DEVICE void smem_put_f32(smem_t at, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
}

/* Collective in a warp, as matrix_load4 of matrix.h. */
DEVICE void smem_load4(u32 r[4], smem_t row)
{
    matrix_load4(r, row);
}

/* Collective in a warp: stores what smem_load4 with the same addresses loads. */
DEVICE void smem_store4(smem_t row, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

/* ---- mbarriers, 8 bytes each ---- */

/* A phase ends when `count` threads have arrived and the bytes that they expect have come. */
DEVICE void mbarrier_init(smem_t at, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

/* By the thread that initialised them, before a block-wide barrier: copies see them initialised. */
DEVICE void mbarrier_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives, and expects that many more bytes in this phase. */
DEVICE void mbarrier_expect(smem_t at, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}

DEVICE void mbarrier_arrive(smem_t at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

/* Without a branch: near one that may diverge, ptxas serialises the products of a kernel (C7520). */
DEVICE void mbarrier_arrive_if(smem_t at, u32 condition)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(at),
                 "r"(condition)
                 : "memory");
}

/* Waits for the end of the phase of that parity: 0 the first, 1 the one after; with parity 1 a fresh barrier does not wait. */
DEVICE void mbarrier_wait(smem_t at, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
    } while (!done);
}

/* ---- fences and named barriers ---- */

/* The thread's ordinary stores to shared memory are visible to products and bulk copies, after a barrier to those that other
   threads start too. */
DEVICE void async_fence(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Barrier `id` (1 to 15) of that many threads, whole warps: arrives and waits. */
DEVICE void group_sync(u32 id, u32 threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Arrives without waiting; `threads` counts those of group_sync too. */
DEVICE void group_arrive(u32 id, u32 threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* ---- bulk copies, each by one thread ---- */

/* First element of a box; it may lie outside of the tensor. */
struct box_at {
    i32 d, h, row, b;
};

DEVICE struct box_at box_at(i32 d, i32 h, i32 row, i32 b)
{
    struct box_at at = {d, h, row, b};
    return at;
}

/* tma_load brings a box to shared memory, swizzled, and counts its bytes in `bar`. */
#define tma_load(to, map, bar, d, h, row, b) box_load(to, map, bar, box_at(d, h, row, b))
/* tma_store writes the part of a box that lies inside of the tensor. */
#define tma_store(map, from, d, h, row, b) box_store(map, from, box_at(d, h, row, b))

DEVICE void box_load(smem_t to, const struct tensor_map *map, smem_t bar, struct box_at at)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(map), "r"(bar), "r"(at.d), "r"(at.h), "r"(at.row), "r"(at.b)
        : "memory");
}

DEVICE void box_store(const struct tensor_map *map, smem_t from, struct box_at at)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
                 "[%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
                 "r"(from), "r"(at.d), "r"(at.h), "r"(at.row), "r"(at.b)
                 : "memory");
}

/* Brings bytes to shared memory and counts them in `bar`; addresses and number are multiples of 16. */
DEVICE void bulk_load(smem_t to, const void *from, u32 bytes, smem_t bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(bar)
                 : "memory");
}

/* The thread's stores since the last commit become one group. */
DEVICE void bulk_commit(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* The thread's groups have read shared memory. */
DEVICE void bulk_wait_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* The thread's groups have ended. */
DEVICE void bulk_wait(void)
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* ---- registers and lanes ---- */

/* Registers of a thread from here on, a multiple of 8: for all warps of a warpgroup. */
#define SET_REGISTERS_UP(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"((int)(n)))
#define SET_REGISTERS_DOWN(n) \
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"((int)(n)))

/* Lane 0's x in all lanes, known to be uniform: products must not be behind a branch that may diverge. */
DEVICE u32 uniform(u32 x)
{
    return __shfl_sync(0xffffffffu, x, 0);
}

/* Bit l: lane l has x other than 0 (collective in a warp). */
DEVICE u32 warp_ballot(u32 x)
{
    u32 bits;
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\nvote.sync.ballot.b32 %0, p, 0xffffffff;\n}"
        : "=r"(bits)
        : "r"(x));
    return bits;
}

/* 1 in one lane of the warp (collective in a warp). ptxas knows that a branch on it has one thread. */
DEVICE u32 elect(void)
{
    u32 x;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(x));
    return x;
}

/* Returns x of that lane (collective in a warp). */
DEVICE u32 shuffle_u32(u32 x, u32 lane)
{
    return __shfl_sync(0xffffffffu, x, lane);
}

#endif
#endif
