/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels compiled ahead: one file of CPU code in an installation, so that compiling a mask needs no compiler. Codes do not
   contain the mask, so few are needed: targets x dtypes x head dims x features. FORMAT.md has the layout. */
#pragma once
#include "masks/base/text.h"
#include "runtime/base/cache.h"

/* A file in memory, which belongs to the caller and outlives it. */
struct ahead {
    const uint8_t *bytes;
    uint64_t size;
    uint32_t codes, frames;
    char compiler[96]; /* compiler of the code: "clang 14.0.6" */
};

/* Refuses other files, cut ones and inconsistent ones with one line that begins with `name`. The code itself is checked by
   ahead_get(). */
int ahead_read(const uint8_t *bytes, uint64_t size, const char *name, struct ahead *ret,
               struct error *e);

/* The code of this key, freed by the caller. False if there is none (*e is untouched) or if its bytes have changed (*e is
   set). */
bool ahead_get(const struct ahead *a, struct cache_key key, uint8_t **ret, uint64_t *ret_size,
               struct error *e);

/* ---- the file of this installation ---- */

/* The file named by $MASKC_AHEAD ("none": no file), else kernels.ahead beside the library or program, or in the share/maskc
   of its installation. Opened once. Null if there is none or it cannot be used. */
const struct ahead *ahead_installed(void);
/* "/usr/share/maskc/kernels.ahead: 455 kernels by clang 14.0.6", or the reason why it is not used. */
const char *ahead_describe(void);

/* ---- writing one ---- */

struct ahead_code {
    struct cache_key key;
    const uint8_t *bytes;
    uint64_t size;
    uint32_t
        frame; /* 0, 1, .. ascending: codes of a frame are compressed together, best if they are similar */
};

/* The file, freed by the caller; null if this build has no zstd. */
uint8_t *ahead_write(const struct ahead_code *code, uint32_t count, const char *compiler,
                     uint64_t *ret_size);

/* Functions of zstd; a build without it returns false. `ret` must have exactly `raw` bytes. */
bool frame_unpack(const uint8_t *packed, uint64_t size, uint8_t *ret, uint64_t raw);
bool frame_pack(const uint8_t *raw, uint64_t size, struct text *to);
