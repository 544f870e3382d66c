/* SPDX-License-Identifier: Apache-2.0 */
/* Sectors and wavefronts of addresses, and the time of a warp that loads what another load found. */
#include "tests/sass/cost/cost.h"
#include "tests/sass/cost/latency.h"
#include "tests/sass/machine.h"
#include "tests/sass/memory.h"
#include "tests/support/test.h"
#include <stdlib.h>

enum { BYTES = 1 << 16, CODE = 4 };

struct bench {
    struct instruction code[CODE];
    struct program program;
    struct memory memory;
    struct block block;
    struct cost cost;
    struct warp *warp;
    uint64_t base, sectors[CODE], wavefronts[CODE];
};

static void bench_start(struct bench *b)
{
    *b = (struct bench){.program = {.code = b->code, .count = CODE}};
    b->warp = aligned_alloc(256, (sizeof *b->warp + 255) / 256 * 256);
    memset(b->warp, 0, sizeof *b->warp);
    b->base = (uint64_t)(uintptr_t)memory_allocate(&b->memory, BYTES);
    b->cost = (struct cost){.sectors = b->sectors, .wavefronts = b->wavefronts};
    b->block = (struct block){.program = &b->program,
                              .memory = &b->memory,
                              .warp = b->warp,
                              .warps = 1,
                              .grid = 1,
                              .cost = &b->cost};
    b->warp->block = &b->block;
    for (uint32_t k = 0; k < CODE; k++)
        b->code[k] = (struct instruction){.bytes = 16, .writes = 7, .reads = 7, .stall = 1};
}

static void bench_end(struct bench *b)
{
    memory_free(&b->memory, (void *)(uintptr_t)b->base);
    free(b->cost.work);
    free(b->cost.now.end);
    free(b->warp);
}

/* A copy of four rows of 128 bytes, each lane 16 of them, to rows `pitch` bytes apart. */
static void copy_rows(struct bench *b, uint32_t pitch)
{
    uint32_t to[32];
    uint64_t from[32];
    FOR_LANES
    {
        to[l] = l / 8 * pitch + l % 8 * 16;
        from[l] = b->base + 16 * l;
    }
    b->sectors[0] = b->wavefronts[0] = 0;
    cost_copy(b->warp, &b->code[0], to, from, ALL_LANES, ALL_LANES);
}

static void test_copies(void **state)
{
    struct bench b;
    (void)state;
    bench_start(&b);
    copy_rows(&b, 128);
    assert_int_equal(b.sectors[0], 16);
    assert_int_equal(b.wavefronts[0], 4);
    assert_int_equal(b.cost.fetched, 16);
    copy_rows(&b, 144); /* every second row lies across sectors; measured on an H100: 24.0 */
    assert_int_equal(b.sectors[0], 24);
    assert_int_equal(b.wavefronts[0], 4);
    assert_int_equal(b.cost.fetched, 16); /* DRAM gave them before */
    bench_end(&b);
}

static uint64_t wavefronts_at(struct bench *b, uint32_t step, uint32_t bytes)
{
    uint32_t at[32];
    FOR_LANES at[l] = step * l;
    b->wavefronts[1] = 0;
    cost_shared(b->warp, &b->code[1], at, ALL_LANES, bytes);
    return b->wavefronts[1];
}

static void test_banks(void **state)
{
    struct bench b;
    (void)state;
    bench_start(&b);
    assert_int_equal(wavefronts_at(&b, 4, 4), 1);
    assert_int_equal(wavefronts_at(&b, 0, 4), 1); /* one word for all */
    assert_int_equal(wavefronts_at(&b, 8, 4), 2);
    assert_int_equal(wavefronts_at(&b, 128, 4), 32);
    assert_int_equal(wavefronts_at(&b, 8, 8), 2);
    assert_int_equal(wavefronts_at(&b, 16, 16), 4);
    assert_int_equal(wavefronts_at(&b, 144, 16), 4); /* rows with padding */
    assert_int_equal(wavefronts_at(&b, 128, 16), 32);
    bench_end(&b);
}

/* Instruction k of the code: sets a scoreboard, waits for some. */
static void load(struct bench *b, uint32_t k, uint32_t waits, uint64_t offset)
{
    uint64_t at[32];
    FOR_LANES at[l] = b->base + offset + 4 * l;
    b->code[k].writes = (uint8_t)k;
    b->code[k].waits = (uint8_t)waits;
    cost_issue(b->warp, &b->code[k], ALL_LANES);
    cost_global(b->warp, &b->code[k], at, ALL_LANES, false);
}

static void test_dependent_loads(void **state)
{
    struct bench b;
    (void)state;
    bench_start(&b);
    load(&b, 0, 0, 0);
    load(&b, 1, 0, 512); /* beside the first */
    load(&b, 2, 3, 0);   /* behind both; its sectors are in L1 */
    assert_int_equal(b.sectors[0], 4);
    assert_int_equal(b.sectors[2], 0);
    assert_int_equal(b.cost.trips, 1);
    assert_in_range(b.warp->clock.issued, LATENCY_DRAM, LATENCY_DRAM + 2 * BRANCH);
    b.code[3].waits = 4;
    cost_issue(b.warp, &b.code[3], ALL_LANES);
    cost_end(&b.block);
    assert_int_equal(b.cost.trips, 2);
    assert_in_range(b.cost.alone, LATENCY_DRAM + LATENCY_L1,
                    LATENCY_DRAM + LATENCY_L1 + 3 * BRANCH);
    bench_end(&b);
}

/* Two turns of a loop, each with a barrier, and a turn without one behind them. */
static void test_works(void **state)
{
    struct bench b;
    (void)state;
    bench_start(&b);
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t k = 1; k < CODE; k++) {
            b.code[k].stall = (uint8_t)(turn == 1 && k == 2 ? 15 : 1);
            cost_issue(b.warp, &b.code[k], ALL_LANES);
            b.block.epoch += turn < 2 && k == 1;
        }
    }
    cost_end(&b.block);
    assert_int_equal(b.cost.works, 2);
    assert_int_equal(b.cost.work[1],
                     b.cost.work[0] + 14 + BRANCH - 1); /* with the jump to it */
    bench_end(&b);
}

/* A second block, of the next wave, does one work. The turns of its inner loop are not works, and it is counted after the first block's works. */
static void test_works_of_waves(void **state)
{
    struct bench b;
    (void)state;
    bench_start(&b);
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t k = 1; k < CODE; k++) {
            cost_issue(b.warp, &b.code[k], ALL_LANES);
            b.block.epoch += k == 1;
        }
    cost_end(&b.block);
    assert_int_equal(b.cost.works, 2);
    b.block.wave = 1;
    b.block.epoch = 0;
    b.warp->clock.last = 0;
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t k = 2; k < CODE; k++) {
            cost_issue(b.warp, &b.code[k], ALL_LANES);
            b.block.epoch += k == 2;
        }
    cost_end(&b.block);
    assert_int_equal(b.cost.works, 3);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies), cmocka_unit_test(test_banks),
        cmocka_unit_test(test_dependent_loads), cmocka_unit_test(test_works),
        cmocka_unit_test(test_works_of_waves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
