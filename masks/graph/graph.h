/* SPDX-License-Identifier: Apache-2.0 */
/* Masks from graphs: sparse matrices in files, and neighbourhoods of several steps. */
#pragma once
#include "masks/base/error.h"
#include "masks/mask.h"
#include "masks/request.h"
#include <stddef.h>

/* A matrix as scipy.sparse.save_npz writes it (csr, csc, coo, bsr): query i sees key j where the entry (i, j) is stored and not 0, in
   one of its places where it is stored several times. Null with *e set where the bytes are something else. */
struct mask *sparse_parse(const uint8_t *bytes, uint64_t size, const char *name,
                          struct error *e);
struct mask *sparse_read(const char *path, struct error *e);

/* Query i sees the keys that `hops` steps or fewer reach from it, itself among them, where a step leads from a query to a key
   that it sees. Of each head by itself. Null with *e set where the result has more runs than can be held (pattern.h). */
struct mask *mask_hops(const struct mask *m, uint32_t hops, struct error *e);
