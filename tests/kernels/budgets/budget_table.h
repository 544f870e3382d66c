/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of the CUDA templates, for resource_budgets_test: registers, bytes spilled and code of each kernel; and
   what a chip has of shared memory and registers, and how long the slowest may take to compile. */
#pragma once
#include "gen/target.h"

/* clang-format off */
enum { DIMS = 6 };
static const uint32_t dims[DIMS] = {32, 64, 80, 96, 128, 256};

/* The other numbers of steps of 16, one head dimension for each: nothing is spilled, and they fit the chip. */
enum { OTHER_DIMS = 8 };
static const uint32_t other_dims[OTHER_DIMS] = {16, 48, 112, 144, 160, 176, 208, 240};

/* Limits of a chip, from the CUDA programming guide: shared memory of a block. */
static const struct chip {
    const char *target;
    uint32_t shared_kib;
    bool newest; /* ptxas takes whatever registers the launch bounds leave */
} chips[] = {
    {"sm_80", 163}, {"sm_90a", 227}, {"sm_86", 99}, {"sm_89", 99}, {"sm_100a", 227, true},
    {"sm_120", 99, true},
    {"compute_80", 99},
};
enum { CHIPS = sizeof chips / sizeof *chips, USUAL_CHIPS = 2, REGISTERS = 65536 };

/* One template, over all targets, dtypes and lengths. Registers by head dimension, 0 where the
   family takes no such head; KiB of code at D up to 128 and at 256. Nothing is spilled. */
