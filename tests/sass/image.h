/* SPDX-License-Identifier: Apache-2.0 */
/* A cubin as the machine wants it: each entry's instructions, constants and sizes. */
#pragma once
#include "tests/sass/machine.h"

enum { IMAGE_ENTRIES = 16 };

struct image {
    struct program entry[IMAGE_ENTRIES];
    uint32_t entries;
};

/* Length of the cubin according to its tables. */
uint64_t image_bytes(const uint8_t *cubin);

/* Disassembles and parses: 0, or -1 with a line in `why`. */
int image_load(struct image *ret, const uint8_t *cubin, uint64_t bytes, char *why,
               size_t capacity);

/* The same with nvdisasm's text at hand, which a test may have changed. */
int image_load_text(struct image *ret, const uint8_t *cubin, uint64_t bytes, const char *text,
                    char *why, size_t capacity);
void image_finish(struct image *i);

/* nvdisasm's text of a cubin, or null with a line in `why`; free() it. It is kept in $MASKC_SASS_CACHE under the cubin's
   hash, and taken from there: so a test can change it. */
char *image_disassemble(const uint8_t *cubin, uint64_t bytes, char *why, size_t capacity);

/* Fills constant bank 0: the sizes of block and grid, the stack pointer, and the parameters, as many bytes as the entry
   takes. `arguments` points to each, as for cuLaunchKernel. */
void program_arguments(struct program *p, uint32_t threads, const uint32_t grid[3],
                       void *const *arguments);
