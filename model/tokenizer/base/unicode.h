/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of code points that the tokenizer needs, as one byte of flags each. Two sets of rules: those
   of HuggingFace's Rust library (old, frozen tables) and those of Google's tokenization.py (Unicode's
   categories). */
#pragma once
#include <stdint.h>

enum {
    POINT_DROPPED = 1,     /* removed by cleaning; U+0000 and U+FFFD too */
    POINT_SPACE = 2,       /* between words */
    POINT_PUNCTUATION = 4, /* a word of its own */
    POINT_MARK = 8,        /* removed with the accents */
    POINT_COMBINING = 16,  /* its combining class is not 0 */
    POINT_DECOMPOSED = 32, /* has a canonical decomposition */
    POINT_LOWERED = 64,    /* has another lower case */
    POINT_IDEOGRAPH = 128, /* CJK: spaces around it */
};

enum { UNICODE_POINTS = 0x110000, UNICODE_MAX_DECOMPOSITION = 8, UNICODE_MAX_LOWER = 2 };

enum unicode_rules { UNICODE_HF, UNICODE_GOOGLE, UNICODE_RULES };

struct unicode {
    uint8_t flags[UNICODE_POINTS];
};

/* Made once for the process, on first use by any thread; never freed. */
const struct unicode *unicode_get(enum unicode_rules rules);

/* The code point at *p and how many bytes it takes (at least 1; p < end). Invalid UTF-8 gives one U+FFFD for
   each maximal part of a sequence, as in Python and on the web. */
uint32_t unicode_decode(const uint8_t *p, const uint8_t *end, uint32_t *ret);
uint32_t unicode_encode(uint32_t point, char ret[4]); /* bytes */

/* Both return how many code points they wrote: the point itself where nothing changes. */
uint32_t unicode_decompose(uint32_t point, uint32_t ret[UNICODE_MAX_DECOMPOSITION]);
uint32_t unicode_lower(uint32_t point, uint32_t ret[UNICODE_MAX_LOWER]);
uint32_t unicode_combining_class(uint32_t point);
