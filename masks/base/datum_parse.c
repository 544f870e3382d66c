/* SPDX-License-Identifier: Apache-2.0 */
/* A parser by recursive descent; it reads nothing beyond `size`, and its depth is limited. */
#include "masks/base/datum.h"
#include "masks/base/memory.h"
#include "masks/base/number.h"
#include "masks/base/text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_NUMBER = 64, MAX_NEAR = 20 };

struct parser {
    const char *at, *end;
    uint32_t depth;
    char *why;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+';
}

/* Skips white space and returns the next byte, or 0 at the end. */
static char peek(struct parser *p)
{
    while (p->at < p->end &&
           (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
    return p->at < p->end ? *p->at : 0;
}

/* Sets the error "WHAT near 'TOKEN'" and returns false. */
static bool fail(struct parser *p, const char *what)
{
    int length = 1;
    char c = peek(p);
    while (is_word(c) && length < MAX_NEAR && p->at + length < p->end && is_word(p->at[length]))
        length++;
    if (p->at == p->end)
        snprintf(p->why, DATUM_WHY_BYTES, "%s near end of file", what);
    else if (c < 0x20 || c > 0x7e)
        snprintf(p->why, DATUM_WHY_BYTES, "%s near byte 0x%02x", what, (unsigned char)c);
    else
        snprintf(p->why, DATUM_WHY_BYTES, "%s near '%.*s'", what, length, p->at);
    return false;
}

static bool accept(struct parser *p, char c)
{
    if (peek(p) != c)
        return false;
    p->at++;
    return true;
}

/* ---- texts ---- */

static void append_utf8(struct text *out, uint32_t c)
{
    const char two[] = {(char)(0xc0 | c >> 6), (char)(0x80 | (c & 63))};
    const char three[] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)),
                          (char)(0x80 | (c & 63))};
    const char four[] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 63)),
                         (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))};
    if (c < 0x80)
        text_append(out, &(char){(char)c}, 1);
    else if (c < 0x800)
        text_append(out, two, sizeof two);
    else if (c < 0x10000)
        text_append(out, three, sizeof three);
    else
        text_append(out, four, sizeof four);
}

