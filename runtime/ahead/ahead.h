/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels compiled ahead: one file of CPU code that an installation carries, so that compiling a mask needs no compiler.
   The mask is not in the code, so the codes are few: targets x dtypes x head dims x features. FORMAT.md has the layout. */
#pragma once
#include "masks/base/text.h"
#include "runtime/base/cache.h"

/* A file in memory, which belongs to the caller and outlives it. */
struct ahead {
    const uint8_t *bytes;
    uint64_t size;
    uint32_t codes, frames;
    char compiler[96]; /* that made the code: "clang 14.0.6" */
};

/* Refuses what is not such a file, is cut, or does not add up: one line that begins with `name`. The code itself is
   checked where it is taken. */
int ahead_read(const uint8_t *bytes, uint64_t size, const char *name, struct ahead *ret,
               struct error *e);

/* The code of this key, freed by the caller. False: there is none, or its bytes are not what was written (*e then
   says so, else it is untouched). */
bool ahead_get(const struct ahead *a, struct cache_key key, uint8_t **ret, uint64_t *ret_size,
               struct error *e);

/* ---- the file of this installation ---- */

/* $MASKC_AHEAD names it ("none": no file); else it is kernels.ahead beside the library or program, or in the
   share/maskc of its installation. Opened once. Null: there is none, or it is no use. */
const struct ahead *ahead_installed(void);
/* "/usr/share/maskc/kernels.ahead: 455 kernels by clang 14.0.6", why there is none, or what is wrong with it. */
const char *ahead_describe(void);

/* ---- writing one ---- */

struct ahead_code {
    struct cache_key key;
    const uint8_t *bytes;
    uint64_t size;
    uint32_t
        frame; /* 0, 1, .. ascending: codes of a frame are compressed together, and are best alike */
};

/* The file, freed by the caller; null where this build has no zstd. */
uint8_t *ahead_write(const struct ahead_code *code, uint32_t count, const char *compiler,
                     uint64_t *ret_size);

/* zstd, or nothing in a build without it: false. `ret` takes exactly `raw` bytes. */
bool frame_unpack(const uint8_t *packed, uint64_t size, uint8_t *ret, uint64_t raw);
bool frame_pack(const uint8_t *raw, uint64_t size, struct text *to);
