/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is written as a stream and is there whole or not at all: beside its name (NAME.part), on the disk, then
   renamed. One writer of a name at a time. What a killed process left is found by its suffix. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/hash.h"
#include <stdint.h>

#define PART_SUFFIX ".part"

struct whole_file {
    char *path, *part;
    int fd;
    int problem; /* errno of the first failure */
    XXH3_state_t *hash;
    uint64_t size;
};

void whole_file_begin(struct whole_file *f, const char *path);
/* 0, or -1 as all before it: so that it is a sink of safetensors_stream(). */
int whole_file_write(void *file, const void *bytes, uint64_t size);
/* XXH3-128 of what was written, as 32 digits. */
void whole_file_sum(const struct whole_file *f, char ret[33]);
/* Bytes that are there, written again; the sum does not see it. */
void whole_file_patch(struct whole_file *f, uint64_t at, const char *bytes, uint64_t size);
/* Gives the file its name. ERROR_UNAVAILABLE where anything failed: then the old file stays, and no part is left. */
int whole_file_end(struct whole_file *f, struct error *e);

/* A file's or folder's name is on the disk, too. */
int folder_sync(const char *folder, struct error *e);
