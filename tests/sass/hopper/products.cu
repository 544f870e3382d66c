/* SPDX-License-Identifier: Apache-2.0 */
/* One of everything that the machine has to know of sm_90a: a warp that copies, a warpgroup that multiplies, two stages.

       O = sum over steps of weight[step] P keys[step],  P = -Q keys[step]^T

   The left half of O has the sign of P, the right half the other one, so that each sign of wgmma is in use. Q is 64 rows by 64, a step has 32 keys from row -16 on, weights come by a plain bulk copy. Rows outside of the tensors are
   zeros on the way in and are cut off on the way out. Without one of its parts (LACKS, a number of hopper_test.c) the kernel
   must fail. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef LACKS
#define LACKS 0
#endif
#define PART(number, statement)  \
    do {                         \
        if (LACKS != (number)) { \
            statement;           \
        }                        \
    } while (0)
#ifdef F16
#define TYPE "f16"
#else
#define TYPE "bf16"
#endif
#define DEVICE static __device__ __forceinline__

struct __align__(64) map
{
    u8 bytes[128];
};

struct arguments {
    struct map q, keys, o;
    const float *weight; /* 4 of each step */
    u32 steps;
};

enum {
    STAGES = 2,
    KEYS = 32,
    ROW = 128, /* bytes of a row of a tile */
    Q_BYTES = 64 * ROW,
    KEY_BYTES = KEYS * ROW,
    WEIGHT_BYTES = 16,
    AT_KEYS = Q_BYTES,
    AT_WEIGHTS = AT_KEYS + STAGES * KEY_BYTES,
    AT_BARRIERS = AT_WEIGHTS + STAGES * WEIGHT_BYTES,
    FULL_Q = AT_BARRIERS,
    FULL = FULL_Q + 8,
    EMPTY = FULL + 8 * STAGES,
    WARPS = 4,
    THREADS = 32 * (WARPS + 1),
};

/* ---- barriers ---- */

DEVICE void barrier_init(u32 at, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

DEVICE void barrier_expect(u32 at, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}

DEVICE void barrier_arrive_if(u32 at, u32 condition)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(at),
                 "r"(condition)
                 : "memory");
}

DEVICE void barrier_wait(u32 at, u32 parity)
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

DEVICE void group_sync(void)
{
    asm volatile("bar.sync 1, 128;" ::: "memory");
}

DEVICE void async_fence(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- copies ---- */

DEVICE void load(u32 to, const struct map *map, u32 barrier, int row)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %3, %4, %3}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(0), "r"(row)
        : "memory");
}

DEVICE void load_plain(u32 to, const void *from, u32 bytes, u32 barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

DEVICE void store(const struct map *map, u32 from, int row)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %2, %3, %2}], "
        "[%1];" ::"l"(map),
        "r"(from), "r"(0), "r"(row)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* ---- products ---- */

#define SUMS(d, k) "+f"((d)[k]), "+f"((d)[k + 1]), "+f"((d)[k + 2]), "+f"((d)[k + 3])
#define SUMS_16(d) SUMS(d, 0), SUMS(d, 4), SUMS(d, 8), SUMS(d, 12)

/* Both operands in shared memory, 32 columns, depth contiguous. */
#define PRODUCT  "wgmma.mma_async.sync.aligned.m64n32k16.f32." TYPE "." TYPE " "
#define SUMS_OUT "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "

DEVICE void multiply_shared(float *d, u64 a, u64 b, u32 adds)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n" PRODUCT SUMS_OUT
                 "%16, %17, p, 1, -1, 0, 0;\n}"
                 : SUMS_16(d)
                 : "l"(a), "l"(b), "r"(adds));
}

/* The first operand in registers, 32 columns, columns contiguous. */
#define MULTIPLY_REGISTERS(d, a, b, sign)                                         \
    asm volatile(PRODUCT SUMS_OUT "{%16, %17, %18, %19}, %20, 1, " sign ", 1, 1;" \
                 : SUMS_16(d)                                                     \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b))

DEVICE u64 descriptor(u32 at)
{
    const u64 stride = LACKS == 9 ? 512 / 16 : 1024 / 16;
    return (u64)((at & 0x3ffff) >> 4) | (u64)1 << 16 | stride << 32 | (u64)1 << 62;
}

DEVICE void hold(float *x, u32 n)
{
#pragma unroll
    for (u32 k = 0; k < n; k++)
        asm volatile("" : "+f"(x[k])::"memory");
}

