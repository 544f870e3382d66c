/* SPDX-License-Identifier: Apache-2.0 */
/* templates/cpu/matrix/amx.h for CPUs without AMX: tile registers are memory, and instructions are
   functions that do what the manual says (TDPBF16PS adds the sums of even and of odd products to C;
   no denormals). As on a CPU with AMX, an instruction outside of matrix_begin .. matrix_end ends
   the process. */
#ifndef MASKC_CPU_MATRIX_AMX_H
#define MASKC_CPU_MATRIX_AMX_H

enum { TILE_REGISTERS = 8, TILE_LINES = 16, TILE_UNITS = 64 };

struct tile_unit {
    uvec line[TILE_REGISTERS][TILE_LINES];
    u32 taken;
};

/* A thread has one while it is in a phase. Only the pointer is the thread's own: a library that is loaded
   late has few bytes of that kind. */
static struct tile_unit tile_units[TILE_UNITS];
static __thread struct tile_unit *tile_unit __attribute__((tls_model("initial-exec")));

/* Registers begin with what nothing may use: NaN. */
static void matrix_begin(void)
{
    u32 k = 0;
    while (__atomic_exchange_n(&tile_units[k].taken, 1, __ATOMIC_ACQUIRE))
        k = (k + 1) % TILE_UNITS;
    tile_unit = &tile_units[k];
    for (u32 t = 0; t < TILE_REGISTERS; t++)
        for (u32 r = 0; r < TILE_LINES; r++)
            tile_unit->line[t][r] = (uvec){0} + 0x7fc07fc0u;
}

static void matrix_end(void)
{
    __atomic_store_n(&tile_unit->taken, 0, __ATOMIC_RELEASE);
    tile_unit = 0;
    __asm__ volatile("sfence" ::: "memory");
}

static __attribute__((noinline)) void tile_load(u32 t, const void *from, i64 stride)
{
    for (u32 r = 0; r < TILE_LINES; r++)
        tile_unit->line[t][r] = (uvec)load((const float *)((const char *)from + r * stride));
}

static __attribute__((noinline)) void tile_store(u32 t, void *to, i64 stride)
{
    for (u32 r = 0; r < TILE_LINES; r++)
        store((float *)((char *)to + r * stride), (vec)tile_unit->line[t][r]);
}

static __attribute__((noinline)) void tile_zero(u32 t)
{
    for (u32 r = 0; r < TILE_LINES; r++)
        tile_unit->line[t][r] = (uvec){0};
}

/* 0 in place of a denormal. */
INLINE vec tile_normal(vec x)
{
    return (vec)((ivec)x & (((ivec)x & 0x7f800000) != 0));
}

INLINE vec tile_even(uvec pairs)
{
    return tile_normal((vec)(pairs << 16));
}

INLINE vec tile_odd(uvec pairs)
{
    return tile_normal((vec)(pairs & 0xffff0000u));
}

static __attribute__((noinline)) void tile_product(u32 c, u32 a, u32 b)
{
    for (u32 r = 0; r < TILE_LINES; r++) {
        const uvec row = tile_unit->line[a][r];
        vec even = {0}, odd = {0};
        for (u32 k = 0; k < TILE_LINES; k++) {
            const uvec pair = (uvec){0} + row[k], column = tile_unit->line[b][k];
            even += tile_even(pair) * tile_even(column);
            odd += tile_odd(pair) * tile_odd(column);
        }
        tile_unit->line[c][r] = (uvec)(tile_normal((vec)tile_unit->line[c][r]) + (even + odd));
    }
}

#define TILE_LOAD(t, from, stride)   tile_load(t, from, (i64)(stride))
#define TILE_STREAM(t, from, stride) tile_load(t, from, (i64)(stride))
#define TILE_STORE(t, to, stride)    tile_store(t, to, (i64)(stride))
#define TILE_ZERO(t)                 tile_zero(t)
#define TILE_PRODUCT(c, a, b)        tile_product(c, a, b)

#endif
