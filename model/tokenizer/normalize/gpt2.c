/* SPDX-License-Identifier: Apache-2.0 */
/* The alternatives of the expression in their order. See pattern.h. */
#include "model/tokenizer/base/letters.h"
#include "model/tokenizer/base/unicode.h"
#include "model/tokenizer/normalize/expression.h"
#include <string.h>

/* Bytes of the ending at "'": 's 't 'm 'd or 're 've 'll; 0: none. */
static uint32_t ending(const uint8_t *p, uint32_t size)
{
    if (size >= 2 && (p[1] == 's' || p[1] == 't' || p[1] == 'm' || p[1] == 'd'))
        return 2;
    if (size < 3)
        return 0;
    bool found = (p[1] == 'r' && p[2] == 'e') || (p[1] == 'v' && p[2] == 'e') ||
                 (p[1] == 'l' && p[2] == 'l');
    return found ? 3 : 0;
}

static inline uint8_t class_at(const uint8_t *classes, const uint8_t *p, const uint8_t *end,
                               uint32_t *ret_size)
{
    uint32_t point;
    *ret_size = unicode_decode(p, end, &point);
    return classes[point];
}

/* The end of the blanks at `at`, without the last one where something follows them and they are more than one. */
static uint32_t blanks(const uint8_t *classes, const uint8_t *p, uint32_t at, uint32_t size)
{
    uint32_t end = at, last = at, n;
    while (end < size && class_at(classes, p + end, p + size, &n) == CLASS_BLANK) {
        last = end;
        end += n;
    }
    return end < size && last > at ? last : end;
}

uint32_t gpt2_word(const char *bytes, uint32_t at, uint32_t size)
{
    const uint8_t *classes = letter_classes(), *p = (const uint8_t *)bytes;
    uint32_t n, end = at;
    if (p[at] == '\'' && (n = ending(p + at, size - at)) != 0)
        return at + n;
    if (p[at] == ' ' && at + 1 < size)
        end++;
    uint8_t class = class_at(classes, p + end, p + size, &n);
    if (class == CLASS_BLANK)
        return blanks(classes, p, at, size);
    do
        end += n;
    while (end < size && class_at(classes, p + end, p + size, &n) == class);
    return end;
}
