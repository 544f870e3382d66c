/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel file with a real mask and real plans, and made-up code: for tests that need no compiler. */
#pragma once
#include "runtime/artifact/artifact.h"

struct fixture {
    struct mask *mask;
    struct plan *plan;
    struct artifact artifact;        /* what was written; points into the two above */
    struct abi_item *plain_items[2]; /* of the GPU's plan, where it has one of its own */
    uint8_t *bytes;
    uint64_t size;
};

/* Two targets, x86-64-v3 and sm_80, on one plan; sparsegen. */
struct fixture *fixture_new(const char *expression, uint32_t n, uint32_t heads, bool backward);
struct fixture *fixture_of(struct mask *m, bool backward); /* takes the mask over */
/* The same with softmax, two heads and a backward pass: such plans may have residue classes, and name several
   kernels. The GPU, which has one, has a plan of its own. */
struct fixture *fixture_softmax(const char *expression, uint32_t n);
/* Files that between them have all kinds of pieces, from 0 on; null past the last. */
struct fixture *fixture_numbered(uint32_t k);
void fixture_free(struct fixture *f);

/* A file's checksum made right again after its bytes were changed. */
void fixture_sign(uint8_t *bytes, uint64_t size);
