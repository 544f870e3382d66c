/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that is read: the headers of safetensors and kernel files. Small, because libmaskc-runtime reads
   kernel files without jansson; who writes JSON, or edits it, uses jansson. Strict: UTF-8, no repeated
   keys, no zero in a text, whole numbers of 64 bits, a limited depth. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum datum_kind {
    DATUM_NULL,
    DATUM_BOOL,
    DATUM_INTEGER,
    DATUM_REAL,
    DATUM_TEXT,
    DATUM_LIST,
    DATUM_OBJECT,
};

struct datum {
    enum datum_kind kind;
    uint32_t count; /* of a list's or object's children */
    char *name;     /* of an object's member; else null */
    bool truth;
    int64_t integer;
    double real;
    char *text;
    struct datum *first,
        *next; /* children in the order of the text; the next of the same parent */
};

enum { DATUM_WHY_BYTES = 96 };

/* A list or an object and nothing after it. Null with the reason in `why`. */
struct datum *datum_parse(const char *text, size_t size, char why[DATUM_WHY_BYTES]);
void datum_destroy(struct datum *v); /* null is fine */

/* All of these take null, and values of other kinds, for a value that is not there. */
const struct datum *datum_member(const struct datum *object, const char *name); /* or null */
const struct datum *datum_at(const struct datum *list, size_t index);           /* or null */
size_t datum_count(const struct datum *list);  /* 0: empty or no list */
const char *datum_text(const struct datum *v); /* or null */
int64_t datum_integer(const struct datum *v);  /* or 0 */
bool datum_is(const struct datum *v, enum datum_kind kind);
