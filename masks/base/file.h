/* SPDX-License-Identifier: Apache-2.0 */
/* Files as users expect them: read whole with a limit, written whole or not at all. */
#pragma once
#include "masks/base/error.h"
#include <stddef.h>
#include <stdint.h>

/* A file's bytes, mapped or read; unmodifiable. */
struct file {
    const uint8_t *bytes;
    size_t size;
    void *mapping; /* internal */
};

/* Fails with one line that starts with the path: not there, a directory, no permission. */
int file_open(const char *path, struct file *ret, struct error *e);
void file_close(struct file *f); /* a zeroed one is fine */

/* Writes beside the target and renames: the old file stays until the new one is whole. Follows links; writes into what
   is no file, as /dev/stdout. */
int file_write(const char *path, const void *bytes, size_t size, struct error *e);

/* Makes the directory and its parents where they are missing. */
int file_make_directory(const char *path, struct error *e);
