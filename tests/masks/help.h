/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of masks: masks and refusals from one line, small files. */
#pragma once

#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/input/load.h"
#include "tests/support/test.h"

/* The mask of a request that must succeed; the test fails with the error's text. */
struct mask *load(struct mask_request r);
struct mask *load_text(const char *text, uint32_t n);

/* The request must fail as bad input, and the error's first line must be `line`. */
void refuse(struct mask_request r, const char *line);

/* A path in a folder of this test's own, which test_folder_remove, a group's teardown,
   removes; lives until the next call. */
const char *test_path(const char *name);
int test_folder_remove(void **state);
void write_bytes(const char *path, const void *bytes, size_t size);

/* A .npy of the given header and data. */
void write_npy(const char *path, const char *descr, const char *shape, bool fortran,
               const void *data, size_t bytes);

/* An element of a .npy of that type, little-endian; halves are 0 to 3. */
void element_store(const char *descr, double value, uint8_t *to);

/* xorshift64*, for test data alone. */
uint64_t next_random(uint64_t *state);
