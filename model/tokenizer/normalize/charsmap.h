/* SPDX-License-Identifier: Apache-2.0 */
/* precompiled_charsmap of sentencepiece: u32 bytes of the array, a double-array trie of the texts that are replaced, and
   what replaces them, each closed by a 0 byte. A damaged array finds nothing; it reads no memory outside. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/base/aligned.h"
#include <stddef.h>

struct charsmap {
    uint32_t *unit, n_units;
    char *text; /* closed by a 0 byte */
    uint32_t text_size;
};

int charsmap_read(struct charsmap *ret, const void *bytes, size_t size, struct error *e);
/* The same from base64. */
int charsmap_decode(struct charsmap *ret, const char *base64, struct error *e);
void charsmap_finish(struct charsmap *c);

/* The characters of the text, where the shortest entry that begins a grapheme of less than 6 bytes, else a
   character, replaces it. False: nothing is replaced. */
bool charsmap_changes(const struct charsmap *c, const struct aligned *text,
                      struct changes *ret);
