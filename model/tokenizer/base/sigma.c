/* SPDX-License-Identifier: Apache-2.0 */
/* The rule Final_Sigma of the Unicode standard (3.13) within a word; see sigma.h. */
#include "model/tokenizer/base/sigma.h"
#include "model/tokenizer/base/unicode.h"
#include <stdbool.h>
#include <stddef.h>
#include <utf8proc.h>

struct range {
    uint32_t first, last;
};

/* Other_Lowercase and Other_Uppercase: cased without being Lu, Ll or Lt. */
static const struct range other_cased[] = {
    {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
    {0x2e0, 0x2e4},     {0x345, 0x345},     {0x37a, 0x37a},     {0x10fc, 0x10fc},
    {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},
    {0x207f, 0x207f},   {0x2090, 0x209c},   {0x2160, 0x217f},   {0x24b6, 0x24e9},
    {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f2, 0xa7f4},
    {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},   {0xab69, 0xab69},   {0x10780, 0x10780},
    {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}, {0x1e030, 0x1e06d},
    {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189},
};

/* Word_Break = MidLetter, MidNumLet, Single_Quote: ignorable besides Mn, Me, Cf, Lm and Sk. */
static const struct range other_ignorable[] = {
    {0x27, 0x27},     {0x2e, 0x2e},     {0x3a, 0x3a},     {0xb7, 0xb7},
    {0x387, 0x387},   {0x55f, 0x55f},   {0x5f4, 0x5f4},   {0x2018, 0x2019},
    {0x2024, 0x2024}, {0x2027, 0x2027}, {0xfe13, 0xfe13}, {0xfe52, 0xfe52},
    {0xfe55, 0xfe55}, {0xff07, 0xff07}, {0xff0e, 0xff0e}, {0xff1a, 0xff1a},
};

#define IN(table, point) within(table, sizeof(table) / sizeof *(table), point)

static bool within(const struct range *range, size_t count, uint32_t point)
{
    for (size_t k = 0; k < count; k++)
        if (point >= range[k].first && point <= range[k].last)
            return true;
    return false;
}

static bool is_ignorable(uint32_t point)
{
    switch (utf8proc_category((utf8proc_int32_t)point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return IN(other_ignorable, point);
    }
}

static bool is_cased(uint32_t point)
{
    switch (utf8proc_category((utf8proc_int32_t)point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
        return true;
    default:
        return IN(other_cased, point);
    }
}

enum neighbour { GO_ON, CASED, END };

static enum neighbour neighbour_of(uint32_t point, const uint8_t *flags)
{
    uint8_t of_point = flags ? flags[point] : 0;
    if (of_point & POINT_DROPPED || is_ignorable(point))
        return GO_ON;
    return !(of_point & (POINT_SPACE | POINT_IDEOGRAPH)) && is_cased(point) ? CASED : END;
}

uint32_t sigma_lower(const char *text, uint32_t from, uint32_t to, uint32_t at,
                     const uint8_t *flags)
{
    const uint8_t *bytes = (const uint8_t *)text;
    enum neighbour before = GO_ON, after = GO_ON;
    uint32_t point, k = at;
    while (before == GO_ON && k > from) {
        k--;
        for (uint32_t back = 1; back < 4 && k > from && (bytes[k] & 0xc0) == 0x80; back++)
            k--;
        unicode_decode(bytes + k, bytes + to, &point);
        before = neighbour_of(point, flags);
    }
    for (k = at + 2; after == GO_ON && k < to;) {
        k += unicode_decode(bytes + k, bytes + to, &point);
        after = neighbour_of(point, flags);
    }
    return before == CASED && after != CASED ? SIGMA_FINAL : SIGMA_SMALL;
}
