/* SPDX-License-Identifier: Apache-2.0 */
/* The table of machines.
     x86-amx, x86-avx512: printed by `maskc calibrate --table` on a Sapphire Rapids server. The peaks of x86-amx are of an
       earlier day than its rates: plans chosen with them were faster. Its tile_mask and its forward row_item are the
       measured difference between masked and unmasked kernels at n = 128.
     x86-bf16: the mean of two such runs on a Zen 4 server, which agreed. A bias in the forward pass: by hand, the kernel
       with one beside the one without, dense, n = 128 to 1024.
     x86-avx2, x86-sse: measured by hand on the Sapphire Rapids server.
     h100, h100-mma: fitted to the times of tests/results/h100-b84ec2a, the masks of timing.txt and the probes of
       calibrate.json, with the plans that were measured (tests/gen/h100). Those of cuda_tiled are then scaled, as its kernels
       changed. The bias is not measured. An H100 reached the peaks (655 TFLOP/s by mma.sync, a copy at 2.98 TB/s).
     All other GPUs: estimates, not measured. GPU() scales the H100's rates by ratios of the vendor's figures: clock; FLOP of a
       processor, in f32 and by mma.sync; bytes of a processor. A byte between L2 and a processor goes by the clock, and so does
       shared memory: vendors state no other figure for most of these GPUs. The size of L2 is in no rate. sm_86 goes by
       rtx3090, sm_89 by rtx4090 (l4 by name), sm_100a by b200, sm_120 by rtx5090, compute_80 by a100. */
#include "gen/cost/machine.h"
#include <stddef.h>

/* clang-format off */
/* Rates of GPUs: an H100's (the figures), each times a ratio of this GPU's seconds to the H100's. CLOCK: of a clock. PRODUCT: of a FLOP
   on a processor. BYTES: of a byte at a processor's share of the memory's rate. */
#define F32_RATES(CLOCK, PRODUCT, BYTES) { \
        {(PRODUCT)*3.49e-11, (CLOCK)*1.37e-09, (CLOCK)*9.96e-10, (CLOCK)*7.9e-11, (CLOCK)*2.73e-09, \
         (PRODUCT)*4.59e-11, (CLOCK)*3.79e-07, (CLOCK)*2.27e-07, (CLOCK)*2.94e-09, (PRODUCT)*1.08e-10, \
         (CLOCK)*5.65e-06, (CLOCK)*1.17e-06, 0, (CLOCK)*4.38e-07, (CLOCK)*8.78e-11, \
         0, (BYTES)*2.75e-11, 0, 0, 0, \
         (CLOCK)*3.8e-10, 0, (BYTES)*6.2e-11}, \
        {(PRODUCT)*4.83e-11, (CLOCK)*2.22e-09, (CLOCK)*1.88e-09, (CLOCK)*1.06e-10, (CLOCK)*4.48e-09, \
         (PRODUCT)*8.07e-11, (CLOCK)*5.34e-07, (CLOCK)*2.68e-07, (CLOCK)*4.75e-09, (PRODUCT)*1.66e-10, \
         (CLOCK)*4.87e-06, (CLOCK)*1.58e-06, 0, (CLOCK)*7.96e-07, (CLOCK)*1.46e-10, \
         0, (BYTES)*3.64e-11, 0, 0, 0, \
         (CLOCK)*7.6e-10, (PRODUCT)*1.1e-10, (BYTES)*7.7e-11}, \
        {(PRODUCT)*7.21e-11, (CLOCK)*2.98e-09, (CLOCK)*9.75e-10, (CLOCK)*4.83e-10, (CLOCK)*5.94e-09, \
         (PRODUCT)*1.02e-10, (CLOCK)*8.66e-07, (CLOCK)*4.79e-07, (CLOCK)*6.33e-09, (PRODUCT)*2.37e-10, \
         (CLOCK)*8.05e-06, (CLOCK)*3.55e-06, 0, (CLOCK)*5.1e-07, (CLOCK)*1.6e-10, \
         0, (BYTES)*3.62e-11, 0, 0, 0, \
         (CLOCK)*3.8e-10, 0, (BYTES)*8.36e-11}, \
    }