static bool read_hex(struct parser *p, uint32_t *ret)
{
    *ret = 0;
    if (p->end - p->at < 4)
        return false;
    for (int k = 0; k < 4; k++) {
        char c = *p->at++, lower = (char)(c | 0x20);
        if (!is_digit(c) && (lower < 'a' || lower > 'f'))
            return false;
        *ret = *ret << 4 | (uint32_t)(is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    return true;
}

/* Reads the rest of a "\u" escape: a code point of four hex digits, or a surrogate pair. */
static bool read_code_point(struct parser *p, struct text *out)
{
    uint32_t c, low;
    if (!read_hex(p, &c) || c == 0 || (c >= 0xdc00 && c < 0xe000))
        return fail(p, "invalid \\u escape");
    if (c >= 0xd800 && c < 0xdc00) {
        if (p->end - p->at < 6 || p->at[0] != '\\' || p->at[1] != 'u')
            return fail(p, "invalid \\u escape");
        p->at += 2;
        if (!read_hex(p, &low) || low < 0xdc00 || low >= 0xe000)
            return fail(p, "invalid \\u escape");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, c);
    return true;
}

static bool read_escape(struct parser *p, struct text *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = p->at < p->end ? *p->at++ : 0;
    const char *known = c ? strchr(from, c) : NULL;
    if (c == 'u')
        return read_code_point(p, out);
    if (!known)
        return fail(p, "invalid escape");
    text_append(out, &to[known - from], 1);
    return true;
}

/* Length of the UTF-8 sequence at `s`, where `left` bytes are left; 0 if it is invalid. */
static size_t utf8_length(const char *s, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)*s;
    size_t n = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
    if (n < 2 || n > left)
        return n == 1;
    uint32_t point = c & (0xffu >> (n + 1));
    for (size_t k = 1; k < n; k++) {
        if (((unsigned char)s[k] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | ((unsigned char)s[k] & 63);
    }
    bool surrogate = point >= 0xd800 && point < 0xe000;
    return point >= least[n] && point <= 0x10ffff && !surrogate ? n : 0;
}

/* Reads the rest of a string after its first quote. Null if it is invalid. */
static char *read_text(struct parser *p)
{
    struct text out = {0};
    while (p->at < p->end && *p->at != '"') {
        size_t n = utf8_length(p->at, (size_t)(p->end - p->at));
        bool ok = n && (unsigned char)*p->at >= 0x20;
        if (!ok)
            fail(p, n ? "control character in a text" : "text is no UTF-8");
        else if (*p->at == '\\')
            p->at++, ok = read_escape(p, &out);
        else
            text_append(&out, p->at, n), p->at += n;
        if (!ok) {
            text_finish(&out);
            return NULL;
        }
    }
    if (p->at < p->end) {
        p->at++;
        return text_take(&out);
    }
    fail(p, "premature end of input");
    text_finish(&out);
    return NULL;
}

/* ---- numbers ---- */

/* End of one or more digits at `at`, or null. */
static const char *skip_digits(const char *at, const char *end)
{
    const char *first = at;
    while (at < end && is_digit(*at))
        at++;
    return at == first ? NULL : at;
}

/* End of the number at `at`, or null. Sets *whole if it has no point and no exponent. */
static const char *number_end(const char *at, const char *end, bool *whole)
{
    const char *digits = at + (at < end && *at == '-');
    *whole = true;
    at = skip_digits(digits, end);
    if (!at || (*digits == '0' && at - digits > 1))
        return NULL;
    if (at < end && *at == '.') {
        *whole = false;
        at = skip_digits(at + 1, end);
    }
    if (at && at < end && (*at == 'e' || *at == 'E')) {
        *whole = false;
        at++;
        at = skip_digits(at + (at < end && (*at == '+' || *at == '-')), end);
    }
    return at;
}

static bool read_number(struct parser *p, struct datum *v)
{
    char copy[MAX_NUMBER];
    bool whole;
    const char *end = number_end(p->at, p->end, &whole);
    if (!end || end - p->at >= MAX_NUMBER)
        return fail(p, "invalid token");
    memcpy(copy, p->at, (size_t)(end - p->at));
    copy[end - p->at] = 0;
    errno = 0;
    v->kind = whole ? DATUM_INTEGER : DATUM_REAL;
    v->integer = whole ? strtoll(copy, NULL, 10) : 0;
    v->real = whole ? (double)v->integer : number_read(copy, NULL);
    if ((whole && errno) || v->real > 1.7976931348623157e308 ||
        v->real < -1.7976931348623157e308)
        return fail(p, whole ? "too big integer" : "real number overflow");
    p->at = end;
    return true;
}

/* ---- lists and objects ---- */

static bool read_value(struct parser *p, struct datum *v);

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool names_differ(struct parser *p, const struct datum *object)
{
    bool ok = true;
    const char **name = memory_new(object->count, sizeof *name);
    size_t n = 0;
    for (const struct datum *v = object->first; v; v = v->next)
        name[n++] = v->name;
    qsort(name, n, sizeof *name, by_text);
    for (size_t k = 1; k < n && ok; k++)
        if (!strcmp(name[k], name[k - 1])) {
            snprintf(p->why, DATUM_WHY_BYTES, "duplicate object key near '\"%.40s\"'", name[k]);
            ok = false;
        }
    free(name);
    return ok;
}

static bool read_member(struct parser *p, struct datum *v)
{
    if (!accept(p, '"'))
        return fail(p, "string or '}' expected");
    v->name = read_text(p);
    if (!v->name)
        return false;
    return accept(p, ':') ? read_value(p, v) : fail(p, "':' expected");
}

/* Reads children up to `close`, after the opening bracket. */
static bool read_children(struct parser *p, struct datum *v, char close)
{
    struct datum **last = &v->first;
    if (accept(p, close))
        return true;
    do {
        struct datum *child = memory_new(1, sizeof *child);
        *last = child;
        last = &child->next;
        v->count++;
        if (!(close == '}' ? read_member(p, child) : read_value(p, child)))
            return false;
    } while (accept(p, ','));
    if (!accept(p, close))
        return fail(p, close == '}' ? "'}' expected" : "']' expected");
    return close == ']' || names_differ(p, v);
}

static bool read_nested(struct parser *p, struct datum *v)
{
    char open = *p->at++;
    v->kind = open == '{' ? DATUM_OBJECT : DATUM_LIST;
    if (++p->depth > MAX_DEPTH)
        return fail(p, "maximum parsing depth reached");
    bool ok = read_children(p, v, open == '{' ? '}' : ']');
    p->depth--;
    return ok;
}

static bool read_word(struct parser *p, struct datum *v)
{
    static const struct {
        const char *word;
        enum datum_kind kind;
        bool truth;
    } words[] = {
        {"null", DATUM_NULL, false}, {"true", DATUM_BOOL, true}, {"false", DATUM_BOOL, false}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        size_t length = strlen(words[k].word);
        if ((size_t)(p->end - p->at) < length || memcmp(p->at, words[k].word, length))
            continue;
        v->kind = words[k].kind;
        v->truth = words[k].truth;
        p->at += length;
        return true;
    }
    return fail(p, "invalid token");
}

static bool read_value(struct parser *p, struct datum *v)
{
    char c = peek(p);
    if (c == '{' || c == '[')
        return read_nested(p, v);
    if (c == '-' || is_digit(c))
        return read_number(p, v);
    if (c != '"')
        return read_word(p, v);
    p->at++;
    v->kind = DATUM_TEXT;
    v->text = read_text(p);
    return v->text;
}

struct datum *datum_parse(const char *text, size_t size, char why[DATUM_WHY_BYTES])
{
    struct parser p = {.at = text, .end = text + size, .why = why};
    struct datum *v = memory_new(1, sizeof *v);
    why[0] = 0;
    char c = peek(&p);
    bool ok = c == '{' || c == '[' ? read_value(&p, v) : fail(&p, "'[' or '{' expected");
    peek(&p);
    if (ok && p.at != p.end)
        ok = fail(&p, "end of file expected");
    if (ok)
        return v;
    datum_destroy(v);
    return NULL;
}
