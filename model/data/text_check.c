/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/text_check.h"
#include "model/tokenizer/base/unicode.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Latin-1 text has up to a quarter of accented letters; other 8-bit encodings and binary files have more. */
enum { MOST_REPLACED = 30, MOST_CONTROLS = 10 }; /* percent */
/* Fewer bad bytes prove nothing; the first bytes of a file are judged before it is read. */
enum { LEAST_BAD = 64, HEAD_BYTES = 64 << 10, UTF16_BYTES = 4096 };

#define ONES        UINT64_C(0x0101010101010101)
#define HIGH        UINT64_C(0x8080808080808080)
#define MAGIC(text) text, sizeof(text) - 1

/* clang-format off */
static const struct {
    const char *begin;
    size_t size;
    const char *name, *suffix; /* the suffix under which prep unpacks it, or null */
} formats[] = {
    {MAGIC("\x1f\x8b"),             "gzip", ".gz"},
    {MAGIC("\x28\xb5\x2f\xfd"),     "zstd", ".zst"},
    {MAGIC("\xfd" "7zXZ"),          "xz", NULL},
    {MAGIC("BZh91AY&SY"),            "bzip2", NULL},
    {MAGIC("PK\x03\x04"),           "a zip file", NULL},
    {MAGIC("%PDF-"),                "PDF", NULL},
    {MAGIC("\x7f" "ELF"),           "a program", NULL},
    {MAGIC("PAR1\x15"),             "Parquet", NULL},
    {MAGIC("\x93NUMPY"),            "a numpy array", NULL},
    {MAGIC("\xff\xfe\x00\x00"),     "UTF-32", NULL},
    {MAGIC("\x00\x00\xfe\xff"),     "UTF-32", NULL},
    {MAGIC("\xff\xfe"),             "UTF-16", NULL},
    {MAGIC("\xfe\xff"),             "UTF-16", NULL},
};
/* clang-format on */

static bool is_control(uint8_t c)
{
    return (c < 0x20 && !(c >= '\b' && c <= '\r') && c != 0x1b) || c == 0x7f;
}

static void check_point(struct text_check *c, const uint8_t *p, uint32_t point, uint32_t n)
{
    bool literal = n == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] == 0xbd;
    c->controls += point < 0x80 && is_control((uint8_t)point);
    if (point != 0xfffd || literal)
        return;
    if (!c->replaced)
        c->first_line = c->lines;
    c->replaced += n;
}

void text_check_line(struct text_check *c, const char *line, size_t size)
{
    const uint8_t *p = (const uint8_t *)line, *end = p + size;
    c->lines++;
    c->bytes += size + 1;
    while (p < end) {
        uint64_t eight;
        uint32_t point, n;
        if (end - p >= 8) {
            memcpy(&eight, p, 8);
            bool plain = !((eight | ((eight - ONES * 0x20) & ~eight)) & HIGH);
            if (plain && !memchr(p, 0x7f, 8)) {
                p += 8;
                continue;
            }
        }
        n = unicode_decode(p, end, &point);
        check_point(c, p, point, n);
        p += n;
    }
}

/* Every other byte of most Western text in UTF-16 is zero. */
static bool looks_utf16(const char *bytes, size_t size)
{
    size_t zeros[2] = {0, 0}, half = size / 2;
    for (size_t k = 0; k < 2 * half; k++)
        zeros[k & 1] += bytes[k] == 0;
    return half >= 2 && (10 * zeros[0] > 4 * half || 10 * zeros[1] > 4 * half) &&
           10 * zeros[0] * zeros[1] < half * half;
}

int text_check_head(const char *name, const char *bytes, size_t size, const char *unpack,
                    struct error *e)
{
    struct text_check head = {0};
    const char *format = NULL, *suffix = NULL;
    for (size_t k = 0; k < sizeof formats / sizeof *formats && !format; k++)
        if (size >= formats[k].size && !memcmp(bytes, formats[k].begin, formats[k].size)) {
            format = formats[k].name;
            suffix = formats[k].suffix;
        }
    if (!format && looks_utf16(bytes, size < UTF16_BYTES ? size : UTF16_BYTES))
        format = "UTF-16";
    if (!format) {
        text_check_line(&head, bytes, size < HEAD_BYTES ? size : HEAD_BYTES);
        return text_check_end(&head, name, e);
    }
    if (suffix && unpack)
        return error_set(e, ERROR_INPUT, "%s: is %s; %s%s is expected", name, format, unpack,
                         suffix);
    return error_set(e, ERROR_INPUT, "%s: is %s; text in UTF-8 is expected", name, format);
}

int text_check_end(const struct text_check *c, const char *name, struct error *e)
{
    bool mostly_text = 100 * c->replaced <= MOST_REPLACED * c->bytes &&
                       100 * c->controls <= MOST_CONTROLS * c->bytes;
    if (mostly_text || c->replaced + c->controls < LEAST_BAD)
        return 0;
    return error_set(e, ERROR_INPUT,
                     "%s: %" PRIu64 " of %" PRIu64
                     " bytes are not UTF-8 text; text in UTF-8 is "
                     "expected",
                     name, c->replaced + c->controls, c->bytes);
}

void text_check_report(const struct text_check *c, char ret[TEXT_CHECK_BYTES])
{
    *ret = 0;
    if (c->replaced)
        snprintf(ret, TEXT_CHECK_BYTES,
                 "%" PRIu64 " %s not UTF-8 and %s replaced, the first one in line %" PRIu64,
                 c->replaced, c->replaced == 1 ? "byte is" : "bytes are",
                 c->replaced == 1 ? "was" : "were", c->first_line);
}
