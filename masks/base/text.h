/* SPDX-License-Identifier: Apache-2.0 */
/* A string that grows: every printer (plans, masks, headers, JSON-free tables) writes into one. */
#pragma once
#include <stddef.h>

struct text {
    char *bytes; /* always ends in a zero once something was added; null before */
    size_t length, capacity;
};

void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_append(struct text *t, const char *bytes, size_t length);
/* A word of a shell command: in single quotes if a shell would split or expand it. */
void text_add_word(struct text *t, const char *word);
const char *text_get(const struct text *t); /* "" while empty; lives until the next change */
char *text_take(struct text *t);            /* the caller frees; *t is empty again */
void text_finish(struct text *t);
