/* SPDX-License-Identifier: Apache-2.0 */
/* An H100's latencies, cycles of a processor's clock, each of one access with nothing beside it. Luo et al., "Benchmarking and
   Dissecting the Nvidia Hopper GPU Architecture" (arXiv 2402.13499): L1 41, L2 263, device memory 479, shared memory 29. */
#pragma once

enum {
    LATENCY_L1 = 41,
    LATENCY_L2 = 263,
    LATENCY_DRAM = 479,
    LATENCY_SHARED = 29,
    LATENCY_SHUFFLE = 24,
    LATENCY_SPECIAL = 18,  /* MUFU, conversions */
    LATENCY_CONSTANT = 26, /* LDC; special registers too */
    LATENCY_OTHER = 10,
    OPERANDS_READ = 6, /* until the scoreboard of an instruction's operands is released */
    BRANCH = 8,        /* from a jump to the instruction behind it */
    BARRIER = 6,       /* from the last warp's arrival */
    TENSOR = 6,      /* between two HMMA.16816 of a warp: 655 TFLOP/s, measured, at 1.83 GHz */
    WAVEFRONT = 128, /* bytes that shared memory moves in a cycle */
    BANKS_OF_SHARED = 32,
};
