/* SPDX-License-Identifier: Apache-2.0 */
/* utf8proc has decompositions, categories and lower case. Where the Rust library's older tables differ,
   hf_classes.h decides. See unicode.h. */
#include "model/tokenizer/base/unicode.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <utf8proc.h>

struct point_range {
    uint32_t first, last;
};
#include "model/tokenizer/base/hf_classes.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Nothing beyond this plane has a case, a decomposition or a combining class. */
enum { SIMPLE_FROM = 0x30000, HANGUL = 0xac00, HANGUL_LAST = 0xd7a3 };

/* Google's ranges; the fifth begins at 2B820. In HuggingFace's it begins at 2B920, an error that has stayed.
   */
static const struct point_range ideographs[] = {
    {0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
    {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf}, {0xf900, 0xfaff},   {0x2f800, 0x2fa1f},
};

/* Lower case that came after Unicode 15. */
static const struct {
    uint32_t first, last, lower;
} new_lower[] = {
    {0x1c89, 0x1c89, 0x1c8a},    {0xa7cb, 0xa7cb, 0x0264}, {0xa7cc, 0xa7cc, 0xa7cd},
    {0xa7ce, 0xa7ce, 0xa7cf},    {0xa7d2, 0xa7d2, 0xa7d3}, {0xa7d4, 0xa7d4, 0xa7d5},
    {0xa7da, 0xa7da, 0xa7db},    {0xa7dc, 0xa7dc, 0x019b}, {0x10d50, 0x10d65, 0x10d70},
    {0x16ea0, 0x16eb8, 0x16ebb},
};

static void flag(struct unicode *u, const struct point_range *range, size_t count, uint8_t bit)
{
    for (size_t k = 0; k < count; k++)
        for (uint32_t p = range[k].first; p <= range[k].last; p++)
            u->flags[p] |= bit;
}

static void flag_lowered(struct unicode *u)
{
    for (uint32_t p = 0; p < SIMPLE_FROM; p++)
        if (utf8proc_tolower((utf8proc_int32_t)p) != (utf8proc_int32_t)p)
            u->flags[p] |= POINT_LOWERED;
    for (size_t k = 0; k < COUNT(new_lower); k++)
        for (uint32_t p = new_lower[k].first; p <= new_lower[k].last; p++)
            u->flags[p] |= POINT_LOWERED;
}

static void flag_hf(struct unicode *u)
{
    static const struct point_range hangul = {HANGUL, HANGUL_LAST};
    flag(u, hf_dropped, COUNT(hf_dropped), POINT_DROPPED);
    flag(u, hf_whitespace, COUNT(hf_whitespace), POINT_SPACE);
    flag(u, hf_punctuation, COUNT(hf_punctuation), POINT_PUNCTUATION);
    flag(u, hf_marks, COUNT(hf_marks), POINT_MARK);
    flag(u, hf_combining, COUNT(hf_combining), POINT_COMBINING);
    flag(u, hf_decomposed, COUNT(hf_decomposed), POINT_DECOMPOSED);
    flag(u, &hangul, 1, POINT_DECOMPOSED);
    for (uint32_t p = 0x2b820; p < 0x2b920; p++)
        u->flags[p] &= (uint8_t)~POINT_IDEOGRAPH;
}

static uint8_t google_class(uint32_t p)
{
    if (p == '\t' || p == '\n' || p == '\r')
        return POINT_SPACE;
    if ((p >= 33 && p <= 47) || (p >= 58 && p <= 64) || (p >= 91 && p <= 96) ||
        (p >= 123 && p <= 126))
        return POINT_PUNCTUATION;
    switch (utf8proc_category((utf8proc_int32_t)p)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
        return POINT_DROPPED;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return POINT_SPACE;
    case UTF8PROC_CATEGORY_MN:
        return POINT_MARK;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return POINT_PUNCTUATION;
    default:
        return 0;
    }
}

static void flag_google(struct unicode *u)
{
    uint32_t parts[UNICODE_MAX_DECOMPOSITION];
    for (uint32_t p = 0; p < UNICODE_POINTS; p++) {
        u->flags[p] |= google_class(p);
        if (p >= SIMPLE_FROM)
            continue;
        if (unicode_combining_class(p))
            u->flags[p] |= POINT_COMBINING;
        if (unicode_decompose(p, parts) != 1 || parts[0] != p)
            u->flags[p] |= POINT_DECOMPOSED;
    }
}

/* Both tables, each filled on first use: a million look-ups, the same for all tokenizers. */
static struct unicode tables[UNICODE_RULES];

static struct unicode *start_table(enum unicode_rules rules)
{
    struct unicode *u = &tables[rules];
    flag(u, ideographs, COUNT(ideographs), POINT_IDEOGRAPH);
    return u;
}

static void finish_table(struct unicode *u)
{
    flag_lowered(u);
    u->flags[0] |= POINT_DROPPED;
    u->flags[0xfffd] |= POINT_DROPPED;
}

static void fill_hf(void)
{
    struct unicode *u = start_table(UNICODE_HF);
    flag_hf(u);
    finish_table(u);
}

static void fill_google(void)
{
    struct unicode *u = start_table(UNICODE_GOOGLE);
    flag_google(u);
    finish_table(u);
}

const struct unicode *unicode_get(enum unicode_rules rules)
{
    static pthread_once_t once[UNICODE_RULES] = {PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT};
    pthread_once(&once[rules], rules == UNICODE_HF ? fill_hf : fill_google);
    return &tables[rules];
}

/* The range of the second byte excludes overlong forms, surrogates and points beyond U+10FFFF. */
uint32_t unicode_decode(const uint8_t *p, const uint8_t *end, uint32_t *ret)
{
    uint8_t b = p[0], low = 0x80, high = 0xbf;
    uint32_t length = b < 0x80   ? 1
                      : b < 0xc2 ? 0
                      : b < 0xe0 ? 2
                      : b < 0xf0 ? 3
                      : b < 0xf5 ? 4
                                 : 0;
    *ret = b;
    if (length == 1)
        return 1;
    *ret = 0xfffd;
    if (length == 0)
        return 1;
    low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : low;
    high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : high;
    uint32_t point = b & (0x7fu >> length);
    for (uint32_t k = 1; k < length; k++) {
        if (p + k == end || p[k] < low || p[k] > high)
            return k;
        point = point << 6 | (p[k] & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    *ret = point;
    return length;
}

uint32_t unicode_encode(uint32_t point, char ret[4])
{
    return (uint32_t)utf8proc_encode_char((utf8proc_int32_t)point, (utf8proc_uint8_t *)ret);
}

uint32_t unicode_decompose(uint32_t point, uint32_t ret[UNICODE_MAX_DECOMPOSITION])
{
    utf8proc_int32_t part[UNICODE_MAX_DECOMPOSITION];
    utf8proc_ssize_t n = utf8proc_decompose_char(
        (utf8proc_int32_t)point, part, UNICODE_MAX_DECOMPOSITION, UTF8PROC_DECOMPOSE, NULL);
    if (n < 1 || n > UNICODE_MAX_DECOMPOSITION)
        return ret[0] = point, 1;
    for (utf8proc_ssize_t k = 0; k < n; k++)
        ret[k] = (uint32_t)part[k];
    return (uint32_t)n;
}

uint32_t unicode_lower(uint32_t point, uint32_t ret[UNICODE_MAX_LOWER])
{
    if (point == 0x130) { /* the one letter whose lower case is two code points */
        ret[0] = 'i';
        ret[1] = 0x307;
        return 2;
    }
    ret[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)point);
    for (size_t k = 0; k < COUNT(new_lower) && ret[0] == point; k++)
        if (point >= new_lower[k].first && point <= new_lower[k].last)
            ret[0] = point - new_lower[k].first + new_lower[k].lower;
    return 1;
}

uint32_t unicode_combining_class(uint32_t point)
{
    return (uint32_t)utf8proc_get_property((utf8proc_int32_t)point)->combining_class;
}
