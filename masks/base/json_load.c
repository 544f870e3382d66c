/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that Python reads and jansson refuses. Only a refused text is copied, rewritten in place and parsed again.
   Replacements keep the length of the text, so that lines and columns of messages stay right. */
#include "masks/base/json_load.h"
#include "masks/base/memory.h"
#include "masks/base/number.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_REAL = 32, ESCAPE_BYTES = 6 };

static void replace(char *at, size_t size, const char *by)
{
    size_t length = strlen(by);
    if (length > size)
        return;
    memcpy(at, by, length);
    memset(at + length, ' ', size - length);
}

/* The nearest double to an integer of at least 19 digits, as 17 digits and an exponent: "18446744073709552e3". */
static void replace_number(char *at, size_t size, double value)
{
    char text[LONGEST_REAL], *digit = text + (value < 0);
    if (!isfinite(value)) {
        replace(at, size, value > 0 ? JSON_CLAMPED : "-" JSON_CLAMPED);
        return;
    }
    number_print(text, sizeof text, "%.16e", value);
    int exponent = atoi(strchr(text, 'e') + 1) - 16;
    memmove(digit + 1, digit + 2, 16); /* without the point */
    snprintf(digit + 17, sizeof text - 18, "e%d", exponent);
    replace(at, size, text);
}

/* Rewrites the number that begins at `at` if neither a 64-bit integer nor a double holds it. Returns its end. */
static char *take_number(char *at, char *end)
{
    char *stop = at + strspn(at, "+-.0123456789eE"), after = *stop;
    bool whole = !memchr(at, '.', (size_t)(stop - at)) &&
                 !memchr(at, 'e', (size_t)(stop - at)) && !memchr(at, 'E', (size_t)(stop - at));
    char *read_to = at;
    *stop = 0;
    errno = 0;
    if (whole)
        strtoll(at, &read_to, 10);
    bool beyond = whole && errno == ERANGE;
    double value = number_read(at, &read_to);
    bool valid = read_to == stop;
    *stop = after;
    if (valid && (beyond || isinf(value)))
        replace_number(at, (size_t)(stop - at), value);
    return stop < end ? stop : end;
}

/* Half of a pair of UTF-16 units at `at`, 0 if there is none. */
static unsigned surrogate_at(const char *at, const char *end)
{
    char digits[5] = {0}, *stop;
    if (end - at < ESCAPE_BYTES || at[0] != '\\' || at[1] != 'u')
        return 0;
    memcpy(digits, at + 2, 4);
    unsigned long unit = strtoul(digits, &stop, 16);
    return *stop == 0 && unit >= 0xd800 && unit < 0xe000 ? (unsigned)unit : 0;
}

/* The end of an escape. A surrogate without its other half becomes U+FFFD. */
static char *take_escape(char *at, char *end)
{
    unsigned unit = surrogate_at(at, end);
    if (!unit)
        return end - at > 2 ? at + 2 : end;
    unsigned next = surrogate_at(at + ESCAPE_BYTES, end);
    if (unit < 0xdc00 && next >= 0xdc00)
        return at + 2 * ESCAPE_BYTES;
    replace(at, ESCAPE_BYTES, "\\ufffd");
    return at + ESCAPE_BYTES;
}

/* The end of a string whose first quote is at `at`. */
static char *take_string(char *at, char *end, bool escapes)
{
    for (at++; at < end && *at != '"';)
        at = *at != '\\'    ? at + 1
             : escapes      ? take_escape(at, end)
             : end - at > 2 ? at + 2
                            : end;
    return at < end ? at + 1 : end;
}

/* Python's NaN and Infinity. NaN becomes a list, which no reader of numbers or texts accepts. */
static char *take_word(char *at, char *end)
{
    static const struct {
        const char *word, *by;
    } words[] = {{"NaN", "[]"}, {"-Infinity", "-" JSON_CLAMPED}, {"Infinity", JSON_CLAMPED}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        size_t size = strlen(words[k].word);
        if ((size_t)(end - at) < size || memcmp(at, words[k].word, size) != 0)
            continue;
        replace(at, size, words[k].by);
        return at + size;
    }
    return at + 1;
}

/* `text` ends with a zero byte at `end`. */
static void rewrite(char *text, char *end, enum json_source source)
{
    for (char *at = text; at < end;) {
        bool minus = *at == '-' && at + 1 < end && at[1] == 'I';
        if (*at == '"')
            at = take_string(at, end, source == JSON_FROM_LINES);
        else if ((*at >= '0' && *at <= '9') || (*at == '-' && !minus))
            at = take_number(at, end);
        else
            at = source == JSON_FROM_LINES ? take_word(at, end) : at + 1;
    }
}

json_t *json_load_bytes(const char *bytes, size_t size, enum json_source source,
                        json_error_t *why)
{
    size_t flags = source == JSON_FROM_LINES ? JSON_ALLOW_NUL : 0;
    json_t *json = json_loadb(bytes, size, flags, why);
    bool number = !json && json_error_code(why) == json_error_numeric_overflow;
    bool syntax = !json && json_error_code(why) == json_error_invalid_syntax;
    if (!number && !(syntax && source == JSON_FROM_LINES))
        return json;
    char *copy = memory_new(size + 1, 1);
    memcpy(copy, bytes, size);
    rewrite(copy, copy + size, source);
    json = json_loadb(copy, size, flags, why);
    free(copy);
    return json;
}
