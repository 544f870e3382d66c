/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the sample that ran right before (known_TARGET.txt): the same plan and text, compiled by the same NVRTC and run by the
   same machine, come to the same result, so that such a case need not run again. */
#pragma once
#include "runtime/artifact/artifact.h"
#include "runtime/cache.h"
#include "tests/support/sass_setup.h"

/* Zeroed it knows nothing and has seen nothing. */
struct sample_known {
    struct cache_key before[64], right[64]; /* of the file; given by this run */
    uint32_t n_before, n_right;
};

/* Reads the file; one that is not there knows nothing. */
void sample_known_read(struct sample_known *k, const char *path);
bool sample_known_has(const struct sample_known *k, struct cache_key key);
void sample_known_add(struct sample_known *k, struct cache_key key); /* it ran right */
/* What ran right in place of the file; < 0 with *e set. */
int sample_known_write(const struct sample_known *k, const char *path, struct error *e);

/* The key is of all that decides what the machine does: the kernel file with its text, NVRTC, the machine, who launches, the judge. `see`
   is called with the file, which has no machine code. */
struct cache_key sample_key(const struct sass_case *c, const char *target,
                            void (*see)(const struct artifact *a));
