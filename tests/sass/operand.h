/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of instructions, from nvdisasm's text: parse.c. */
#pragma once
#include "tests/sass/machine.h"
#include <string.h>

enum { LABEL_TEXT = 64 };

/* A place in the code; operands name it. */
struct label {
    char name[LABEL_TEXT];
    uint32_t index;
};

struct labels {
    struct label *label;
    uint32_t count, capacity;
};

/* Each reads at *at and goes past what it read; false: that is nothing it knows. */
bool predicate_read(const char **at, struct operand *o);
bool operand_read(const char **at, const struct labels *labels, struct operand *o);

/* Goes past the text where *at begins with it. */
static inline bool text_skip(const char **at, const char *text)
{
    size_t n = strlen(text);
    if (strncmp(*at, text, n))
        return false;
    *at += n;
    return true;
}
