/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to break the kernel of pipeline.h: a part of its text, which it has once, what stands there instead, and parts of
   what the emulation may then say (any of them). WRONG: it runs, with wrong results. */
#pragma once

#define WRONG NULL

struct fault {
    const char *name, *find, *replace, *complaints[4];
};

/* clang-format off */
static const struct fault faults[] = {
    /* products: fences, waits, registers */
    {"no first fence", "        wgmma_fence();\n", "", {"without wgmma_fence"}},
    {"no last fence", "    }\n    wgmma_fence();\n", "    }\n", {"has changed a first operand of a product without wgmma_fence"}},
    {"sums changed after the fence", "        multiply_scores(s,", "        o[0] += 0.5f;\n        multiply_scores(s,",
     {"has changed sums of a product without wgmma_fence"}},
    {"no wait", "        WGMMA_WAIT(0);\n        if", "        if", {"a product or a bulk store still reads", "changes a first operand of a product in flight", "may still read"}},
    {"one group too few waited for", "        WGMMA_WAIT(0);\n        if", "        WGMMA_WAIT(1);\n        if",
     {"a product or a bulk store still reads", "changes a first operand of a product in flight", "may still read"}},
    {"no commit", "        wgmma_rs(64, o, p + 4 * i, matrix_descriptor(v + 2048 * i, 8192), 1);\n    wgmma_commit();",
     "        wgmma_rs(64, o, p + 4 * i, matrix_descriptor(v + 2048 * i, 8192), 1);",
     {"a product or a bulk store still reads", "changes a first operand of a product in flight", "ends while a product is in flight", "may still read"}},
    {"no last wait", "    WGMMA_WAIT(0);\n    mbarrier", "    mbarrier", {"ends while a product is in flight"}},
    {"sums changed in flight", "        WGMMA_WAIT(0);\n        if", "        o[0] = 0;\n        WGMMA_WAIT(0);\n        if",
     {"changes sums of a product in flight"}},
    {"sums read in flight", "    WGMMA_WAIT(0);\n    mbarrier", "    float early = o[0];\n    WGMMA_WAIT(0);\n    o[0] = early;\n    mbarrier", {WRONG}},
    {"first operand changed in flight", "        WGMMA_WAIT(0);\n        if", "        p[0] = 0;\n        WGMMA_WAIT(0);\n        if",
     {"changes a first operand of a product in flight"}},
    {"second operand overwritten in flight", "        WGMMA_WAIT(0);\n        if",
     "        if (thread == 0)\n            smem_put_u32(base + AT_K + stage * TILE, 0);\n        WGMMA_WAIT(0);\n        if",
     {"overwrites what a product or a bulk store still reads"}},
    {"shape of sums in flight changed", "        WGMMA_WAIT(0);\n        if",
     "        wgmma_rs(32, o, p, matrix_descriptor(base + AT_V, 8192), 1);\n        WGMMA_WAIT(0);\n        if",
     {"changes the shape of sums in flight", "without wgmma_fence"}},
    {"part of a warpgroup", "    wgmma_fence();\n    multiply_values", "    if (warp)\n        wgmma_fence();\n    multiply_values", {"a warpgroup diverged"}},
    {"part of a warpgroup waits for ever", "    wgmma_fence();\n    multiply_values", "    if (warp)\n        wgmma_fence();\n    else\n        return;\n    multiply_values",
     {"threads wait for each other"}},
    {"a thread with other operands", "matrix_descriptor(own + 32 * i, 16)", "matrix_descriptor(own + 32 * i + 1024 * (THREAD % 2), 16)",
     {"other operands than its warpgroup"}},
    {"a width that does not exist", "wgmma_ss(KEYS, s, ", "wgmma_ss(KEYS - 16, s, ", {"a wrong n"}},

    /* descriptors, bit by bit */
    {"no swizzle", "matrix_descriptor(own + 32 * i, 16)", "(matrix_descriptor(own + 32 * i, 16) ^ 1ull << 62)", {"without the swizzle of 128 bytes"}},
    {"another swizzle", "matrix_descriptor(own + 32 * i, 16)", "(matrix_descriptor(own + 32 * i, 16) ^ 1ull << 63)", {"without the swizzle of 128 bytes"}},
    {"base offset", "matrix_descriptor(own + 32 * i, 16)", "(matrix_descriptor(own + 32 * i, 16) ^ 1ull << 49)", {"unknown bits"}},
    {"unknown bit", "matrix_descriptor(own + 32 * i, 16)", "(matrix_descriptor(own + 32 * i, 16) ^ 1ull << 14)", {"unknown bits"}},
    {"no stride", "matrix_descriptor(own + 32 * i, 16)", "(matrix_descriptor(own + 32 * i, 16) ^ 64ull << 32)", {WRONG}},
    {"no stride along n", "matrix_descriptor(v + 2048 * i, 8192)", "(matrix_descriptor(v + 2048 * i, 8192) ^ 64ull << 32)", {WRONG}},
    {"next 16 bytes", "matrix_descriptor(own + 32 * i, 16)", "(matrix_descriptor(own + 32 * i, 16) ^ 1)", {"may still read"}},
    {"next row", "matrix_descriptor(own + 32 * i, 16)", "(matrix_descriptor(own + 32 * i, 16) ^ 8)", {"not aligned to 1024 bytes"}},
    {"outside", "matrix_descriptor(own + 32 * i, 16)", "(matrix_descriptor(own + 32 * i, 16) | 0x3fc0)", {"goes outside"}},
    {"wrong half of k", "matrix_descriptor(own + 32 * i, 16)", "matrix_descriptor(own + 32 * (i ^ 1), 16)", {WRONG}},
    {"wrong keys", "matrix_descriptor(v + 2048 * i, 8192)", "matrix_descriptor(v + 2048 * (i ^ 1), 8192)", {WRONG}},

    /* bytes and arrivals */
    {"too few bytes expected", "2 * TILE + WORDS)", "2 * TILE)", {"more bytes than the phase expects"}},
    {"too many bytes expected", "2 * TILE + WORDS)", "2 * TILE + 2 * WORDS)", {"256 bytes missing"}},
    {"nothing expected", "            mbarrier_expect(base + FULL + 8 * stage, 2 * TILE + WORDS);\n", "", {"1 arrivals"}},
    {"count too high", "4 * WGS);", "4 * WGS + 1);", {"1 arrivals"}},
    {"count too low", "4 * WGS);", "4 * WGS - 1);", {"arrives", "a product or a bulk store still reads", "may still read"}},
    {"two lanes of a warp arrive", "8 * last, lane == 0)", "8 * last, lane < 2)", {"arrives", "threads wait for each other", "a product or a bulk store still reads", "may still read"}},
    {"a lane arrives twice", "8 * last, lane == 0);", "8 * last, lane == 0), mbarrier_arrive_if(base + EMPTY + 8 * last, lane == 0);",
     {"arrives twice in one phase"}},
    {"arrives without bytes to expect", "    if (lane == 0)\n        mbarrier_expect(base + FULL_Q, WGS * TILE);", "    if (lane < 2)\n        mbarrier_expect(base + FULL_Q, WGS * TILE);",
     {"arrives beyond the count"}},

    /* phases */
    {"copies not waited for", "        mbarrier_wait(base + FULL + 8 * stage, parity);\n", "", {"reads what"}},
    {"Q not waited for", "    mbarrier_wait(base + FULL_Q, 0);\n", "", {"reads what"}},
    {"Q not waited for by one warp", "    mbarrier_wait(base + FULL_Q, 0);\n", "    if (warp != 2)\n        mbarrier_wait(base + FULL_Q, 0);\n", {"reads what a copy brings"}},
    {"a stage not waited for by one warp",
     "        mbarrier_wait(base + FULL + 8 * stage, parity);\n"
     "        const u32 mode = smem_get_u32(base + AT_MODE + 16 * stage);\n"
     "        const u32 low = smem_get_u32(base + AT_WORDS + stage * WORDS + 4 * (16 * warp + lane / 4));\n"
     "        const u32 high =",
     "        if (warp != 2)\n            mbarrier_wait(base + FULL + 8 * stage, parity);\n"
     "        const u32 mode = warp == 2 ? 0 : smem_get_u32(base + AT_MODE + 16 * stage);\n"
     "        const u32 low = warp == 2 ? 0 : smem_get_u32(base + AT_WORDS + stage * WORDS + 4 * (16 * warp + lane / 4));\n"
     "        const u32 high = warp == 2 ? 0 :", {"reads what a copy brings"}},
    {"stage not waited for", "        mbarrier_wait(base + EMPTY + 8 * stage, parity ^ 1);\n", "", {"overwrites what", "arrives"}},
    {"wrong parity of full", "FULL + 8 * stage, parity)", "FULL + 8 * stage, parity ^ 1)", {"reads what"}},
    {"wrong parity of empty", "parity ^ 1)", "parity)", {"for parity 0 of mbarrier"}},
    {"no parity", "FULL_Q, 0)", "FULL_Q, 2)", {"neither 0 nor 1"}},
    {"stage given back before the wait", "        WGMMA_WAIT(0);\n        if (i > 0)\n            mbarrier_arrive_if(base + EMPTY + 8 * last, lane == 0);\n",
     "        if (i > 0)\n            mbarrier_arrive_if(base + EMPTY + 8 * last, lane == 0);\n        WGMMA_WAIT(0);\n",
     {"a product or a bulk store still reads", "may still read"}},
    {"words read after the stage was given back", "        for (u32 k = 0; k < KEYS / 4; k++) {", "        smem_get_u32(base + AT_WORDS + last * WORDS + 4 * lane);\n        for (u32 k = 0; k < KEYS / 4; k++) {",
     {"reads what", "may still read"}},
    {"a load that nobody waits for", "i < STEPS; i++) {\n        const u32 stage = i % STAGES, parity = i / STAGES & 1;\n", "i <= STEPS; i++) {\n        const u32 stage = i % STAGES, parity = i / STAGES & 1;\n",
     {"ends without a wait for the copies"}},

    /* initialisation */
    {"no fence of the initialisation", "        mbarrier_init_fence();\n", "", {"without mbarrier_init_fence"}},
    {"no barrier after it", "    SYNC();\n", "", {"uses an mbarrier"}},
    {"an mbarrier twice", "EMPTY + 8 * k, 4", "FULL + 8 * k, 4", {"where something else is"}},
    {"a count of 0", "FULL_Q, 1)", "FULL_Q, 0)", {"a wrong count"}},
    {"an uninitialised mbarrier", "base + FULL_Q, 0)", "base + END, 0)", {"that nobody initialised"}},
    {"a misaligned mbarrier", "base + FULL_Q, 0)", "base + FULL_Q + 4, 0)", {"is misaligned"}},
    {"an mbarrier overwritten", "    mbarrier_wait(base + FULL_Q, 0);\n", "    mbarrier_wait(base + FULL_Q, 0);\n    smem_put_u32(base + FULL_Q, 0);\n", {"overwrites an mbarrier"}},

    /* ordinary stores, named barriers, bulk stores */
    {"no async_fence", "    async_fence();\n", "", {"without async_fence"}},
    {"async_fence by one", "    async_fence();\n", "    if (lane)\n        async_fence();\n", {"without async_fence"}},
    {"a word overwritten that one thread reads", "    group_sync(1 + wg, 128); /* all have read Q */\n",
     "    if (THREAD == 40)\n        smem_put_u32(base + END, 0);\n    group_sync(1 + wg, 128);\n    if (THREAD == 3)\n        smem_get_u32(base + END);\n"
     "    if (THREAD == 40)\n        smem_put_u32(base + END, 1);\n", {"overwrites what another may still read", "reads what another wrote"}},
    {"numbers that differ", "    group_sync(1 + wg, 128); /* all have read Q */\n", "    group_sync(1 + wg, warp ? 128 : 256);\n", {"another number of threads"}},
    {"no barrier before the store", "    group_sync(1 + wg, 128); /* all have written O */\n", "", {"reads what another wrote without a barrier"}},
    {"no barrier after the products", "    group_sync(1 + wg, 128); /* all have read Q */\n", "", {"may still read"}},
    {"another's barrier", "    group_sync(1 + wg, 128); /* all have read Q */\n", "    group_sync(1 + wg + warp % 2, 64); /* all have read Q */\n", {"may still read", "another number of threads", "arrives twice", "reads what"}},
    {"a barrier of too many", "    group_sync(1 + wg, 128); /* all have read Q */\n", "    group_sync(1 + wg, 256);\n", {"waits at named barrier"}},
    {"a barrier of half a warp", "    group_sync(1 + wg, 128); /* all have read Q */\n", "    group_sync(1 + wg, 16);\n", {"a wrong number of threads"}},
    {"barrier 0", "    group_sync(1 + wg, 128); /* all have read Q */\n", "    group_sync(0, 128);\n", {"not one of 1 to 15"}},
    {"arrival in place of a wait", "    group_sync(1 + wg, 128); /* all have written O */\n", "    group_arrive(1 + wg, 128);\n", {"reads what another wrote without a barrier"}},
    {"no wait for the store", "        bulk_wait_read();\n", "", {"ends while a bulk store reads"}},
    {"no commit of the store", "        bulk_commit();\n", "", {"ends while a bulk store reads"}},
    {"buffer overwritten under the store", "        bulk_commit();\n", "        bulk_commit();\n        smem_put_u32(own, 0);\n", {"overwrites what a product or a bulk store still reads"}},
    {"stores of two threads to one place", "    async_fence();\n", "    async_fence();\n    smem_put_u32(own, 0);\n", {"overwrites what another wrote"}},

    /* copies */
    {"a copy over an ordinary store", "            smem_put_u32(base + AT_MODE + 16 * stage, i);\n", "            smem_put_u32(base + AT_MODE + 16 * stage, i), smem_put_u32(base + AT_K + stage * TILE, i);\n",
     {"copies to what an ordinary store wrote without async_fence"}},
    {"a copy over another", "        if (lane == 2)\n            bulk_load(base + AT_WORDS + stage * WORDS,", "        if (lane == 2)\n            bulk_load(base + AT_V + stage * TILE,",
     {"overwrites what a copy has still to bring"}},
    {"a store where a copy is in flight", "        if (lane == 2)\n", "        if (lane == 1)\n            smem_put_u32(base + AT_V + stage * TILE + 4096, 0);\n        if (lane == 2)\n",
     {"overwrites what a copy has still to bring"}},
    {"a misaligned box", "lane * 4096, &a->k", "lane * 4096 + 64, &a->k", {"is misaligned"}},
    {"a box outside", "lane * 4096, &a->k", "lane * 4096 + 65536, &a->k", {"goes outside"}},
    {"misaligned bytes", "a->words + 64 * i,", "a->words + 64 * i + 1,", {"from a misaligned address"}},
    {"bytes that are no tensor map", "&a->k,", "&a->k + 4,", {"no tensor map"}},
    {"the wrong head", "&a->k, base + FULL + 8 * stage, 0, 1,", "&a->k, base + FULL + 8 * stage, 0, 0,", {WRONG}},
    {"the wrong rows", "&a->o, own, 0, 1, 64 * wg, 0)", "&a->o, own, 0, 1, 64 * wg + 1, 0)", {WRONG}},
    {"shared memory that nobody wrote", "    mbarrier_wait(base + FULL_Q, 0);\n", "    smem_get_u32(base + END);\n    mbarrier_wait(base + FULL_Q, 0);\n", {"reads what nobody wrote"}},
    {"slack before the base", "    mbarrier_wait(base + FULL_Q, 0);\n", "    smem_get_u32(base - 4);\n    mbarrier_wait(base + FULL_Q, 0);\n", {"goes outside"}},
    {"an mbarrier read", "    mbarrier_wait(base + FULL_Q, 0);\n", "    smem_get_u32(base + FULL_Q);\n    mbarrier_wait(base + FULL_Q, 0);\n", {"reads an mbarrier"}},
    {"a load over what a bulk store reads", "        bulk_wait_read();\n", "        mbarrier_expect(base + FULL_Q, TILE);\n        tma_load(own, &a->q, base + FULL_Q, 0, 1, 0, 0);\n        bulk_wait_read();\n",
     {"overwrites what a product or a bulk store still reads"}},
    {"two arrivals at a named barrier", "    group_sync(1 + wg, 128); /* all have read Q */\n", "    group_arrive(1 + wg, 128);\n    group_sync(1 + wg, 128);\n", {"arrives twice at named barrier"}},
    {"a product by the copying warp", "    if (lane < WGS)\n", "    wgmma_fence();\n    if (lane < WGS)\n", {"is in no whole warpgroup"}},
    {"a misaligned tensor map", "&a->k,", "(const struct tensor_map *)((const u8 *)&a->k + 16),", {"a misaligned tensor map"}},
    {"a barrier before the base", "    const smem_t base = smem_base();\n", "    SYNC();\n    const smem_t base = smem_base();\n", {"calls smem_base() after a barrier"}},
    {"more bytes than a phase can expect", "expect(base + FULL_Q, WGS * TILE)", "expect(base + FULL_Q, 1u << 20)", {"expects too many bytes"}},
    {"registers in no multiple of 8", "    SYNC();\n", "    SYNC();\n    SET_REGISTERS_DOWN(28);\n", {"a wrong number of registers"}},
};
/* clang-format on */