static const struct budget {
    const char *family, *entry;
    enum abi_transform transform;
    uint32_t registers[DIMS]; /* D   32   64   80   96  128  256 */
    uint32_t code_kib, code_kib_256;
} budgets[] = {
    /* family   entry                       transform        D 32   64   80   96  128  256   code KiB */
    {"float",  "attention_forward",        ABI_SOFTMAX,   {120, 128, 128, 136, 136, 208},   36,  48},
    {"float",  "attention_dkv",            ABI_SOFTMAX,   {128, 160, 152, 160, 184, 255},   40,  80},
    {"float",  "attention_dq",             ABI_SOFTMAX,   {128, 136, 136, 136, 152, 216},   34,  52},
    {"float",  "attention_forward",        ABI_SPARSEGEN, {128, 120, 128, 136, 144, 208},   48,  60},
    {"float",  "attention_dkv",            ABI_SPARSEGEN, {128, 152, 160, 168, 192, 255},   40,  84},
    {"float",  "attention_dq",             ABI_SPARSEGEN, {128, 136, 128, 128, 136, 208},   44,  64},
    {"tf32",   "attention_forward",        ABI_SOFTMAX,   {112, 136, 120, 120, 152, 200},   40,  50},
    {"tf32",   "attention_dkv",            ABI_SOFTMAX,   {136, 160, 168, 176, 208, 255},   52,  84},
    {"tf32",   "attention_dq",             ABI_SOFTMAX,   {128, 152, 144, 144, 176, 216},   40,  54},
    {"tf32",   "attention_forward",        ABI_SPARSEGEN, {120, 128, 128, 136, 160, 255},   50,  60},
    {"tf32",   "attention_dkv",            ABI_SPARSEGEN, {136, 160, 168, 176, 216, 255},   52,  92},
    {"tf32",   "attention_dq",             ABI_SPARSEGEN, {112, 136, 136, 128, 144, 200},   52,  68},
    {"resident",  "attention_resident_forward",  ABI_SOFTMAX,   {120, 160, 176, 184, 224, 248},   60,  56},
    {"resident",  "attention_resident_backward", ABI_SOFTMAX,   {255, 255, 232, 240, 248, 216},   82,  81},
    {"resident",  "attention_resident_forward",  ABI_SPARSEGEN, {128, 152, 168, 168, 208, 248},   68,  64},
    {"resident",  "attention_resident_backward", ABI_SPARSEGEN, {255, 255, 232, 232, 248, 216},   87,  86},
    {"tiled", "attention_forward",        ABI_SOFTMAX,   {128, 144, 160, 168, 200, 248},   58,  66},
    {"tiled", "attention_dkv",            ABI_SOFTMAX,   {168, 168, 192, 216, 248, 248},   57,  65},
    {"tiled", "attention_dq",             ABI_SOFTMAX,   {160, 168, 184, 208, 255, 248},   60,  68},
    {"parts",  "attention_forward",        ABI_SOFTMAX,   {128, 144, 160, 168, 200, 248},   70,  81},
    {"parts",  "attention_dkv",            ABI_SOFTMAX,   {152, 168, 192, 216, 248, 248},   54,  60},
    {"parts",  "attention_dq",             ABI_SOFTMAX,   {152, 168, 184, 208, 255, 255},   62,  64},
    {"tall",   "attention_forward",        ABI_SOFTMAX,   {  0,   0,   0,   0, 200, 248},   67,  74},
    {"tall",   "attention_dkv",            ABI_SOFTMAX,   {  0,   0,   0,   0, 248, 248},   54,  60},
    {"tall",   "attention_dq",             ABI_SOFTMAX,   {  0,   0,   0,   0, 255, 255},   60,  64},
    {"tiled", "attention_forward",        ABI_SPARSEGEN, {112, 128, 160, 168, 192, 255},   63,  69},
    {"tiled", "attention_dkv",            ABI_SPARSEGEN, {152, 160, 184, 192, 232, 248},   49,  51},
    {"tiled", "attention_dq",             ABI_SPARSEGEN, {144, 168, 144, 168, 176, 248},   53,  61},
    /* cuda_hopper: registers are those of the launch; setmaxnreg moves them from the copying warp to the others. */
    {"hopper first", "attention_forward", ABI_SOFTMAX, {128, 128, 168, 168, 168, 0}, 65, 0},
    {"hopper first", "attention_dq", ABI_SOFTMAX, {168, 168, 168, 168, 168, 0}, 66, 0},
    {"hopper first", "attention_dkv", ABI_SOFTMAX, {168, 168, 168, 168, 168, 0}, 55, 0},
    {"hopper second", "attention_forward", ABI_SOFTMAX, {96,  96,   0,   0,   0, 0}, 49, 0},
    {"hopper second", "attention_dq", ABI_SOFTMAX, {128, 128,   0,   0,   0, 0}, 56, 0},
    {"hopper second", "attention_dkv", ABI_SOFTMAX, {128, 128,   0,   0,   0, 0}, 44, 0},
    {"hopper third", "attention_forward", ABI_SOFTMAX, {120, 128,   0,   0,   0, 0}, 49, 0},
    {"hopper third", "attention_dq", ABI_SOFTMAX, {168, 168,   0,   0,   0, 0}, 66, 0},
    {"hopper third", "attention_dkv", ABI_SOFTMAX, {168, 168,   0,   0,   0, 0}, 55, 0},
    {"hopper", "attention_forward_merge", ABI_SOFTMAX, { 40, 40, 40, 40, 40, 0}, 6, 0},
    {"hopper", "attention_dq_merge", ABI_SOFTMAX, { 40, 40, 40, 40, 40, 0}, 6, 0},
    {"hopper", "attention_dkv_merge", ABI_SOFTMAX, { 40, 40, 40, 40, 40, 0}, 6, 0},
    /* With a bias: of both kinds. */
    {"bias float",  "attention_forward",   ABI_SOFTMAX,   {128, 136, 136, 136, 136, 216},   40,  52},
    {"bias float",  "attention_dkv",       ABI_SOFTMAX,   {128, 152, 152, 160, 192, 255},   40,  84},
    {"bias float",  "attention_dq",        ABI_SOFTMAX,   {128, 136, 136, 136, 152, 216},   36,  56},
    {"bias float",  "attention_dx",        ABI_SOFTMAX,   {128, 128, 136, 128, 136, 136},   24,  24},
    {"bias float",  "attention_forward",   ABI_SPARSEGEN, {128, 128, 128, 128, 136, 216},   50,  60},
    {"bias float",  "attention_dkv",       ABI_SPARSEGEN, {128, 152, 152, 160, 192, 255},   40,  92},
    {"bias float",  "attention_dq",        ABI_SPARSEGEN, {128, 136, 128, 136, 136, 216},   46,  68},
    {"bias float",  "attention_dx",        ABI_SPARSEGEN, {128, 128, 136, 136, 136, 136},   26,  32},
    {"bias tiled", "attention_forward",   ABI_SOFTMAX,   {136, 160, 184, 176, 216, 255},   66,  77},
    {"bias tiled", "attention_dkv",       ABI_SOFTMAX,   {168, 200, 224, 240, 255, 255},   64,  88},
    {"bias tiled", "attention_dq",        ABI_SOFTMAX,   {160, 192, 208, 224, 255, 255},   61,  64},
    {"bias tiled", "attention_dx",        ABI_SOFTMAX,   {168, 168, 168, 168, 168, 136},   56,  36},
    {"bias tiled", "attention_forward",   ABI_SPARSEGEN, {136, 160, 176, 184, 216, 255},   76,  84},
    {"bias tiled", "attention_dkv",       ABI_SPARSEGEN, {168, 200, 224, 240, 255, 255},   80, 104},
    {"bias tiled", "attention_dq",        ABI_SPARSEGEN, {168, 200, 216, 224, 255, 255},   68,  76},
    {"bias tiled", "attention_dx",        ABI_SPARSEGEN, {168, 168, 168, 168, 168, 136},   76,  48},
    {"bias tf32",   "attention_forward",   ABI_SOFTMAX,   {120, 160, 136, 136, 152, 216},   44,  52},
    {"bias tf32",   "attention_dkv",       ABI_SOFTMAX,   {128, 168, 168, 184, 208, 255},   52,  84},
    {"bias tf32",   "attention_dq",        ABI_SOFTMAX,   {128, 152, 152, 144, 176, 216},   46,  56},
    {"bias tf32",   "attention_dx",        ABI_SOFTMAX,   {104, 104, 104, 104, 104, 136},   28,  28},
    {"bias tf32",   "attention_forward",   ABI_SPARSEGEN, {112, 152, 136, 136, 168, 255},   52,  60},
    {"bias tf32",   "attention_dkv",       ABI_SPARSEGEN, {128, 160, 168, 184, 216, 255},   52,  92},
    {"bias tf32",   "attention_dq",        ABI_SPARSEGEN, {120, 136, 136, 128, 160, 216},   58,  68},
    {"bias tf32",   "attention_dx",        ABI_SPARSEGEN, {104, 104, 104, 104, 104, 136},   30,  36},
    {"", "attention_key_heads",            ABI_SOFTMAX,   { 48,  48,  48,  48,  48,  48},    5,   5},
    {"", "attention_key_heads",            ABI_SPARSEGEN, { 48,  48,  48,  48,  48,  48},    5,   5},
    {"bias", "attention_dx_sum",           ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},    4,   4},
    {"bias", "attention_dx_lines",         ABI_SOFTMAX,   { 32,  32,  32,  32,  32,  32},    4,   4},
    {"bias", "attention_dx_sum",           ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},    4,   4},
    {"bias", "attention_dx_lines",         ABI_SPARSEGEN, { 32,  32,  32,  32,  32,  32},    4,   4},
};
/* clang-format on */

