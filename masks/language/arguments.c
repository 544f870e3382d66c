/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens as the parser sees them, and what stands between the brackets of a call: numbers,
   ranges, strings and lists, and inside a definition the names of its parameters. */
#include "masks/base/memory.h"
#include "masks/base/number.h"
#include "masks/language/parser.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct token *parser_peek(const struct parser *p)
{
    return &p->script->token[p->next];
}

bool parser_accept(struct parser *p, int kind)
{
    bool is = parser_peek(p)->kind == kind;
    p->next += is;
    return is;
}

uint32_t parser_place(const struct parser *p)
{
    return p->bindings ? p->bindings->at : parser_peek(p)->at;
}

const char *token_found(const struct script *s, uint32_t token, char buffer[64])
{
    const struct token *t = &s->token[token];
    if (t->kind == TOKEN_END || (t->kind == TOKEN_NEWLINE && t->at >= s->length))
        return "found the end";
    if (t->kind == TOKEN_NEWLINE)
        return "found the end of the line";
    snprintf(buffer, 64, "found '%.*s'", t->length < 40 ? (int)t->length : 40, s->text + t->at);
    return buffer;
}

int parser_expected(struct parser *p, const char *what)
{
    char buffer[64];
    return script_error(p->user, parser_place(p), p->e, "%s, %s is expected",
                        token_found(p->script, p->next, buffer), what);
}

void parser_copy_word(const struct parser *p, char word[WORD_MAX + 1])
{
    const struct token *t = parser_peek(p);
    uint32_t length = t->length < WORD_MAX ? t->length : WORD_MAX;
    memcpy(word, p->script->text + t->at, length);
    word[length] = 0;
}

/* ["-"] NUMBER */
static int read_number(struct parser *p, bool *whole, int64_t *integer, double *real)
{
    bool minus = parser_accept(p, '-');
    const struct token *t = parser_peek(p);
    if (t->kind != TOKEN_NUMBER)
        return parser_expected(p, "a number");
    char text[64];
    if (t->length >= sizeof text)
        return script_error(p->user, parser_place(p), p->e,
                            "a number of %u digits, less than %zu are "
                            "expected",
                            t->length, sizeof text);
    memcpy(text, p->script->text + t->at, t->length);
    text[t->length] = 0;
    char *end;
    errno = 0;
    *integer = strtoll(text, &end, 10);
    *whole = *end == 0;
    if (*whole && errno)
        return script_error(p->user, parser_place(p), p->e,
                            "%s is too large, at most 2^63 - 1 is expected", text);
    *real = number_read(text, &end);
    if (*end)
        return parser_expected(p, "a number");
    if (minus)
        *integer = -*integer, *real = -*real;
    p->next++;
    return 0;
}

static int read_range(struct parser *p, struct argument *a)
{
    bool whole;
    if (read_number(p, &a->whole, &a->first, &a->real) < 0)
        return -1;
    a->last = a->first;
    if (parser_peek(p)->kind != TOKEN_RANGE)
        return 0;
    if (!a->whole)
        return parser_expected(p, "a range of whole numbers or one number");
    p->next++;
    uint32_t at = parser_place(p);
    double real;
    if (read_number(p, &whole, &a->last, &real) < 0)
        return -1;
    a->kind = ARGUMENT_RANGE;
    return whole ? 0 : script_error(p->user, at, p->e, "a range ends in a whole number");
}

static int read_list(struct parser *p, struct argument *a)
{
    uint32_t capacity = 0;
    a->kind = ARGUMENT_LIST;
    do {
        bool whole;
        double real;
        int64_t value;
        uint32_t at = parser_place(p);
        if (read_number(p, &whole, &value, &real) < 0)
            return -1;
        if (!whole)
            return script_error(p->user, at, p->e, "a list holds whole numbers");
        *MEMORY_PUSH(a->list, a->n_list, capacity) = value;
    } while (parser_accept(p, ','));
    return parser_accept(p, ']') ? 0 : parser_expected(p, "',' or ']'");
}

static int read_string(struct parser *p, struct argument *a)
{
    const struct token *t = parser_peek(p);
    a->kind = ARGUMENT_STRING;
    a->string = memory_new(t->length, 1);
    memcpy(a->string, p->script->text + t->at + 1, t->length - 2);
    p->next++;
    return 0;
}

/* Inside a definition: the value that the parameter stands for. */
static int read_binding(struct parser *p, struct argument *a)
{
    char word[WORD_MAX + 1];
    parser_copy_word(p, word);
    const struct bindings *b = p->bindings;
    for (uint32_t k = 0; b && k < MAX_PARAMETERS && b->of->parameter[k].name; k++) {
        if (strcmp(word, b->of->parameter[k].name))
            continue;
        char name[sizeof a->name];
        memcpy(name, a->name, sizeof name);
        *a = *b->value[k]; /* a number: it owns nothing */
        memcpy(a->name, name, sizeof name);
        p->next++;
        return 0;
    }
    return parser_expected(p, "a number, a range, a string or a list");
}

static int read_argument(struct parser *p, struct argument *a)
{
    a->at = parser_place(p);
    if (parser_peek(p)->kind == TOKEN_WORD && parser_peek(p)[1].kind == '=') {
        parser_copy_word(p, a->name);
        p->next += 2;
        a->at = parser_place(p);
    }
    if (parser_peek(p)->kind == TOKEN_STRING)
        return read_string(p, a);
    if (parser_accept(p, '['))
        return read_list(p, a);
    if (parser_peek(p)->kind == TOKEN_WORD)
        return read_binding(p, a);
    return parser_peek(p)->kind == '-' || parser_peek(p)->kind == TOKEN_NUMBER
               ? read_range(p, a)
               : parser_expected(p, "a number, a range, a string or a list");
}

int arguments_parse(struct parser *p, struct node *call)
{
    uint32_t capacity = 0;
    if (parser_accept(p, ')'))
        return 0;
    do {
        *MEMORY_PUSH(call->argument, call->n_arguments, capacity) = (struct argument){0};
        if (read_argument(p, &call->argument[call->n_arguments - 1]) < 0)
            return -1;
    } while (parser_accept(p, ','));
    return parser_accept(p, ')') ? 0 : parser_expected(p, "',' or ')'");
}

int64_t number_parse(const struct script *s, uint32_t *next, struct error *e)
{
    struct parser p = {.script = s, .user = s, .next = *next, .e = e};
    bool whole = true;
    int64_t value = 0;
    double real;
    if (parser_peek(&p)->kind != TOKEN_NUMBER)
        return parser_expected(&p, "a whole number");
    if (read_number(&p, &whole, &value, &real) < 0)
        return -1;
    if (!whole)
        return script_error(s, s->token[*next].at, e, "a whole number is expected");
    *next = p.next;
    return value;
}
