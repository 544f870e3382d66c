/* SPDX-License-Identifier: Apache-2.0 */
/* ZIP archives as NumPy writes them (.npz): entries stored, or deflated where the build has zlib; 64-bit sizes. Entries
   are streams: an array of gigabytes is read in pieces. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct zip {
    const uint8_t *bytes;
    uint64_t size;
    const char *path; /* for messages */
    uint64_t directory, entries;
};

struct zip_entry {
    uint64_t at, packed,
        size; /* where its bytes begin, how many there are, and how many unpacked */
    uint32_t crc;
    bool deflated;
};

struct zip_stream {
    const char *name; /* for messages: borrowed */
    const uint8_t *at;
    uint64_t packed, left; /* bytes that are not yet read, unpacked */
    uint32_t crc, crc_expected;
    void *inflater; /* null: stored */
};

/* Fails with one line where the bytes are no whole archive. */
int zip_parse(const uint8_t *bytes, uint64_t size, const char *path, struct zip *ret,
              struct error *e);

/* The last entry of that name, as Python takes it. 1: there is none. -1: it cannot be read, *e says why. */
int zip_find(const struct zip *z, const char *name, struct zip_entry *ret, struct error *e);

int zip_stream_open(const struct zip *z, const struct zip_entry *entry, const char *name,
                    struct zip_stream *ret, struct error *e);
/* Exactly `bytes` bytes, else -1. The last one also compares the checksum. */
int zip_stream_read(struct zip_stream *s, void *to, uint64_t bytes, struct error *e);
void zip_stream_close(struct zip_stream *s); /* a zeroed one is fine */
