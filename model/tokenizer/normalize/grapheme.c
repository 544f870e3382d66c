/* SPDX-License-Identifier: Apache-2.0 */
/* The rules GB3 to GB13 of UAX #29. GB9c, conjuncts of Indic scripts, is left out: graphemes of 6 bytes and more are taken
   character by character in any case, so it matters only where a charsmap replaces the second consonant of a conjunct and
   a mark of 2 bytes, of another script, follows. */
#include "model/tokenizer/normalize/grapheme.h"
#include "model/tokenizer/base/unicode.h"
#include "model/tokenizer/normalize/grapheme_classes.h"
#include <stdbool.h>
#include <stddef.h>
#include <utf8proc.h>

enum {
    OTHER = UTF8PROC_BOUNDCLASS_OTHER,
    CR = UTF8PROC_BOUNDCLASS_CR,
    LF = UTF8PROC_BOUNDCLASS_LF,
    CONTROL = UTF8PROC_BOUNDCLASS_CONTROL,
    EXTEND = UTF8PROC_BOUNDCLASS_EXTEND,
    L = UTF8PROC_BOUNDCLASS_L,
    V = UTF8PROC_BOUNDCLASS_V,
    T = UTF8PROC_BOUNDCLASS_T,
    LV = UTF8PROC_BOUNDCLASS_LV,
    LVT = UTF8PROC_BOUNDCLASS_LVT,
    FLAG = UTF8PROC_BOUNDCLASS_REGIONAL_INDICATOR,
    SPACING = UTF8PROC_BOUNDCLASS_SPACINGMARK,
    PREPEND = UTF8PROC_BOUNDCLASS_PREPEND,
    JOINER = UTF8PROC_BOUNDCLASS_ZWJ,
    PICTOGRAPH = UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC,
};

static bool is_in(uint32_t point, const struct grapheme_range *list, size_t count)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = (low + count) / 2;
        if (point > list[middle].last)
            low = middle + 1;
        else if (point < list[middle].first)
            count = middle;
        else
            return true;
    }
    return false;
}
#define IS_IN(point, list) is_in(point, list, sizeof(list) / sizeof *(list))

static int class_of(uint32_t point)
{
    int class = (int)utf8proc_get_property((utf8proc_int32_t)point)->boundclass;
    if (point < 0x80)
        return class;
    if (IS_IN(point, pictographs))
        return PICTOGRAPH;
    if (IS_IN(point, new_extend))
        return EXTEND;
    if (IS_IN(point, new_control))
        return CONTROL;
    if (IS_IN(point, new_prepend))
        return PREPEND;
    return class == PICTOGRAPH || IS_IN(point, no_prepend) ? OTHER : class;
}

struct cluster {
    int last;        /* class of the last character */
    bool pictograph; /* a pictograph and marks came */
    bool joiner;     /* and then U+200D */
    uint32_t flags;  /* regional indicators at the end */
};

static void take(struct cluster *c, int class)
{
    c->joiner = c->pictograph && class == JOINER;
    c->pictograph = class == PICTOGRAPH || (c->pictograph && class == EXTEND);
    c->flags = class == FLAG ? c->flags + 1 : 0;
    c->last = class;
}

static bool joins(const struct cluster *c, int class)
{
    int last = c->last;
    if (last == CR || last == LF || last == CONTROL || class == CR || class == LF ||
        class == CONTROL)
        return last == CR && class == LF;
    return (last == L && (class == L || class == V || class == LV || class == LVT)) ||
           ((last == LV || last == V) && (class == V || class == T)) ||
           ((last == LVT || last == T) && class == T) || class == EXTEND || class == JOINER ||
           class == SPACING || last == PREPEND || (c->joiner && class == PICTOGRAPH) ||
           (last == FLAG && class == FLAG && c->flags % 2);
}

uint32_t grapheme_end(const char *bytes, uint32_t at, uint32_t size)
{
    const uint8_t *p = (const uint8_t *)bytes;
    uint32_t point, end = at + unicode_decode(p + at, p + size, &point);
    struct cluster c = {0};
    if (end < size && point < 0x80 && p[end] < 0x80 && point != '\r')
        return end;
    take(&c, class_of(point));
    for (uint32_t n; end < size; end += n) {
        n = unicode_decode(p + end, p + size, &point);
        int class = class_of(point);
        if (!joins(&c, class))
            break;
        take(&c, class);
    }
    return end;
}
