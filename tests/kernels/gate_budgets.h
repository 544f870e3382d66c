/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of the CUDA templates, for gates_test: registers, bytes spilled and code of each kernel; and
   what a chip has of shared memory and registers, and how long the slowest may take to compile. */
#pragma once
#include "gen/target.h"

/* clang-format off */
enum { DIMS = 6 };
static const uint32_t dims[DIMS] = {32, 64, 80, 96, 128, 256};

/* Limits of a chip, from the CUDA programming guide: shared memory of a block. */
static const struct chip {
    const char *target;
    uint32_t shared_kib;
} chips[] = {
    {"sm_80", 163}, {"sm_90a", 227}, {"sm_86", 99}, {"sm_89", 99}, {"sm_100a", 227}, {"sm_120", 99},
    {"compute_80", 99},
};
enum { CHIPS = sizeof chips / sizeof *chips, USUAL_CHIPS = 2, REGISTERS = 65536 };

/* One template, over all targets, dtypes and lengths. Registers by head dimension, 0 where the
   family takes no such head; bytes of stack (what is spilled) and KiB of code, both at D up to 128
   and at 256. */
static const struct budget {
    const char *family, *entry;
    enum abi_transform transform;
    uint32_t registers[DIMS]; /* D   32   64   80   96  128  256 */
    uint32_t spill, spill_256, code_kib, code_kib_256;
} budgets[] = {
    /* family   entry                       transform        D 32   64   80   96  128  256   stack     code KiB
       Stack at D = 256 alone, where the sums fill the registers. */
    {"float",  "attention_forward",        ABI_SOFTMAX,   {128, 136, 136, 144, 144, 208},   0,   0,  40,  48},
    {"float",  "attention_dkv",            ABI_SOFTMAX,   {152, 168, 168, 176, 200, 255},   0,   0,  64,  80},
    {"float",  "attention_dq",             ABI_SOFTMAX,   {144, 144, 144, 152, 160, 216},   0,   0,  40,  52},
    {"float",  "attention_forward",        ABI_SPARSEGEN, {136, 128, 128, 136, 144, 208},   0,   0,  52,  60},
    {"float",  "attention_dkv",            ABI_SPARSEGEN, {152, 168, 168, 176, 200, 255},   0,   0,  72,  84},
    {"float",  "attention_dq",             ABI_SPARSEGEN, {144, 144, 144, 144, 144, 208},   0,   0,  56,  64},
    {"tf32",   "attention_forward",        ABI_SOFTMAX,   {104, 120, 120, 120, 152, 200},   0,   0,  40,  50},
    {"tf32",   "attention_dkv",            ABI_SOFTMAX,   {136, 152, 160, 168, 192, 255},   0,   0,  66,  84},
    {"tf32",   "attention_dq",             ABI_SOFTMAX,   {128, 152, 160, 160, 176, 216},   0,   0,  44,  54},
    {"tf32",   "attention_forward",        ABI_SPARSEGEN, {120, 128, 128, 136, 160, 255},   0,   0,  50,  60},
    {"tf32",   "attention_dkv",            ABI_SPARSEGEN, {136, 152, 160, 168, 192, 255},   0,   0,  72,  92},
    {"tf32",   "attention_dq",             ABI_SPARSEGEN, {136, 144, 136, 136, 144, 200},   0,   0,  60,  68},
    {"short",  "attention_short_forward",  ABI_SOFTMAX,   {144, 176, 192, 200, 240, 255},   0,   0,  92,  64},
    {"short",  "attention_short_backward", ABI_SOFTMAX,   {248, 255, 255, 255, 255, 255},   0,  16,  88, 112},
    {"short",  "attention_short_forward",  ABI_SPARSEGEN, {255, 248, 216, 216, 248, 255},   0,   0, 120,  80},
    {"short",  "attention_short_backward", ABI_SPARSEGEN, {248, 255, 255, 255, 255, 255},   0,  16, 108, 132},
    {"stream", "attention_forward",        ABI_SOFTMAX,   {120, 160, 168, 184, 224, 255},   0,   0,  60,  68},
    {"stream", "attention_dkv",            ABI_SOFTMAX,   {176, 192, 224, 232, 255, 255},   0,  16,  64,  88},
    {"stream", "attention_dq",             ABI_SOFTMAX,   {168, 176, 224, 232, 248, 255},   0,   0,  60,  64},
    {"parts",  "attention_forward",        ABI_SOFTMAX,   {120, 160, 168, 184, 224, 255},   0,   0,  60,  68},
    {"parts",  "attention_dkv",            ABI_SOFTMAX,   {176, 192, 224, 232, 255, 255},   0,  16,  64,  88},
    {"parts",  "attention_dq",             ABI_SOFTMAX,   {168, 176, 224, 232, 248, 255},   0,   0,  60,  64},
    {"tall",   "attention_forward",        ABI_SOFTMAX,   {  0,   0,   0,   0, 224, 255},   0,   0,  60,  68},
    {"tall",   "attention_dkv",            ABI_SOFTMAX,   {  0,   0,   0,   0, 255, 255},   0,  16,  64,  88},
    {"tall",   "attention_dq",             ABI_SOFTMAX,   {  0,   0,   0,   0, 248, 255},   0,   0,  60,  64},
    {"stream", "attention_forward",        ABI_SPARSEGEN, {120, 136, 152, 168, 200, 255},   0,   0,  80,  88},
    {"stream", "attention_dkv",            ABI_SPARSEGEN, {168, 192, 224, 232, 255, 255},   0,  16,  80, 112},
    {"stream", "attention_dq",             ABI_SPARSEGEN, {168, 184, 208, 224, 248, 255},   0,  16,  80,  84},
    /* With a soft mask: of both kinds. */
    {"soft float",  "attention_forward",   ABI_SOFTMAX,   {152, 160, 160, 160, 168, 216},   0,   0,  40,  52},
    {"soft float",  "attention_dkv",       ABI_SOFTMAX,   {160, 176, 176, 184, 200, 255},   0,   0,  68,  84},
    {"soft float",  "attention_dq",        ABI_SOFTMAX,   {160, 168, 168, 168, 176, 216},   0,   0,  48,  56},
    {"soft float",  "attention_dx",        ABI_SOFTMAX,   {136, 136, 136, 136, 136, 136},   0,   0,  24,  24},
    {"soft float",  "attention_forward",   ABI_SPARSEGEN, {152, 152, 152, 152, 160, 216},   0,   0,  52,  60},
    {"soft float",  "attention_dkv",       ABI_SPARSEGEN, {160, 176, 176, 184, 200, 255},   0,   0,  76,  92},
    {"soft float",  "attention_dq",        ABI_SPARSEGEN, {168, 168, 168, 168, 168, 216},   0,   0,  60,  68},
    {"soft float",  "attention_dx",        ABI_SPARSEGEN, {136, 136, 136, 136, 136, 136},   0,   0,  32,  32},
    {"soft stream", "attention_forward",   ABI_SOFTMAX,   {136, 160, 168, 176, 216, 255},   0,   0,  56,  64},
    {"soft stream", "attention_dkv",       ABI_SOFTMAX,   {168, 200, 224, 240, 255, 255},   0,   0,  64,  88},
    {"soft stream", "attention_dq",        ABI_SOFTMAX,   {160, 192, 208, 224, 255, 255},   0,   0,  60,  64},
    {"soft stream", "attention_dx",        ABI_SOFTMAX,   {168, 168, 168, 168, 168, 136},   0,   0,  56,  36},
    {"soft stream", "attention_forward",   ABI_SPARSEGEN, {136, 160, 176, 184, 216, 255},   0,   0,  76,  84},
    {"soft stream", "attention_dkv",       ABI_SPARSEGEN, {168, 200, 224, 240, 255, 255},   0,  32,  80, 104},
    {"soft stream", "attention_dq",        ABI_SPARSEGEN, {168, 200, 216, 224, 255, 255},   0,  16,  68,  76},
    {"soft stream", "attention_dx",        ABI_SPARSEGEN, {168, 168, 168, 168, 168, 136},   0,   0,  76,  48},
    {"soft float",   "attention_dx_sum",    ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft float",   "attention_dx_lines",  ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft float",   "attention_dx_sum",    ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft float",   "attention_dx_lines",  ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft stream",  "attention_dx_sum",    ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft stream",  "attention_dx_lines",  ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft stream",  "attention_dx_sum",    ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
    {"soft stream",  "attention_dx_lines",  ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},   0,   0,   4,   4},
};
/* clang-format on */

/* Plans that take longest to compile, timed by pass, and what the backward pass may take: a second, but
   float at D = 256, which is not there yet. */
static const struct slow {
    const char *family;
    enum abi_soft soft;
    uint32_t dim;
    enum abi_transform transform;
    uint32_t most_ms;
} slow[] = {
    {"stream", ABI_SOFT_NONE, 256, ABI_SPARSEGEN, 1000},
    {"parts", ABI_SOFT_NONE, 128, ABI_SOFTMAX, 1000},
    {"soft stream", ABI_SOFT_SCALE, 128, ABI_SPARSEGEN, 1000},
    {"soft float", ABI_SOFT_SCALE, 256, ABI_SPARSEGEN, 1500},
    {"tf32", ABI_SOFT_NONE, 256, ABI_SPARSEGEN, 1500},
};
enum { SLOW = sizeof slow / sizeof *slow };
