/* SPDX-License-Identifier: Apache-2.0 */
/* The categories of utf8proc, which has Unicode 15, and what Unicode 16 adds to them. */
#include "model/tokenizer/base/letters.h"
#include "model/tokenizer/base/aligned.h"
#include "model/tokenizer/base/unicode.h"
#include <pthread.h>
#include <stddef.h>
#include <utf8proc.h>

static const struct class_range {
    uint32_t first, last;
    uint8_t class;
} added[] = {
    {0x1c89, 0x1c8a, CLASS_LETTER},   {0xa7cb, 0xa7cd, CLASS_LETTER},
    {0xa7da, 0xa7dc, CLASS_LETTER},   {0x105c0, 0x105f3, CLASS_LETTER},
    {0x10d40, 0x10d49, CLASS_NUMBER}, {0x10d4a, 0x10d65, CLASS_LETTER},
    {0x10d6f, 0x10d85, CLASS_LETTER}, {0x10ec2, 0x10ec4, CLASS_LETTER},
    {0x11380, 0x11389, CLASS_LETTER}, {0x1138b, 0x1138b, CLASS_LETTER},
    {0x1138e, 0x1138e, CLASS_LETTER}, {0x11390, 0x113b5, CLASS_LETTER},
    {0x113b7, 0x113b7, CLASS_LETTER}, {0x113d1, 0x113d1, CLASS_LETTER},
    {0x113d3, 0x113d3, CLASS_LETTER}, {0x116d0, 0x116e3, CLASS_NUMBER},
    {0x11bc0, 0x11be0, CLASS_LETTER}, {0x11bf0, 0x11bf9, CLASS_NUMBER},
    {0x13460, 0x143fa, CLASS_LETTER}, {0x16100, 0x1611d, CLASS_LETTER},
    {0x16130, 0x16139, CLASS_NUMBER}, {0x16d40, 0x16d6c, CLASS_LETTER},
    {0x16d70, 0x16d79, CLASS_NUMBER}, {0x18cff, 0x18cff, CLASS_LETTER},
    {0x1ccf0, 0x1ccf9, CLASS_NUMBER}, {0x1e5d0, 0x1e5ed, CLASS_LETTER},
    {0x1e5f0, 0x1e5f0, CLASS_LETTER}, {0x1e5f1, 0x1e5fa, CLASS_NUMBER},
    {0x2ebf0, 0x2ee5d, CLASS_LETTER},
};

static uint8_t classes[UNICODE_POINTS];

static uint8_t class_of(uint32_t point)
{
    switch (utf8proc_category((utf8proc_int32_t)point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return CLASS_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return CLASS_NUMBER;
    default:
        return unicode_is_blank(point) ? CLASS_BLANK : CLASS_OTHER;
    }
}

static void fill(void)
{
    for (uint32_t p = 0; p < UNICODE_POINTS; p++)
        classes[p] = class_of(p);
    for (size_t k = 0; k < sizeof added / sizeof *added; k++)
        for (uint32_t p = added[k].first; p <= added[k].last; p++)
            classes[p] = added[k].class;
}

const uint8_t *letter_classes(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    return classes;
}
