/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file, from the first to the last: as they are, or out of gzip (NAME.gz) or zstd (NAME.zst). */
#pragma once
#include "masks/base/error.h"
#include <stddef.h>
#include <stdint.h>

struct byte_stream;

/* Null with one line that begins with the path; also where this build has no library for the file's kind. */
struct byte_stream *stream_open(const char *path, struct error *e);
void stream_close(struct byte_stream *s); /* null is fine */

/* At most `size` bytes to ret; 0 at the end, -1 with *e set where the file is damaged or was cut. */
int64_t stream_read(struct byte_stream *s, void *ret, size_t size, struct error *e);

/* Bytes of the file that were read so far, before they were unpacked. */
uint64_t stream_taken(const struct byte_stream *s);

/* Number of bytes of `name` before .gz or .zst. */
size_t stream_plain_name(const char *name);