/* Plans that have fewest registers to spare, with dropout unless `plain`, which are in the usual run: without
   what gen/family/cuda_tiled.c, gen/family/cuda_resident.c or a template does for them they spill. */
static const struct tight {
    const char *target, *family;
    enum abi_bias bias;
    uint32_t length, dim;
    enum abi_transform transform;
    bool f16, plain; /* else bf16; no dropout */
} tight[] = {
    {"sm_100a", "tiled", ABI_BIAS_NONE, 0, 48, ABI_SOFTMAX, .plain = true},
    {"sm_100a", "tiled", ABI_BIAS_NONE, 0, 80, ABI_SOFTMAX},
    {"sm_100a", "tiled", ABI_BIAS_NONE, 0, 112, ABI_SOFTMAX},
    {"sm_100a", "parts", ABI_BIAS_NONE, 0, 48, ABI_SOFTMAX, .f16 = true, .plain = true},
    {"sm_90a", "tiled", ABI_BIAS_NONE, 0, 48, ABI_SOFTMAX, .plain = true},
    {"sm_120", "tiled", ABI_BIAS_NONE, 0, 64, ABI_SPARSEGEN},
    {"sm_120", "bias tiled", ABI_BIAS_SCALE, 0, 64, ABI_SOFTMAX},
    {"sm_80", "bias tiled", ABI_BIAS_ADD, 0, 80, ABI_SOFTMAX},
    {"sm_100a", "bias tiled", ABI_BIAS_SCALE, 0, 80, ABI_SOFTMAX, .plain = true},
    {"sm_100a", "bias tiled", ABI_BIAS_ADD, 0, 64, ABI_SOFTMAX, .plain = true},
    {"sm_80", "parts", ABI_BIAS_NONE, 0, 64, ABI_SOFTMAX, .f16 = true, .plain = true},
    {"sm_80", "resident", ABI_BIAS_NONE, 128, 48, ABI_SPARSEGEN, .f16 = true},
    {"sm_80", "resident", ABI_BIAS_NONE, 168, 80, ABI_SOFTMAX},
    {"sm_90a", "hopper first", ABI_BIAS_NONE, 0, 64, ABI_SOFTMAX, .f16 = true},
    {"sm_90a", "resident", ABI_BIAS_NONE, 234, 64, ABI_SOFTMAX},
    {"sm_90a", "resident", ABI_BIAS_NONE, 168, 128, ABI_SOFTMAX},
    {"sm_100a", "resident", ABI_BIAS_NONE, 168, 96, ABI_SOFTMAX},
    {"sm_100a", "resident", ABI_BIAS_NONE, 168, 80, ABI_SOFTMAX, .plain = true},
    {"sm_90a", "resident", ABI_BIAS_NONE, 96, 256, ABI_SOFTMAX},
};
enum { TIGHT = sizeof tight / sizeof *tight };

/* Plans that take longest to compile: with dropout they are in the usual run. */
static const struct slow {
    const char *family;
    enum abi_bias bias;
    uint32_t dim;
    enum abi_transform transform;
} slow[] = {
    {"tiled", ABI_BIAS_NONE, 256, ABI_SPARSEGEN},
    {"parts", ABI_BIAS_NONE, 128, ABI_SOFTMAX},
    {"bias tiled", ABI_BIAS_SCALE, 128, ABI_SPARSEGEN},
    {"bias float", ABI_BIAS_SCALE, 256, ABI_SPARSEGEN},
    {"tf32", ABI_BIAS_NONE, 256, ABI_SPARSEGEN},
    {"bias tf32", ABI_BIAS_ADD, 256, ABI_SOFTMAX},
};
enum { SLOW = sizeof slow / sizeof *slow };
