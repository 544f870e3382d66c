/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that hopper_emulation_test breaks: two warpgroups of 64 rows and a warp that copies compute
   O = sum over steps of P V with P = Q K^T, rows of P negated where a word that came along says so. The first operand is in
   shared memory, or with ROWS_IN_REGISTERS in registers; S of a step runs beside P V of the last one. */
#pragma once

/* clang-format off */
#define PIPELINE_TEXT \
"#define ARGS_STRUCT struct pipeline_args\n" \
"#include \"cuda/hopper/device.h\"\n" \
"struct pipeline_args { struct tensor_map q, k, v, o; const u32 *words; };\n" \
"enum { WGS = 2, KEYS = 64, STEPS = 4, STAGES = 2, TILE = 8192, WORDS = 256,\n" \
"       AT_Q = 0, AT_K = AT_Q + WGS * TILE, AT_V = AT_K + STAGES * TILE, AT_WORDS = AT_V + STAGES * TILE,\n" \
"       AT_MODE = AT_WORDS + STAGES * WORDS, AT_BARS = AT_MODE + STAGES * 16,\n" \
"       FULL_Q = AT_BARS, FULL = FULL_Q + 8, EMPTY = FULL + 8 * STAGES, END = EMPTY + 8 * STAGES };\n" \
"DEVICE void copy(const struct pipeline_args *a, smem_t base, u32 lane)\n" \
"{\n" \
"    if (lane == 0)\n" \
"        mbarrier_expect(base + FULL_Q, WGS * TILE);\n" \
"    SYNC_WARP();\n" \
"    if (lane < WGS)\n" \
"        tma_load(base + AT_Q + lane * TILE, &a->q, base + FULL_Q, 0, 1, 64 * lane, 0);\n" \
"    for (u32 i = 0; i < STEPS; i++) {\n" \
"        const u32 stage = i % STAGES, parity = i / STAGES & 1;\n" \
"        mbarrier_wait(base + EMPTY + 8 * stage, parity ^ 1);\n" \
"        if (lane == 0) {\n" \
"            smem_put_u32(base + AT_MODE + 16 * stage, i);\n" \
"            mbarrier_expect(base + FULL + 8 * stage, 2 * TILE + WORDS);\n" \
"        }\n" \
"        SYNC_WARP();\n" \
"        if (lane < 2)\n" \
"            tma_load(base + AT_K + stage * TILE + lane * 4096, &a->k, base + FULL + 8 * stage, 0, 1, 64 * i + 32 * lane, 0);\n" \
"        if (lane < 2)\n" \
"            tma_load(base + AT_V + stage * TILE + lane * 4096, &a->v, base + FULL + 8 * stage, 0, 1, 64 * i + 32 * lane, 0);\n" \
"        if (lane == 2)\n" \
"            bulk_load(base + AT_WORDS + stage * WORDS, a->words + 64 * i, WORDS, base + FULL + 8 * stage);\n" \
"    }\n" \
"}\n" \
"DEVICE void multiply_scores(float *s, const u32 *rows, smem_t own, smem_t k)\n" \
"{\n" \
"    for (u32 i = 0; i < 4; i++)\n" \
"        if (ROWS_IN_REGISTERS)\n" \
"            wgmma_rk(KEYS, s, rows + 4 * i, matrix_descriptor(k + 32 * i, 16), i > 0);\n" \
"        else\n" \
"            wgmma_ss(KEYS, s, matrix_descriptor(own + 32 * i, 16), matrix_descriptor(k + 32 * i, 16), i > 0);\n" \
"    wgmma_commit();\n" \
"}\n" \
"DEVICE void multiply_values(float *o, const u32 *p, smem_t v)\n" \
"{\n" \
"    for (u32 i = 0; i < KEYS / 16; i++)\n" \
"        wgmma_rs(64, o, p + 4 * i, matrix_descriptor(v + 2048 * i, 8192), 1);\n" \
"    wgmma_commit();\n" \
"}\n" \
"DEVICE void attend(const struct pipeline_args *a, smem_t base, u32 wg, u32 thread)\n" \
"{\n" \
"    const u32 warp = thread / 32, lane = thread % 32, row = 16 * warp + lane % 16;\n" \
"    const smem_t own = base + AT_Q + wg * TILE;\n" \
"    float o[32], s[KEYS / 2];\n" \
"    u32 p[KEYS / 4], rows[16];\n" \
"    for (u32 k = 0; k < 32; k++)\n" \
"        o[k] = 0;\n" \
"    mbarrier_wait(base + FULL_Q, 0);\n" \
"    for (u32 k = 0; k < 4 && ROWS_IN_REGISTERS; k++)\n" \
"        smem_load4(rows + 4 * k, own + 128 * row + 16 * ((2 * k + lane / 16) ^ row % 8));\n" \
"    for (u32 i = 0; i < STEPS; i++) {\n" \
"        const u32 stage = i % STAGES, parity = i / STAGES & 1, last = (i + 1) % STAGES;\n" \
"        mbarrier_wait(base + FULL + 8 * stage, parity);\n" \
"        const u32 mode = smem_get_u32(base + AT_MODE + 16 * stage);\n" \
"        const u32 low = smem_get_u32(base + AT_WORDS + stage * WORDS + 4 * (16 * warp + lane / 4));\n" \
"        const u32 high = smem_get_u32(base + AT_WORDS + stage * WORDS + 4 * (16 * warp + lane / 4 + 8));\n" \
"        wgmma_fence();\n" \
"        multiply_scores(s, rows, own, base + AT_K + stage * TILE);\n" \
"        if (i > 0)\n" \
"            multiply_values(o, p, base + AT_V + last * TILE);\n" \
"        WGMMA_WAIT(0);\n" \
"        if (i > 0)\n" \
"            mbarrier_arrive_if(base + EMPTY + 8 * last, lane == 0);\n" \
"        for (u32 k = 0; k < KEYS / 4; k++) {\n" \
"            const float sign = ((k % 2 ? high : low) ^ mode) & 1 ? -1.0f : 1.0f;\n" \
"            p[k] = half_pack(sign * s[2 * k], sign * s[2 * k + 1]);\n" \
"        }\n" \
"    }\n" \
"    wgmma_fence();\n" \
"    multiply_values(o, p, base + AT_V + (STEPS - 1) % STAGES * TILE);\n" \
"    WGMMA_WAIT(0);\n" \
"    mbarrier_arrive_if(base + EMPTY + 8 * ((STEPS - 1) % STAGES), lane == 0);\n" \
"    group_sync(1 + wg, 128); /* all have read Q */\n" \
"    for (u32 k = 0; k < 4; k++)\n" \
"        smem_store4(own + 128 * row + 16 * ((2 * k + lane / 16) ^ row % 8), half_pack(o[8 * k], o[8 * k + 1]),\n" \
"                    half_pack(o[8 * k + 2], o[8 * k + 3]), half_pack(o[8 * k + 4], o[8 * k + 5]), half_pack(o[8 * k + 6], o[8 * k + 7]));\n" \
"    async_fence();\n" \
"    group_sync(1 + wg, 128); /* all have written O */\n" \
"    if (thread == 0) {\n" \
"        tma_store(&a->o, own, 0, 1, 64 * wg, 0);\n" \
"        bulk_commit();\n" \
"        bulk_wait_read();\n" \
"    }\n" \
"}\n" \
"ENTRY_OF(pipeline, 32 + 128 * WGS, 1)(ARGS a)\n" \
"{\n" \
"    const smem_t base = smem_base();\n" \
"    const u32 warp = uniform(THREAD / 32);\n" \
"    if (THREAD == 0) {\n" \
"        mbarrier_init(base + FULL_Q, 1);\n" \
"        for (u32 k = 0; k < STAGES; k++) {\n" \
"            mbarrier_init(base + FULL + 8 * k, 1);\n" \
"            mbarrier_init(base + EMPTY + 8 * k, 4 * WGS);\n" \
"        }\n" \
"        mbarrier_init_fence();\n" \
"    }\n" \
"    SYNC();\n" \
"    if (warp == 4 * WGS) {\n" \
"        copy(&a, base, THREAD % 32);\n" \
"    } else {\n" \
"        attend(&a, base, warp / 4, THREAD % 128);\n" \
"    }\n" \
"}\n"
/* clang-format on */
