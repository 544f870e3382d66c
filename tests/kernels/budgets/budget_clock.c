/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/budgets/budget_clock.h"
#include "runtime/compile/compile.h"
#include <time.h>

/* Measured on one idle core of a Xeon of the Sapphire Rapids generation, at 3.2 to 3.8 GHz. */
#define BUDGET_CLOCK_MS 100.0

/* Loops unrolled over registers, shared memory and the tensor cores: what NVRTC spends its time on in the
   templates too. Do not change it: all budgets of time are in its unit. */
#define TEXT(...) #__VA_ARGS__
static const char text[] = TEXT(
    enum {N = 4};

    __device__ unsigned bits(float x) { return __float_as_uint(x); }

    extern "C" __global__ void __launch_bounds__(128) clock(const float *in, float *out,
                                                            int n) {
        __shared__ float tile[64 * 33];
        float sum[N][4] = {};
        for (int at = 0; at < n; at += 64) {
            for (int k = threadIdx.x; k < 64 * 32; k += 128)
                tile[k / 32 * 33 + k % 32] = in[at * 32 + k];
            __syncthreads();
            _Pragma("unroll") for (int f = 0; f < N; f++)
            {
                unsigned a[4];
                unsigned b[2];
                _Pragma("unroll") for (int k = 0; k < 4; k++) a[k] =
                    bits(exp2f(tile[(threadIdx.x + 8 * f + k) % 64 * 33 + k]));
                _Pragma("unroll") for (int k = 0; k < 2; k++) b[k] =
                    bits(tile[(threadIdx.x + f) % 64 * 33 + 2 * f + k] * sum[f][k]);
                _Pragma("unroll") for (int g = 0; g < N; g++) asm volatile(
                    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                    "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(sum[g][0]),
                    "+f"(sum[g][1]), "+f"(sum[g][2]), "+f"(sum[g][3]) : "r"(a[0]), "r"(a[1]),
                    "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
            }
            __syncthreads();
        }
        _Pragma("unroll") for (int f = 0; f < N; f++) for (int k = 0; k < 4; k++)
            out[(f * 4 + k) * 128 + threadIdx.x] =
                sum[f][k] < 0 ? -sum[f][k] : log2f(sum[f][k]);
    });

double budget_clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double budget_clock_slowness(void)
{
    const struct source_file file = {"clock.cu", text};
    const struct source s = {.files = &file, .n_files = 1};
    struct binary unused = {0};
    double begin = budget_clock_now();
    if (nvrtc_compile(&s, target_find("sm_80", NULL), &unused, NULL) < 0)
        return 0;
    double took = budget_clock_now() - begin;
    binary_finish(&unused);
    return took / (BUDGET_CLOCK_MS / 1000);
}