/* Seconds of today's cuda_tiled over those of the kernels that were timed, to which the rates below were fitted: of products; of
   other work of tiles and the columns that are brought; of masks; of row blocks; of global rows in dQ. By tools/sass --model h100 on
   one head of either, 65536 tokens x 12 heads, D = 64: dense and causal n = 512, window(256), longformer(64,2) and star n = 2048
   (tests/gen/h100/model_test.c), dense n = 2048: forward 1.46 over 1.80 ms, dQ 2.20 over 2.65, dK and dV 2.67 over 3.27. */
#define FLOP_FORWARD 1.0
#define TILE_FORWARD 0.70
#define MASK_FORWARD 1.4
#define ITEM_FORWARD 0.8
#define FLOP_DQ      0.90
#define TILE_DQ      0.70
#define MASK_DQ      1.05
#define ROW_DQ       0.85
#define ITEM_DQ      0.35
#define FLOP_DKV     0.87
#define TILE_DKV     0.70
#define MASK_DKV     1.4
#define ITEM_DKV     1.1
/* Half dtypes on the matrix unit. A block brings all columns that it visits (gather); dQ makes four products, dK and dV
   too. Lines: 0, the templates have none. */
#define MMA_RATES(CLOCK, PRODUCT, BYTES) { \
        {FLOP_FORWARD*(PRODUCT)*7.05e-13, TILE_FORWARD*(CLOCK)*1.18e-10, MASK_FORWARD*(CLOCK)*5.49e-10, TILE_FORWARD*(CLOCK)*2.34e-10, 0, \
         0, 0, 0, (CLOCK)*2.22e-08, (CLOCK)*2.5e-11, \
         (CLOCK)*3.67e-06, (CLOCK)*2e-07, 0, ITEM_FORWARD*(CLOCK)*3.3e-07, ITEM_FORWARD*(CLOCK)*1.76e-10, \
         0, (BYTES)*9.1e-11, 0, 0, 0, \
         (CLOCK)*3.8e-10, 0, (BYTES)*2e-11, ITEM_FORWARD*(CLOCK)*5e-07, (BYTES)*1.35e-09}, \
        {FLOP_DQ*(PRODUCT)*2.11e-12, TILE_DQ*(CLOCK)*1.11e-10, MASK_DQ*(CLOCK)*5.91e-10, TILE_DQ*(CLOCK)*1.9e-10, 0, \
         0, 0, 0, ROW_DQ*(CLOCK)*1.13e-08, (CLOCK)*3.7e-11, \
         ROW_DQ*(CLOCK)*4.09e-06, (CLOCK)*3e-07, 0, ITEM_DQ*(CLOCK)*6.95e-07, ITEM_DQ*(CLOCK)*4.15e-10, \
         0, (BYTES)*9.4e-11, 0, 0, 0, \
         (CLOCK)*1e-09, (PRODUCT)*1.6e-12, (BYTES)*1.15e-10, ITEM_DQ*(CLOCK)*5e-07, (BYTES)*1.95e-09}, \
        {FLOP_DKV*(PRODUCT)*2.27e-12, TILE_DKV*(CLOCK)*1.46e-10, MASK_DKV*(CLOCK)*4.59e-10, TILE_DKV*(CLOCK)*2.42e-10, 0, \
         0, 0, 0, (CLOCK)*1.32e-08, (CLOCK)*3.7e-11, \
         (CLOCK)*4.45e-06, (CLOCK)*3e-07, 0, ITEM_DKV*(CLOCK)*6.57e-07, ITEM_DKV*(CLOCK)*3.24e-10, \
         0, (BYTES)*9e-11, 0, 0, 0, \
         (CLOCK)*3.8e-10, 0, (BYTES)*9.4e-11, ITEM_DKV*(CLOCK)*5e-07, (BYTES)*2.1e-09}, \
    }
/* The same quotients of cuda_resident: of the work, and of masks, by pass. By tools/sass --model h100 at n = 128, 12 heads counted
   (tests/gen/h100/model_test.c): dense forward .170 over .180 ms, backward .348 over .439. The backward kernel no longer reads
   O. */
