/* SPDX-License-Identifier: Apache-2.0 */
/* Small kernels of hopper_emulation_test: one compares a product of a warpgroup with its definition (KIND, N, ACCUMULATE, and 16 of k from
   K on), one stores a box. */
#pragma once

/* One warpgroup writes 192 rows of 64 whole numbers to shared memory, under the swizzle, in two parts of 64 columns each: A
   (rows 0 to 63) and B (64 to 191). It goes outside of
   shared memory where the product is wrong. */
static const char shapes_text[] =
    "#include \"cuda/hopper/device.h\"\n"
    "enum { PART = 192 * 128 };\n"
    "DEVICE float value(u32 row, u32 c) { return (float)((row * 5 + c * 3 + row * c) % 7) - 3; "
    "}\n"
    "DEVICE smem_t place(smem_t base, u32 row, u32 c)\n"
    "{\n"
    "    return base + c / 64 * PART + 128 * row + 16 * ((c % 64 / 8) ^ row % 8) + c % 8 * 2;\n"
    "}\n"
    "ENTRY_OF(shapes, 128, 1)(ARGS args)\n"
    "{\n"
    "    const smem_t base = smem_base();\n"
    "    const u32 warp = THREAD / 32, lane = THREAD % 32;\n"
    "    float d[64];\n"
    "    u32 a[4];\n"
    "    for (u32 i = THREAD; i < 192 * 64; i += 128)\n"
    "        smem_put_u32(place(base, i / 64, i % 64 * 2), half_pack(value(i / 64, i % 64 * "
    "2), value(i / 64, i % 64 * 2 + 1)));\n"
    "    async_fence();\n"
    "    SYNC();\n"
    "    for (u32 k = 0; k < 4; k++) {\n"
    "        const u32 row = 16 * warp + lane / 4 + 8 * (k % 2), c = K + 2 * (lane % 4) + 8 * "
    "(k / 2);\n"
    "        a[k] = half_pack(value(row, c), value(row, c + 1));\n"
    "    }\n"
    "    for (u32 k = 0; k < 64; k++)\n"
    "        d[k] = (float)k;\n"
    "    wgmma_fence();\n"
    "    const smem_t along = base + K / 64 * PART + K % 64 * 2;\n"
    "    for (u32 times = 0; times < 2; times++) { /* sums that a product left need no fence "
    "*/\n"
    "        const u32 accumulate = times || ACCUMULATE;\n"
    "        if (KIND == 0)\n"
    "            wgmma_ss(N, d, matrix_descriptor(along, 16), matrix_descriptor(along + 64 * "
    "128, 16), accumulate);\n"
    "        else if (KIND == 1)\n"
    "            wgmma_rk(N, d, a, matrix_descriptor(along + 64 * 128, 16), accumulate);\n"
    "        else\n"
    "            wgmma_rs(N, d, a, matrix_descriptor(base + (64 + K) * 128, PART), "
    "accumulate);\n"
    "        wgmma_commit();\n"
    "        WGMMA_WAIT(0);\n"
    "    }\n"
    "    for (u32 k = 0; k < N / 2; k++) {\n"
    "        const u32 row = 16 * warp + lane / 4 + 8 * (k / 2 % 2), column = 8 * (k / 4) + 2 "
    "* (lane % 4) + k % 2;\n"
    "        float sum = ACCUMULATE ? (float)k : 0;\n"
    "        for (u32 x = K; x < K + 16; x++)\n"
    "            sum += 2 * value(row, x) * (KIND == 2 ? value(64 + x, column) : value(64 + "
    "column, x));\n"
    "        if (d[k] != sum)\n"
    "            smem_put_u32(base - 4, k); /* refused */\n"
    "    }\n"
    "}\n";

/* A store of a box of which one thread wrote one chunk. */
/* clang-format off */
static const char clipped_text[] =
    "#define ARGS_STRUCT struct clipped_args\n"
    "#include \"cuda/hopper/device.h\"\n"
    "struct clipped_args { struct tensor_map q, k, v, o; };\n"
    "ENTRY_OF(pipeline, 288, 1)(ARGS a)\n"
    "{\n"
    "    const smem_t base = smem_base();\n"
    "    const struct u32x4 x = {0x20001, 3, 4, 5};\n"
    "    if (THREAD)\n"
    "        return;\n"
    "    smem_put_u32x4(base, x);\n"
    "    async_fence();\n"
    "    tma_store(&a.o, base, 0, 0, 0, 0);\n"
    "    bulk_commit();\n"
    "    bulk_wait();\n"
    "}\n";
/* clang-format on */
