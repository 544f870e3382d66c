/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of a file of kernels compiled ahead, as they lie in it: little-endian, in this order, without gaps. */
#pragma once
#include "runtime/base/cache.h"

static const char ahead_magic[16] = "maskc ahead 1\n";

/* A file beyond these limits is refused. */
enum { AHEAD_MOST_CODES = 1 << 16, AHEAD_MOST_FRAME_BYTES = 1 << 28 };

struct ahead_head {
    char magic[16], compiler[96];
    uint32_t frames, codes;
    uint64_t checksum; /* XXH3-64 of this struct, with 0 here, and of the tables behind it */
};

struct ahead_frame {
    uint64_t packed,
        raw; /* bytes; frames lie one after another behind the tables, to the file's end */
    uint64_t checksum; /* XXH3-64 of the raw bytes */
};

/* By rising (high, low) of the key. */
struct ahead_entry {
    struct cache_key key;
    uint64_t frame, at, size; /* bytes at .. at + size - 1 of the raw frame */
};