#define HEAD_FORWARD       0.80
#define HEAD_MASK_FORWARD  0.70
#define HEAD_BACKWARD      0.72
#define HEAD_MASK_BACKWARD 0.55
/* The work of heads of n > 128, whose kernels hold a part of a row's scores at a time: factors with which prices are within 10 % of the
   same model's quotients over cuda_tiled (model_test.c), dense: forward .275 over .264 ms at n = 256, backward .599 over .699 at n = 192;
   two row blocks a warp (n > 192): 1.045 over .877 at n = 200. */
#define CHUNKS_FORWARD     1.5
#define CHUNKS_BACKWARD    1.35
#define PAIRS_BACKWARD     1.25
/* As struct head_rates: item, tile, mask, gather and entry over the rates of today's cuda_tiled. One backward kernel moves seven tensors,
   where dQ and dK, dV move twelve. */
#define HEAD_RATES { \
        {HEAD_FORWARD * 0.25 / ITEM_FORWARD, HEAD_FORWARD * 0.59 / FLOP_FORWARD, HEAD_MASK_FORWARD * 0.034 / MASK_FORWARD, 3, 1, 16, \
         HEAD_FORWARD * 0.25 / TILE_FORWARD, HEAD_FORWARD * 0.59 / TILE_FORWARD, CHUNKS_FORWARD, 1}, \
        {HEAD_BACKWARD * 0.18 / ITEM_DQ, HEAD_BACKWARD * 1.1 / FLOP_DQ, HEAD_MASK_BACKWARD * 0.062 / MASK_DQ, 3, 7.0 / 12, 8, \
         HEAD_BACKWARD * 0.18 / TILE_DQ, HEAD_BACKWARD * 1.1 / TILE_DQ, CHUNKS_BACKWARD, PAIRS_BACKWARD}, \
        {HEAD_BACKWARD * 0.18 / ITEM_DKV, HEAD_BACKWARD * 1.1 / FLOP_DKV, HEAD_MASK_BACKWARD * 0.062 / MASK_DKV, 3, 7.0 / 12, 8, \
         HEAD_BACKWARD * 0.18 / TILE_DKV, HEAD_BACKWARD * 1.1 / TILE_DKV, CHUNKS_BACKWARD, PAIRS_BACKWARD}, \
    }

/* Two rows of a GPU that was not measured. SMS processors; GHZ: boost clock; F32 and MMA: TFLOP/s, FMA and dense bf16 with sums
   in f32; TB: TB/s that a copy reaches. The H100 under load: 132 processors, 1.83 GHz, 61.8, 655, 2.95. A processor computes
   16 exponentials a clock. */
#define GPU(NAME, SMS, GHZ, F32, MMA, TB) \
    {NAME, TARGET_CUDA, 1e12 * (F32), 16e9 * (SMS) * (GHZ), 1e12 * (TB), 1e12 * (TB), 0, 2.7e-6, 4 * (SMS), SMS, \
     F32_RATES(1.83 / (GHZ), 61.8 / 132 * (SMS) / (F32), 2.95 / 132 * (SMS) / (TB))}, \
    {NAME "-mma", TARGET_CUDA, 1e12 * (MMA), 16e9 * (SMS) * (GHZ), 1e12 * (TB), 1e12 * (TB), 0, 3.3e-6, 4 * (SMS), SMS, \
     MMA_RATES(1.83 / (GHZ), 655.0 / 132 * (SMS) / (MMA), 2.95 / 132 * (SMS) / (TB)), .heads = HEAD_RATES}
#define COPIED 0.88 /* of the data sheet's bytes a second, as on an H100 */

