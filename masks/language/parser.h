/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the parser; internal to the language. */
#pragma once
#include "masks/language/primitive.h"

/* Values of the parameters' names inside a definition. */
struct bindings {
    const struct argument *value[MAX_PARAMETERS];
    const struct primitive *of;
    uint32_t at; /* where the user wrote the word */
};

struct parser {
    const struct script *script; /* that is parsed */
    const struct script *user;   /* that errors point into */
    const struct bindings *bindings;
    uint32_t next, depth;
    struct error *e;
};

const struct token *parser_peek(const struct parser *p);
bool parser_accept(struct parser *p,
                   int kind); /* steps over the next token if it is this kind */
uint32_t parser_place(const struct parser *p); /* where an error about the next token points */
int parser_expected(struct parser *p, const char *what); /* "found .., WHAT is expected"; -1 */

/* The token's text, cut to a word's greatest length (longer words are refused by their look-up). */
void parser_copy_word(const struct parser *p, char word[WORD_MAX + 1]);

/* The arguments of a call behind its "(" up to its ")"; -1 with the error set. */
int arguments_parse(struct parser *p, struct node *call);
