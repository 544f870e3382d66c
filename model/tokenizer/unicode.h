/* SPDX-License-Identifier: Apache-2.0 */
/* What the tokenizer asks about a code point, as one byte of flags for each. Two sets of rules: as the
   Rust library of HuggingFace has them (old, frozen tables) and as Google's tokenization.py has them
   (the categories of Unicode). */
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

/* Made once for the process, where it is first asked for, by any thread; never freed. */
const struct unicode *unicode_get(enum unicode_rules rules);

/* The code point at *p and how many bytes it takes (at least 1; p < end). What is no UTF-8 gives
   U+FFFD for each maximal part of a sequence, as Python and the web do. */
uint32_t unicode_decode(const uint8_t *p, const uint8_t *end, uint32_t *ret);
uint32_t unicode_encode(uint32_t point, char ret[4]); /* bytes */

/* Both give the number of code points; for those without the flag: the point itself. */
uint32_t unicode_decompose(uint32_t point, uint32_t ret[UNICODE_MAX_DECOMPOSITION]);
uint32_t unicode_lower(uint32_t point, uint32_t ret[UNICODE_MAX_LOWER]);
uint32_t unicode_combining_class(uint32_t point);
