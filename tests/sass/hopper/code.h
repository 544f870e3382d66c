/* SPDX-License-Identifier: Apache-2.0 */
/* Tests' own kernels: compiled, and run in the machine without a driver. */
#pragma once
#include "tests/sass/hopper/hopper.h"
#include "tests/sass/image.h"
#include "tests/sass/memory.h"

struct code {
    struct image image;
    struct memory memory;
    uint8_t *cubin;
    uint64_t bytes;
    bool early; /* as in struct block */
    uint64_t seed;
    uint64_t *counts; /* as in struct block, or null */
    uint64_t most;    /* instructions of a block */
    char why[FAULT_TEXT];
};

/* A text of tests/sass by NVRTC for sm_90a; fails the test where it does not compile. */
void code_open_cuda(struct code *c, const char *file, const char *option);

/* A text of tests/sass for ptxas. Where it is mended, lines marked "// mends: " count. */
struct ptx {
    const char *file, *target, *level;
    bool mended;
};
void code_open_ptx(struct code *c, const char *ptxas, const struct ptx *p);

/* The path of ptxas, or null. */
const char *code_find_ptxas(void);

/* Takes another text in place of nvdisasm's: 0, or -1 with `why` set. */
int code_change(struct code *c, const char *text);

void code_close(struct code *c);

/* Device memory with these bytes. */
void *code_put(struct code *c, const void *bytes, uint64_t size);

/* The image's first entry: 0, or -1 with `why` set. `shared` bytes are dynamic. */
int code_run(struct code *c, uint32_t blocks, uint32_t threads, uint32_t shared,
             void *const *arguments);
