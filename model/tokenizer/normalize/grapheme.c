/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/normalize/grapheme.h"
#include "model/tokenizer/base/unicode.h"
#include <utf8proc.h>

uint32_t grapheme_end(const char *bytes, uint32_t at, uint32_t size)
{
    const uint8_t *p = (const uint8_t *)bytes;
    uint32_t one, two, end = at + unicode_decode(p + at, p + size, &one);
    utf8proc_int32_t state = 0;
    for (uint32_t n; end < size; end += n, one = two) {
        n = unicode_decode(p + end, p + size, &two);
        if (one < 0x80 && two < 0x80 && !(one == '\r' && two == '\n'))
            break;
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)one, (utf8proc_int32_t)two,
                                             &state))
            break;
    }
    return end;
}
