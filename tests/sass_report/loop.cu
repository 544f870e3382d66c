/* SPDX-License-Identifier: Apache-2.0 */
/* A main loop in small: copies, a product, exp2, hiding, barriers. loop.sass is what NVRTC 13.0 makes of it for sm_80. */
extern "C" __global__ void __launch_bounds__(128)
    loop(const unsigned *from, float *to, int rounds, float limit)
{
    __shared__ unsigned held[1024];
    unsigned a[4];
    float sum[8] = {0}, top = 0;
    for (int x = 0; x < 4; x++)
        a[x] = from[threadIdx.x + 128 * x];
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
#pragma unroll 1
        for (unsigned k = threadIdx.x; k < 256; k += 128) {
            unsigned place = (unsigned)__cvta_generic_to_shared(held + 4 * k);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place),
                         "l"(from + 4 * k + round)
                         : "memory");
        }
        asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        float s[4] = {0}, p[4];
        unsigned b0 = held[threadIdx.x], b1 = held[threadIdx.x + 128];
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
        if (from[round] == 7) {
            for (int x = 0; x < 4; x++)
                s[x] = s[x] < limit ? s[x] * limit : 0;
        }
        for (int x = 0; x < 4; x++)
            asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p[x]) : "f"(s[x]));
        unsigned w0 = __float_as_uint(p[0]) ^ __float_as_uint(p[1]),
                 w1 = __float_as_uint(p[2]) ^ __float_as_uint(p[3]);
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(w0), "r"(w1), "r"(a[2]), "r"(a[3]), "r"(b1), "r"(b0));
        __syncthreads();
    }
    for (int x = 0; x < 4; x++)
        to[threadIdx.x + 128 * x] = sum[x];
}
