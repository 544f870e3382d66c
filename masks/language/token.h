/* SPDX-License-Identifier: Apache-2.0 */
/* A text of the mask language cut into tokens, and errors that point into it. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCRIPT_MAX_BYTES = 1 << 24, WORD_MAX = 31 };

/* Punctuation is its own character. */
enum token_kind {
    TOKEN_END = 0,
    TOKEN_NEWLINE = '\n',
    TOKEN_WORD = 256,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_RANGE /* ".." */
};

struct token {
    int kind;
    uint32_t at, length; /* bytes of the script's text */
};

struct script {
    const char *name; /* of the file, or "MASK": what errors begin with */
    const char *text; /* both stay the caller's */
    size_t length;
    struct token *token; /* ends in TOKEN_NEWLINE, TOKEN_END */
    uint32_t n_tokens;
};

/* True for a byte that a word may contain. */
bool word_character(int c);

/* Newlines inside brackets and comments are gone. Fails at a byte that starts no token. */
int script_read(const char *name, const char *text, size_t length, struct script *ret,
                struct error *e);
void script_finish(struct script *s); /* a zeroed one is fine */

/* "NAME:LINE:COLUMN: text", the line itself and a caret; returns -1. */
int script_error(const struct script *s, uint32_t at, struct error *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
