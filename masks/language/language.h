/* SPDX-License-Identifier: Apache-2.0 */
/* The mask language (masks/README.md): from text to mask. */
#pragma once
#include "masks/mask.h"
#include <stddef.h>

struct language_input {
    const char *name; /* errors begin with it */
    const char *text;
    size_t length;
    const char *folder; /* where file("...") looks: ends in '/' or is "" */
    uint32_t n;         /* of -n; 0: the text says it */
    bool expression;    /* one expression, no statements */
    const char *source; /* of the mask */
};

/* A new mask, or null with *e set; its text points at line and column. */
struct mask *language_read(const struct language_input *in, struct error *e);
