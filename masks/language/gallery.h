/* SPDX-License-Identifier: Apache-2.0 */
/* The gallery: masks of the papers by name. */
#pragma once
#include <stddef.h>

/* An entry of the gallery. NAME with all its arguments, NAME(w=5, g=2), is the same mask as NAME. */
enum { GALLERY_MAX_ARGUMENTS = 4 };
struct gallery_entry {
    const char *name;
    struct {
        const char *name; /* null: no further argument */
        int value;
    } argument[GALLERY_MAX_ARGUMENTS];
    const char *text;  /* one line */
    const char *paper; /* null: of no paper */
};
extern const struct gallery_entry mask_gallery[]; /* ended by a null name */

/* A gallery file, embedded at build time (generated: gallery_embedded.c). */
struct gallery_file {
    const char *name; /* "star.mask" */
    const char *text;
};
extern const struct gallery_file gallery_embedded[]; /* ended by a null name */

/* The embedded file of this gallery name, or null. */
const struct gallery_file *gallery_find(const char *name);

/* The longest gallery name with a hyphen that the text begins with, or null. */
const struct gallery_entry *gallery_begins(const char *text, size_t length);

/* The word of the language for a gallery name: hyphens become underscores. Null if there is none. */
const char *gallery_word(const struct gallery_entry *g);

/* The expression that "NAME(ARGUMENTS)" means if NAME has a hyphen and its word exists, else null. It is as long
   as the text, so that columns stay. Caller frees. */
char *gallery_call(const char *text);
