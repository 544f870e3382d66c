/* SPDX-License-Identifier: Apache-2.0 */
/* One set of loops for each width of vectors, compiled for it function by function: this program
   itself runs on any x86-64. Twelve sums keep two units of latency four busy; tiles need four. */
#include "tools/maskc/calibrate/ceiling.h"
#include "masks/base/memory.h"
#include "tools/maskc/rounds.h"
#include <stdlib.h>
#include <string.h>

/* Long enough for the clock to settle at what such work is given. */
enum { STEPS = 4000000, EXP_STEPS = 400000, TILE_STEPS = 400000 };
enum { SUMS = 12, RUNS = 4, MEMORY_BYTES = 128 << 20, CACHE_BYTES = 1 << 20 };

/* Kept from being thought away. */
#define KEEP(x) __asm__ volatile("" : "+m"(x))

#define LOOPS(bytes, isa)                                                                    \
    typedef float floats_##bytes __attribute__((vector_size(bytes)));                        \
    typedef int ints_##bytes __attribute__((vector_size(bytes)));                            \
                                                                                             \
    __attribute__((target(isa), noinline)) static void multiply_##bytes(uint32_t steps)      \
    {                                                                                        \
        floats_##bytes s[SUMS] = {{0}}, x = {0.5f}, y = {1};                                 \
        KEEP(x);                                                                             \
        for (uint32_t k = 0; k < steps; k++)                                                 \
            _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++) s[i] = s[i] * x + y;     \
        for (int i = 0; i < SUMS; i++)                                                       \
            KEEP(s[i]);                                                                      \
    }                                                                                        \
                                                                                             \
    /* 2^x of values about -1 by a polynomial of degree 5 in what is left of a rounding */   \
    __attribute__((target(isa), noinline)) static void exponentials_##bytes(uint32_t steps)  \
    {                                                                                        \
        const float c[] = {1.8775767e-3f, 8.9893397e-3f, 5.5826318e-2f,                      \
                           2.4015361e-1f, 6.9315308e-1f, 1};                                 \
        floats_##bytes s[SUMS];                                                              \
        for (int i = 0; i < SUMS; i++)                                                       \
            s[i] = (floats_##bytes){0} - 0.1f * (float)i;                                    \
        for (uint32_t k = 0; k < steps; k++)                                                 \
            _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++)                          \
            {                                                                                \
                ints_##bytes whole = __builtin_convertvector(s[i], ints_##bytes);            \
                floats_##bytes rest = s[i] - __builtin_convertvector(whole, floats_##bytes); \
                floats_##bytes p = c[0] * rest + c[1];                                       \
                p = p * rest + c[2];                                                         \
                p = p * rest + c[3];                                                         \
                p = p * rest + c[4];                                                         \
                p = p * rest + c[5];                                                         \
                s[i] = (floats_##bytes)((ints_##bytes)p + (whole << 23)) - 2;                \
            }                                                                                \
        for (int i = 0; i < SUMS; i++)                                                       \
            KEEP(s[i]);                                                                      \
    }                                                                                        \
                                                                                             \
    __attribute__((target(isa), noinline)) static void read_##bytes(const uint8_t *from,     \
                                                                    uint64_t size)           \
    {                                                                                        \
        floats_##bytes s[8] = {{0}};                                                         \
        for (uint64_t k = 0; k + sizeof s <= size; k += sizeof s)                            \
            _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) s[i] +=                      \
                ((const floats_##bytes *)(const void *)(from + k))[i];                       \
        for (int i = 0; i < 8; i++)                                                          \
            KEEP(s[i]);                                                                      \
    }

LOOPS(16, "sse2")
LOOPS(32, "avx2,fma")
LOOPS(64, "avx512f,avx512dq,fma")

static const struct loops {
    uint32_t bytes;
    void (*multiply)(uint32_t steps);
    void (*exponentials)(uint32_t steps);
    void (*read)(const uint8_t *from, uint64_t size);
} widths[] = {
    {64, multiply_64, exponentials_64, read_64},
    {32, multiply_32, exponentials_32, read_32},
    {16, multiply_16, exponentials_16, read_16},
};

static double time_steps(void (*loop)(uint32_t steps), uint32_t steps)
{
    double best = 0;
    for (int run = 0; run < RUNS; run++) {
        double start = rounds_thread_now();
        loop(steps);
        double seconds = rounds_thread_now() - start;
        best = run == 0 || seconds < best ? seconds : best;
    }
    return best;
}

/* Bytes a second of `size` bytes read `times` over. */
static double time_reads(const struct loops *l, const uint8_t *from, uint64_t size,
                         uint32_t times)
{
    double best = 0;
    for (int run = 0; run < RUNS; run++) {
        double start = rounds_thread_now();
        for (uint32_t k = 0; k < times; k++)
            l->read(from, size);
        double seconds = rounds_thread_now() - start;
        best = run == 0 || seconds < best ? seconds : best;
    }
    return (double)size * times / best;
}

/* Four products of 16 x 32 by 32 x 16 a step, from tiles that stay where they are; of numbers about
   1/2, as products of zeros take less power and then a faster clock. */
static void multiply_tiles(uint32_t steps)
{
    static const uint8_t shape[64] __attribute__((aligned(64))) = {
        1,         [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64,
        [26] = 64, [28] = 64, [30] = 64, [48] = 16, 16,        16,
        16,        16,        16,        16,        16};
    uint16_t tile[16 * 32];
    const uint64_t stride = 64;
    for (uint32_t k = 0; k < 16 * 32; k++)
        tile[k] = (uint16_t)(0x3f00 + k * 2654435761u % 127 + (k << 15));
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
    __asm__ volatile("tileloadd (%0,%1), %%tmm4\n\ttileloadd (%0,%1), %%tmm5\n\t"
                     "tileloadd (%0,%1), %%tmm6\n\ttileloadd (%0,%1), %%tmm7" ::"r"(tile),
                     "r"(stride)
                     : "memory");
    for (uint32_t k = 0; k < steps; k++)
        __asm__ volatile("tdpbf16ps %tmm6, %tmm4, %tmm0\n\ttdpbf16ps %tmm7, %tmm4, %tmm1\n\t"
                         "tdpbf16ps %tmm6, %tmm5, %tmm2\n\ttdpbf16ps %tmm7, %tmm5, %tmm3");
    __asm__ volatile("tilerelease");
}

/* Dot products of bf16 pairs, eight sums a step. */
__attribute__((target("avx512f"), noinline)) static void multiply_pairs(uint32_t steps)
{
    const floats_64 x = {0.5f, 0.25f, 0.5f, 0.25f};
    for (uint32_t k = 0; k < steps; k++)
        __asm__ volatile(".irp sum,8,9,10,11,12,13,14,15\n\t"
                         "vdpbf16ps %0, %0, %%zmm\\sum\n\t.endr"
                         :
                         : "v"(x)
                         : "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                           "xmm15");
}

static double measure_matrix(const struct target *target)
{
    const double tile_flop = 4 * 2.0 * 16 * 16 * 32, pair_flop = 8 * 2.0 * 32;
    if (!target->matrix_machine)
        return 0;
    return target->dots ? pair_flop * STEPS / time_steps(multiply_pairs, STEPS)
                        : tile_flop * TILE_STEPS / time_steps(multiply_tiles, TILE_STEPS);
}

struct ceilings ceilings_measure(const struct target *target)
{
    const struct loops *l = widths;
    while (l->bytes > target->vector_bytes)
        l++;
    uint8_t *memory = memory_aligned(MEMORY_BYTES, 1);
    memset(memory, 0x11, MEMORY_BYTES); /* pages of their own, not the one of zeros */
    double lanes = (double)SUMS * l->bytes / 4;
    struct ceilings c = {
        .flops = 2 * lanes * STEPS / time_steps(l->multiply, STEPS),
        .exps = lanes * EXP_STEPS / time_steps(l->exponentials, EXP_STEPS),
        .bytes = time_reads(l, memory, MEMORY_BYTES, 1),
        .cache_bytes = time_reads(l, memory, CACHE_BYTES, 64),
        .matrix = measure_matrix(target),
    };
    free(memory);
    return c;
}