DEVICE void wait_products(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

DEVICE u32 pack(float low, float high)
{
    u32 x;
    asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
    return x;
}

/* ---- the copying warp: one lane ---- */

DEVICE void copy_all(const struct arguments *a, u32 shared, int row)
{
    barrier_expect(shared + FULL_Q, Q_BYTES);
    load(shared, &a->q, shared + FULL_Q, row);
    for (u32 i = 0; i < a->steps; i++) {
        const u32 stage = i % STAGES, bar = shared + FULL + 8 * stage;
        const u32 bytes = KEY_BYTES + (LACKS == 7 ? 2 * WEIGHT_BYTES : WEIGHT_BYTES);
        PART(2,
             barrier_wait(shared + EMPTY + 8 * stage, i / STAGES % 2 ^ (LACKS == 8 ? 0 : 1)));
        barrier_expect(bar, bytes);
        load(shared + AT_KEYS + stage * KEY_BYTES, &a->keys, bar, (int)(KEYS * i) - 16);
        load_plain(shared + AT_WEIGHTS + stage * WEIGHT_BYTES, a->weight + 4 * i, WEIGHT_BYTES,
                   bar);
    }
}

/* ---- the warpgroup ---- */

DEVICE void step(float (*o)[16], u32 shared, u32 keys, u32 weight_at)
{
    float s[16], weight;
    u32 p[8];
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(weight) : "r"(weight_at) : "memory");
    hold(s, 16);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (u32 k = 0; k < 4; k++)
        multiply_shared(s, descriptor(shared + 32 * k), descriptor(keys + 32 * k), k > 0);
    wait_products();
    hold(s, 16);
#pragma unroll
    for (u32 k = 0; k < 8; k++)
        p[k] = pack(s[2 * k] * weight, s[2 * k + 1] * weight);
    hold(o[0], 16);
    hold(o[1], 16);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (u32 k = 0; k < 2; k++) {
        MULTIPLY_REGISTERS(o[0], p + 4 * k, descriptor(keys + 16 * ROW * k), "1");
        MULTIPLY_REGISTERS(o[1], p + 4 * k, descriptor(keys + 16 * ROW * k + 64), "-1");
    }
    wait_products();
    hold(o[0], 16);
    hold(o[1], 16);
}

/* The warp's 16 rows of O under the swizzle, where Q was. */
DEVICE void put_rows(const float (*o)[16], u32 shared, u32 warp, u32 lane)
{
    const u32 row = 16 * warp + lane % 16, swizzle = LACKS == 10 ? 0 : row % 8;
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
        const float *x = o[k / 2] + 8 * (k % 2);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         shared + ROW * row + 16 * (2 * k + lane / 16 ^ swizzle)),
                     "r"(pack(x[0], x[1])), "r"(pack(x[2], x[3])), "r"(pack(x[4], x[5])),
                     "r"(pack(x[6], x[7]))
                     : "memory");
    }
}

DEVICE void multiply_all(const struct arguments *a, u32 shared, u32 thread, int row)
{
    const u32 warp = thread / 32, lane = thread % 32;
    float o[2][16];
    for (u32 k = 0; k < 32; k++)
        o[k / 16][k % 16] = 0;
    PART(11, barrier_wait(shared + FULL_Q, 0));
    for (u32 i = 0; i < a->steps; i++) {
        const u32 stage = i % STAGES;
        PART(1, barrier_wait(shared + FULL + 8 * stage, i / STAGES % 2));
        step(o, shared, shared + AT_KEYS + stage * KEY_BYTES,
             shared + AT_WEIGHTS + stage * WEIGHT_BYTES);
        PART(3, barrier_arrive_if(shared + EMPTY + 8 * stage, lane == 0));
        if (LACKS == 12)
            barrier_arrive_if(shared + EMPTY + 8 * stage, lane == 0);
    }
    group_sync();
    put_rows(o, shared, warp, lane);
    PART(4, async_fence());
    PART(5, group_sync());
    if (thread == 0) {
        store(&a->o, shared, row);
        PART(6, asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"));
    }
}

extern __shared__ u8 raw_shared[];

extern "C" __global__ void __launch_bounds__(THREADS)
    multiply(const __grid_constant__ struct arguments a)
{
    const u32 shared = ((u32)__cvta_generic_to_shared(raw_shared) + 1023) & ~1023u;
    const u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0), row = 64 * blockIdx.x;
    if (threadIdx.x == 0) {
        barrier_init(shared + FULL_Q, 1);
        for (u32 k = 0; k < STAGES; k++) {
            barrier_init(shared + FULL + 8 * k, 1);
            barrier_init(shared + EMPTY + 8 * k, WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    PART(13, __syncthreads());
    if (warp < WARPS)
        multiply_all(&a, shared, threadIdx.x, row);
    else if (threadIdx.x % 32 == 0)
        copy_all(&a, shared, row);
}
