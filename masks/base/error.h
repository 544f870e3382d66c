/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of library functions: a kind, which programs turn into an exit code, and a complete text,
   whose first line is complete without the rest. The library prints nothing. */
#pragma once
#include <stdarg.h>

enum error_kind {
    ERROR_NONE,
    ERROR_FALSE,       /* the thing asked about does not hold: exit code 1 */
    ERROR_INPUT,       /* bad input or usage: exit code 2 */
    ERROR_UNAVAILABLE, /* this machine cannot: exit code 3 */
};

enum { ERROR_TEXT_BYTES = 4096 };

struct error {
    enum error_kind kind;
    char text[ERROR_TEXT_BYTES];
};

/* Fills *e (which may be null) and returns -1, so that a failure is one statement:
   return error_set(e, ERROR_INPUT, "..."). */
int error_set(struct error *e, enum error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text that is there; returns -1. */
int error_prefix(struct error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Texts quote names and words of files. Their control characters, C1 ones in UTF-8 too, would command a terminal: each byte
   of them becomes '?'. The functions above call it; for texts that are no errors. */
void error_replace_controls(char *text);
