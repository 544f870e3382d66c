/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files, versions 1 to 3: little-endian booleans, integers and floats, C or Fortran
   order. Reading never trusts the header: shape x element size must equal the bytes that follow. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/file.h"
#include <stdbool.h>
#include <stdint.h>

enum { NPY_MAX_RANK = 8 };
/* NPY_BFLOAT never occurs in a .npy; readers of other containers use the type with it. The last three are only for
   npy_parse_any. */
enum npy_type {
    NPY_BOOL,
    NPY_INT,
    NPY_UINT,
    NPY_FLOAT,
    NPY_BFLOAT,
    NPY_COMPLEX,
    NPY_BYTES, /* 'S': item_bytes characters */
    NPY_TEXT,  /* 'U': item_bytes / 4 code points */
};

struct npy {
    enum npy_type type;
    uint32_t item_bytes; /* 1, 2, 4, 8; floats 2 (IEEE half), 4, 8 */
    uint32_t rank;
    uint64_t shape[NPY_MAX_RANK];
    bool fortran;
    const uint8_t *data; /* into the caller's bytes; not aligned */
    uint64_t count;      /* elements */
};

int npy_parse(const uint8_t *bytes, uint64_t size, const char *path, struct npy *ret,
              struct error *e);

/* Also accepts complex numbers, long doubles (16 bytes) and strings. `size` is that of the whole .npy; of `bytes` only
   the header is read. */
int npy_parse_any(const uint8_t *bytes, uint64_t size, const char *path, struct npy *ret,
                  struct error *e);

/* Bytes of the header, magic included; 0 if `size` is too small to tell (12 bytes suffice) or the bytes are no .npy. */
uint64_t npy_header_bytes(const uint8_t *bytes, uint64_t size);

/* Element at a storage index, converted to double; npy_index() gives the index of a position in either order. Integers
   beyond 2^53 lose digits. */
double npy_get(const struct npy *a, uint64_t storage_index);
uint64_t npy_index(const struct npy *a,
                   const uint64_t *position); /* position[rank] -> storage index */

/* One .npy file in memory, C order; descr is NumPy's ("<f4", "|b1", "<i8", ...). Caller frees.
   data may be null: the data, which are the last bytes, stay zero for the caller to fill. */
uint8_t *npy_write(const char *descr, uint32_t item_bytes, uint32_t rank, const uint64_t *shape,
                   const void *data, uint64_t *ret_size);
