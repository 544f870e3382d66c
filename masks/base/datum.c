/* SPDX-License-Identifier: Apache-2.0 */
/* The tree and how it is asked; datum_parse.c makes it. */
#include "masks/base/datum.h"
#include <stdlib.h>
#include <string.h>

void datum_destroy(struct datum *v)
{
    while (v) {
        struct datum *next = v->next;
        datum_destroy(v->first);
        free(v->name);
        free(v->text);
        free(v);
        v = next;
    }
}

bool datum_is(const struct datum *v, enum datum_kind kind)
{
    return v && v->kind == kind;
}

const struct datum *datum_member(const struct datum *object, const char *name)
{
    if (!datum_is(object, DATUM_OBJECT))
        return NULL;
    const struct datum *v = object->first;
    while (v && strcmp(v->name, name))
        v = v->next;
    return v;
}

const struct datum *datum_at(const struct datum *list, size_t index)
{
    if (!datum_is(list, DATUM_LIST) || index >= list->count)
        return NULL;
    const struct datum *v = list->first;
    while (index--)
        v = v->next;
    return v;
}

size_t datum_count(const struct datum *list)
{
    return datum_is(list, DATUM_LIST) ? list->count : 0;
}

const char *datum_text(const struct datum *v)
{
    return datum_is(v, DATUM_TEXT) ? v->text : NULL;
}

int64_t datum_integer(const struct datum *v)
{
    return datum_is(v, DATUM_INTEGER) ? v->integer : 0;
}
