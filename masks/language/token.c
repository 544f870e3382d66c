/* SPDX-License-Identifier: Apache-2.0 */
/* The lexer: one function per kind of token, chosen by the first byte. */
#include "masks/language/token.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

bool word_character(int c)
{
    return (c >= 'a' && c <= 'z') || c == '_' || is_digit(c);
}

struct lexer {
    struct script *script;
    uint32_t at, capacity, open; /* open: brackets */
};

static int peek(const struct lexer *x, uint32_t ahead)
{
    size_t at = (size_t)x->at + ahead;
    return at < x->script->length ? (unsigned char)x->script->text[at] : -1;
}

static uint32_t word_length(const struct lexer *x)
{
    uint32_t k = 0;
    while (word_character(peek(x, k)))
        k++;
    return k;
}

static uint32_t digits(const struct lexer *x, uint32_t from)
{
    while (is_digit(peek(x, from)))
        from++;
    return from;
}

/* 12, 0.5, 1e-3; the first dot of 1..3 is no decimal point. */
static uint32_t number_length(const struct lexer *x)
{
    uint32_t k = digits(x, 0);
    if (peek(x, k) == '.' && is_digit(peek(x, k + 1)))
        k = digits(x, k + 1);
    uint32_t sign = peek(x, k + 1) == '-' || peek(x, k + 1) == '+';
    if (peek(x, k) == 'e' && is_digit(peek(x, k + 1 + sign)))
        k = digits(x, k + 1 + sign);
    return k;
}

/* 0 where the string does not end on its line. */
static uint32_t string_length(const struct lexer *x)
{
    uint32_t k = 1;
    while (peek(x, k) >= 0 && peek(x, k) != '"' && peek(x, k) != '\n')
        k++;
    return peek(x, k) == '"' ? k + 1 : 0;
}

static void push(struct lexer *x, int kind, uint32_t length)
{
    struct token t = {.kind = kind, .at = x->at, .length = length};
    *MEMORY_PUSH(x->script->token, x->script->n_tokens, x->capacity) = t;
    x->at += length;
}

static int fail_at_byte(const struct lexer *x, struct error *e)
{
    int c = peek(x, 0);
    if (c == '"')
        return script_error(x->script, x->at, e, "the string does not end, '\"' is expected");
    if (c >= 'A' && c <= 'Z')
        return script_error(x->script, x->at, e,
                            "words are written in small letters, found '%c'", c);
    if (c > ' ' && c < 127)
        return script_error(
            x->script, x->at, e,
            "unexpected '%c', a word, a number or one of ( ) [ ] , : = | & - ~ is "
            "expected",
            c);
    return script_error(x->script, x->at, e, "unexpected byte 0x%02x, plain text is expected",
                        c);
}

static void skip_comment(struct lexer *x)
{
    while (peek(x, 0) >= 0 && peek(x, 0) != '\n')
        x->at++;
}

static int read_token(struct lexer *x, struct error *e)
{
    int c = peek(x, 0);
    if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && x->open)) {
        x->at++;
    } else if (c == '#') {
        skip_comment(x);
    } else if (is_digit(c)) {
        push(x, TOKEN_NUMBER, number_length(x));
    } else if (word_character(c)) {
        push(x, TOKEN_WORD, word_length(x));
    } else if (c == '"' && string_length(x)) {
        push(x, TOKEN_STRING, string_length(x));
    } else if (c == '.' && peek(x, 1) == '.') {
        push(x, TOKEN_RANGE, 2);
    } else if (c > 0 && strchr("()[],:=|&-~\n", c)) {
        if (c == '(' || c == '[')
            x->open++;
        if ((c == ')' || c == ']') && x->open)
            x->open--;
        push(x, c, 1);
    } else {
        return fail_at_byte(x, e);
    }
    return 0;
}

int script_read(const char *name, const char *text, size_t length, struct script *ret,
                struct error *e)
{
    *ret = (struct script){.name = name, .text = text, .length = length};
    if (length > SCRIPT_MAX_BYTES)
        return error_set(e, ERROR_INPUT, "%s: %zu bytes, a mask text has at most %d", name,
                         length, SCRIPT_MAX_BYTES);
    struct lexer x = {.script = ret};
    while (x.at < length) {
        if (read_token(&x, e) < 0) {
            script_finish(ret);
            return -1;
        }
    }
    push(&x, TOKEN_NEWLINE, 0);
    push(&x, TOKEN_END, 0);
    return 0;
}

void script_finish(struct script *s)
{
    free(s->token);
    *s = (struct script){0};
}

/* Shows at most this many bytes of a line, so that the caret stays on a screen. */
enum { SHOWN_BYTES = 160, SHOWN_BEFORE = 100 };

static bool starts_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

static void show_line(const struct script *s, uint32_t begin, uint32_t at, struct text *out)
{
    uint32_t from = at - begin > SHOWN_BEFORE ? at - SHOWN_BEFORE : begin, end = from;
    while (end < s->length && s->text[end] != '\n' && end - from < SHOWN_BYTES)
        end++;
    text_add(out, "\n");
    for (uint32_t k = from; k < end; k++) {
        unsigned char c = (unsigned char)s->text[k];
        text_add(out, "%c", c == '\t' || (c >= ' ' && c != 127) ? c : ' ');
    }
    text_add(out, "\n");
    for (uint32_t k = from; k < at; k++)
        if (starts_character(s->text[k]))
            text_add(out, "%c", s->text[k] == '\t' ? '\t' : ' ');
    text_add(out, "^");
}

/* The number of the line that holds byte `at`, counted from 1, and where it begins. */
static uint32_t line_of(const struct script *s, uint32_t at, uint32_t *ret_begin)
{
    uint32_t line = 1;
    *ret_begin = 0;
    for (uint32_t k = 0; k < at; k++)
        if (s->text[k] == '\n')
            line++, *ret_begin = k + 1;
    return line;
}

int script_error(const struct script *s, uint32_t at, struct error *e, const char *format, ...)
{
    char what[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    uint32_t begin, column = 1;
    at = at <= s->length ? at : (uint32_t)s->length;
    uint32_t line = line_of(s, at, &begin);
    for (uint32_t k = begin; k < at; k++)
        column += starts_character(s->text[k]);
    struct text out = {0};
    text_add(&out, "%s:%u:%u: %s", s->name, line, column, what);
    show_line(s, begin, at, &out);
    error_set(e, ERROR_INPUT, "%s", text_get(&out));
    text_finish(&out);
    return -1;
}
