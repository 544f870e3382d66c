/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of utf8proc, which has Unicode 15, and what Unicode 16 adds to them. */
#include "model/tokenizer/base/word_class.h"
#include <stddef.h>
#include <utf8proc.h>

static const struct {
    uint32_t first, last;
} ranges[] = {
    /* joiners */
    {0x200c, 0x200d},
    /* symbols that are alphabetic: letters in circles and squares */
    {0x24b6, 0x24e9},
    {0x1f130, 0x1f149},
    {0x1f150, 0x1f169},
    {0x1f170, 0x1f189},
    /* not assigned in Unicode 15 */
    {0x897, 0x897},
    {0x1c89, 0x1c8a},
    {0xa7cb, 0xa7cd},
    {0xa7da, 0xa7dc},
    {0x105c0, 0x105f3},
    {0x10d40, 0x10d65},
    {0x10d69, 0x10d6d},
    {0x10d6f, 0x10d85},
    {0x10ec2, 0x10ec4},
    {0x10efc, 0x10efc},
    {0x11380, 0x11389},
    {0x1138b, 0x1138b},
    {0x1138e, 0x1138e},
    {0x11390, 0x113b5},
    {0x113b7, 0x113c0},
    {0x113c2, 0x113c2},
    {0x113c5, 0x113c5},
    {0x113c7, 0x113ca},
    {0x113cc, 0x113d3},
    {0x113e1, 0x113e2},
    {0x116d0, 0x116e3},
    {0x11bc0, 0x11be0},
    {0x11bf0, 0x11bf9},
    {0x11f5a, 0x11f5a},
    {0x13460, 0x143fa},
    {0x16100, 0x16139},
    {0x16d40, 0x16d6c},
    {0x16d70, 0x16d79},
    {0x18cff, 0x18cff},
    {0x1ccf0, 0x1ccf9},
    {0x1e5d0, 0x1e5fa},
    {0x2ebf0, 0x2ee5d},
};

bool unicode_is_word(uint32_t point)
{
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++)
        if (point >= ranges[k].first && point <= ranges[k].last)
            return true;
    switch (utf8proc_category((utf8proc_int32_t)point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return false;
    }
}