const struct machine machines[] = {
    /* name, kind, FLOP/s, exp/s, memory B/s, cache B/s, cache, launch, workers, processors, then for
       forward, dQ, dK and dV (rates that are left out are 0):
        tile_flop tile_entry tile_mask  gather   line_entry line_flop   line    line_row  row_entry  row_flop
        row_item   row_range  far      item   item_element  pack   stream   tile_far   mixed   mixed_row
        bias       bias_flop  exposed  loop    partial */
    {"x86-amx", TARGET_CPU, 2.89e+12, 7.81e+09, 1.21e+10, 1.34e+11, 2e+06, 1.5e-06, 1, 0, {
        { 5.33e-13, 1.65e-10,    2e-11, 2.98e-10, 3.53e-10, 1.35e-11,  2.2e-08, 2.37e-09,  1.5e-09, 7.97e-12,
             4e-07, 4.75e-08,  1.6e-11, 2.82e-07, 3.49e-11, 2.31e-11, 3.79e-11, 1.08e-10,    1e-10,    5e-08,
           6.5e-10},
        { 8.96e-13,  2.9e-10,    3e-11, 4.35e-10, 5.18e-10, 2.09e-11, 2.62e-08, 1.19e-10, 2.41e-09, 1.35e-11,
          4.17e-08,  5.8e-08, 1.68e-11, 2.17e-07, 1.36e-10, 5.41e-11, 4.44e-11, 1.94e-10, 3.17e-10, 6.25e-08,
             1e-09},
        { 8.73e-13, 2.51e-10,    3e-11, 5.79e-10, 6.52e-10, 1.45e-11, 1.14e-07, 1.99e-10, 2.91e-09, 1.56e-11,
          2.34e-08, 1.39e-07,  3.6e-11, 3.98e-07, 2.12e-10, 5.41e-11, 6.39e-11, 2.21e-10, 1.95e-10, 9.03e-08,
          1.07e-09},
    }},
    {"x86-bf16", TARGET_CPU, 2.29e+11, 9.1e+09, 2.3e+10, 9e+10, 1e+06, 1.5e-06, 1, 0, {
        {5.67e-12, 1.67e-10,    2e-11,    3e-10, 3.51e-10, 1.29e-11, 2.86e-08,  2.3e-09, 2.04e-09, 1.19e-11,
         4.07e-08,  1.3e-07, 2.73e-11, 4.52e-07, 4.03e-11, 2.41e-11, 7.21e-11, 9.43e-11,    1e-10,    5e-08,
            3e-10},
        {8.83e-12, 2.98e-10,    5e-12, 4.35e-10, 5.12e-10, 1.85e-11, 2.69e-08, 8.32e-11, 3.42e-09, 2.16e-11,
         4.17e-08, 1.69e-07, 3.96e-11, 3.46e-07,  2.4e-10, 5.41e-12, 9.71e-11, 7.53e-10, 3.17e-10, 6.25e-08,
            1e-09},
        {   1e-11, 2.51e-10,    5e-12,    8e-10, 7.07e-10, 2.14e-11, 8.17e-08, 1.47e-10, 4.26e-09, 2.55e-11,
         1.62e-07, 1.36e-07, 3.61e-11, 9.34e-08, 4.78e-11, 6.34e-12,  9.8e-11, 3.19e-10, 1.95e-10, 9.03e-08,
         1.07e-09},
    }},
    {"x86-avx512", TARGET_CPU, 2.42e+11, 7.81e+09, 1.21e+10, 1.34e+11, 2e+06, 1.5e-06, 1, 0, {
        {  5.9e-12,  2.44e-10,  2.78e-12,  4.46e-10,  3.53e-10,  1.25e-11,  2.33e-08,  1.43e-10,  1.57e-09,  8.62e-12,
          2.73e-08,  4.27e-08,  3.94e-11,  5.56e-08,  2.71e-11,  3.97e-11,  3.14e-11,  3.86e-11,  8.48e-10,  2.99e-09,
           2.3e-10},
        {  8.5e-12,  3.57e-10,  3.84e-12,   6.3e-10,  5.12e-10,  1.83e-11,  2.76e-08,  2.09e-10,  2.36e-09,  1.32e-11,
             3e-08,   5.5e-08,  3.69e-11,  8.69e-09,  3.67e-12,  8.01e-10,  3.24e-11,  7.93e-11,  1.08e-09,  4.37e-09,
             5e-10},
        { 1.17e-11,  4.79e-10,  2.06e-12,  5.08e-10,  6.96e-10,  2.39e-11,  2.76e-08,  3.11e-11,   3.5e-09,  2.07e-11,
          4.28e-08,  6.35e-08,  4.78e-11,  3.76e-07,  1.87e-10,  8.01e-10,  2.53e-11,  1.02e-10,  1.94e-09,  5.82e-08,
             5e-10},
    }},
    {"x86-avx2", TARGET_CPU, 96e9, 4e9, 14e9, 90e9, 1e6, 1.5e-6, 1, 0, {
        {  1.1e-11,     2e-10,     1e-10,   2.5e-10,     6e-10,  1.95e-11,   1.8e-08,   2.2e-08,   2.5e-09,   1.6e-11,
           3.5e-07,     2e-08,     5e-11,   2.5e-07,   1.2e-10,   1.4e-10,     3e-11,     3e-11,     1e-09,     3e-08,
             4e-10},
        {  1.6e-11,  2.91e-10,  1.46e-10,  3.64e-10,  8.74e-10,  2.84e-11,  2.62e-08,  3.21e-08,  3.64e-09,  2.33e-11,
           5.1e-07,  2.91e-08,  7.29e-11,  3.64e-07,  1.75e-10,   1.4e-10,     3e-11,  4.38e-11,  1.46e-09,  4.38e-08,
             1e-09},
        { 2.14e-11,  3.89e-10,  1.94e-10,  4.86e-10,  1.17e-09,  3.79e-11,   3.5e-08,  4.27e-08,  4.86e-09,  3.11e-11,
           6.8e-07,  3.89e-08,  9.71e-11,  4.86e-07,  2.33e-10,   1.4e-10,     3e-11,  5.82e-11,  1.94e-09,  5.82e-08,
             1e-09},
    }},
    {"x86-sse", TARGET_CPU, 36e9, 2e9, 14e9, 60e9, 1e6, 1.5e-6, 1, 0, {
        {  2.9e-11,   4.5e-10,     3e-10,     4e-10,     5e-10,   4.4e-11,   3.5e-08,   3.3e-08,   2.3e-09,     4e-11,
             4e-07,     3e-08,     6e-11,     3e-07,   1.5e-10,     2e-10,     3e-11,     3e-11,     1e-09,     3e-08,
             7e-10},
        { 4.23e-11,  6.56e-10,  4.37e-10,  5.83e-10,  7.29e-10,  6.41e-11,   5.1e-08,  4.81e-08,  3.35e-09,  5.83e-11,
          5.83e-07,  4.37e-08,  8.74e-11,  4.37e-07,  2.19e-10,     2e-10,     3e-11,  4.38e-11,  1.46e-09,  4.38e-08,
             2e-09},
        { 5.63e-11,  8.74e-10,  5.83e-10,  7.77e-10,  9.71e-10,  8.55e-11,   6.8e-08,  6.41e-08,  4.47e-09,  7.77e-11,
          7.77e-07,  5.83e-08,  1.17e-10,  5.83e-07,  2.91e-10,     2e-10,     3e-11,  5.82e-11,  1.94e-09,  5.82e-08,
             2e-09},
    }},
    {"h100", TARGET_CUDA, 67e12, 3.7e12, 2.95e12, 2.95e12, 0, 2.7e-6, 528, 132, F32_RATES(1, 1, 1)},
    {"h100-mma", TARGET_CUDA, 660e12, 3.7e12, 2.95e12, 2.95e12, 0, 3.3e-6, 528, 132, MMA_RATES(1, 1, 1), .heads = HEAD_RATES},
    /* NVIDIA A100 data sheet, 40 GB; bytes: published copies */
    GPU("a100", 108, 1.41, 19.5, 312, 1.4),
    /* NVIDIA Ampere GA102 whitepaper */
    GPU("rtx3090", 82, 1.695, 35.6, 71, COPIED * 0.936),
    /* NVIDIA Ada GPU architecture whitepaper */
    GPU("rtx4090", 128, 2.52, 82.6, 165.2, COPIED * 1.008),
    /* NVIDIA L4 data sheet, whose 242 TFLOP/s are of sparse matrices; at the boost clock, which 72 W may not hold */
    GPU("l4", 58, 2.04, 30.3, 121, COPIED * 0.3),
    /* NVIDIA RTX Blackwell GPU architecture whitepaper */
    GPU("rtx5090", 170, 2.407, 104.8, 209.5, COPIED * 1.792),
    /* NVIDIA HGX B200 data sheet. Its 2250 TFLOP/s need tcgen05, which the kernels have not: mma.sync is taken to do as many
       FLOP a clock as on an H100 */
    GPU("b200", 148, 1.965, 74.5, 655.0 * 148 / 132 * 1.965 / 1.83, COPIED * 8),
    {.name = NULL},
};
/* clang-format on */
