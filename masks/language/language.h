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

/* A gallery file, embedded at build time (generated: gallery_embedded.c). */
struct gallery_file {
    const char *name; /* "star.mask" */
    const char *text;
};
extern const struct gallery_file gallery_embedded[]; /* ended by a null name */

/* The embedded file of this gallery name, or null. */
const struct gallery_file *gallery_find(const char *name);

struct gallery_entry;

/* The longest gallery name with a hyphen that the text begins with, or null. */
const struct gallery_entry *gallery_begins(const char *text, size_t length);

/* The word of the language for a gallery name: hyphens become underscores. Null if there is none. */
const char *gallery_word(const struct gallery_entry *g);

/* The expression that "NAME(ARGUMENTS)" means if NAME has a hyphen and its word exists, else null. It is as long
   as the text, so that columns stay. Caller frees. */
char *gallery_call(const char *text);
