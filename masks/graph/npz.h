/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of a .npz file as streams of elements. */
#pragma once
#include "masks/graph/zip.h"
#include "masks/npy.h"

enum { NPZ_PIECE = 4096, NPZ_MOST_ITEM = 64 }; /* elements read together; bytes of one */

struct npz_array {
    struct npy npy; /* its data pointer is null */
    struct zip_stream stream;
    char *name;     /* for messages: "FILE: row"; owned */
    uint8_t *piece; /* owned */
};

bool npz_has(const struct zip *z, const char *name);

/* The array of that name; fails with one line where it is missing. */
int npz_open(const struct zip *z, const char *name, struct npz_array *ret, struct error *e);
void npz_close(struct npz_array *a); /* a zeroed one is fine */

/* A whole number that an int64 does not hold is UINT64_MAX, and so is each negative one. */
int npz_read_whole(struct npz_array *a, uint64_t *to, uint64_t count, struct error *e);

/* to[k] = 1 where the element is not zero, NaN among them, else 0. */
int npz_read_active(struct npz_array *a, uint8_t *to, uint64_t count, struct error *e);

/* An array of at most 15 characters, without dimensions, as text. */
int npz_read_text(struct npz_array *a, char ret[16], struct error *e);
