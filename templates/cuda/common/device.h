/* SPDX-License-Identifier: Apache-2.0 */
/* The machine under the CUDA templates: qualifiers, builtins, intrinsics and accesses to shared
   memory. More of them are in matrix.h and, for sm_90a, in hopper/device.h and hopper/wgmma.h. The
   emulation has its own version of these names, so that the same templates run on a CPU, with every
   access checked. */
#ifndef MASKC_CUDA_COMMON_DEVICE_H
#define MASKC_CUDA_COMMON_DEVICE_H
#define ABI_BY_VALUE       /* arguments are as long as the kernel needs: */
#include "kernel_config.h" /* has GROUPED and RECTANGULAR, then includes abi.h */

#ifndef GROUPED /* 1: fewer key than query heads */
#define GROUPED 0
#endif
#ifndef RECTANGULAR /* 1: another number of keys than of queries */
#define RECTANGULAR 0
#endif

#define ALIGNED_16 __attribute__((aligned(16)))

struct ALIGNED_16 f4 {
    float x, y, z, w;
};

#ifndef ARGS_STRUCT /* what an entry receives */
#define ARGS_STRUCT struct abi_args
#endif

#ifndef MASKC_EMULATION

#define DEVICE      static __device__ __forceinline__
#define ENTRY(name) ENTRY_OF(name, THREADS, 1)
/* Threads of a block, and blocks that are to fit a multiprocessor. */
#define ENTRY_OF(name, threads, blocks) \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name
#define ARGS         const __grid_constant__ ARGS_STRUCT
#define UNROLL       _Pragma("unroll")
#define UNROLL_4     _Pragma("unroll 4")
#define UNROLL_BY(n) PRAGMA(unroll n)
#define PRAGMA(text) _Pragma(#text)
#define NO_UNROLL    _Pragma("unroll 1")

#define THREAD threadIdx.x
#define BLOCK  blockIdx.x
#define BLOCKS gridDim.x

/* Every thread of the block reaches it. */
#define SYNC() __syncthreads()

/* Collective: every lane of the warp calls them. After SYNC_WARP lanes see each other's writes. */
#define SYNC_WARP()           __syncwarp()
#define SHUFFLE_XOR(x, mask)  __shfl_xor_sync(0xffffffffu, x, mask)
#define SHUFFLE_FROM(x, lane) __shfl_sync(0xffffffffu, x, lane)
#define ANY(x)                __any_sync(0xffffffffu, x)

/* Aligned to 128 bytes, because addresses in permuted rows are computed by XOR. */
extern __shared__ __attribute__((aligned(128))) float shared_memory[];
#define SHARED() shared_memory

DEVICE float shared_get(const float *p)
{
    return *p;
}

DEVICE void shared_put(float *p, float x)
{
    *p = x;
}

DEVICE struct f4 shared_get4(const float *p)
{
    return *(const struct f4 *)p;
}

DEVICE void shared_put4(float *p, struct f4 x)
{
    *(struct f4 *)p = x;
}

/* ---- global memory through which threads of a block communicate ---- */

DEVICE float global_get(const float *p)
{
    return *p;
}

DEVICE void global_put(float *p, float x)
{
    *p = x;
}

/* 2^x, relative error 2^-22; 2^-inf = 0. */
DEVICE float exp2_of(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

DEVICE float log2_of(float x)
{
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 1 / x, relative error 2^-23. Volatile: computed where it is written, so that no register holds it for long. */
DEVICE float reciprocal_of(float x)
{
    float y;
    asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Hides where x comes from: expressions of x are computed from this one register and not from x's own operands. */
DEVICE u32 one_value(u32 x)
{
    asm("" : "+r"(x));
    return x;
}

/* one_value of an address. */
DEVICE const u8 *one_place(const u8 *p)
{
    asm("" : "+l"(p));
    return p;
}

/* Optimisation barrier: keeps the compiler from hoisting expressions of x, so that no register holds them for
   long. */
DEVICE u32 opt_barrier(u32 x)
{
    asm volatile("" : "+r"(x));
    return x;
}

/* The larger, in one instruction; NaN if either is NaN. */
DEVICE float max_of(float a, float b)
{
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

/* |x|, free where an instruction has it as an operand modifier. */
DEVICE float magnitude_of(float x)
{
    float y;
    asm("abs.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

DEVICE u32 bits_of(float x)
{
    return __float_as_uint(x);
}

DEVICE float float_of(u32 bits)
{
    return __uint_as_float(bits);
}

#endif
#endif
