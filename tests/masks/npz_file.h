/* SPDX-License-Identifier: Apache-2.0 */
/* A .npz file in memory, as numpy.savez makes it. */
#pragma once
#include "masks/base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct npz_file {
    struct text bytes, directory;
    uint32_t entries;
    bool deflated; /* of the next arrays: as one deflate block without compression */
};

void npz_add(struct npz_file *f, const char *name, const char *descr, uint32_t rank,
             const uint64_t *shape, const void *data);
void npz_end(struct npz_file *f); /* bytes are whole now */
void npz_finish(struct npz_file *f);

/* Whole numbers as int32 or int64. */
void npz_add_whole(struct npz_file *f, const char *name, bool wide, uint64_t count,
                   const int64_t *value);
/* The format and the shape of a matrix. */
void npz_add_kind(struct npz_file *f, const char *format, int64_t rows, int64_t columns);
