/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/text.h"
#include "masks/base/memory.h"
#include "masks/base/number.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void reserve(struct text *t, size_t more)
{
    size_t need = t->length + more + 1;
    if (need <= t->capacity)
        return;
    t->capacity = need > 2 * t->capacity ? need : 2 * t->capacity;
    t->bytes = memory_resize(t->bytes, t->capacity, 1);
}

void text_append(struct text *t, const char *bytes, size_t length)
{
    reserve(t, length);
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
    t->bytes[t->length] = 0;
}

void text_add(struct text *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int need = number_vprint(NULL, 0, format, args);
    va_end(args);
    if (need > 0) {
        reserve(t, (size_t)need);
        number_vprint(t->bytes + t->length, (size_t)need + 1, format, again);
        t->length += (size_t)need;
    }
    va_end(again);
}

void text_add_word(struct text *t, const char *word)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,+%@";
    const char *quote;
    if (*word && !word[strspn(word, plain)]) {
        text_append(t, word, strlen(word));
        return;
    }
    text_append(t, "'", 1);
    for (; (quote = strchr(word, '\'')); word = quote + 1) {
        text_append(t, word, (size_t)(quote - word));
        text_append(t, "'\\''", 4);
    }
    text_append(t, word, strlen(word));
    text_append(t, "'", 1);
}

const char *text_get(const struct text *t)
{
    return t->bytes ? t->bytes : "";
}

char *text_take(struct text *t)
{
    char *bytes = t->bytes ? t->bytes : memory_text("");
    *t = (struct text){0};
    return bytes;
}

void text_finish(struct text *t)
{
    free(t->bytes);
    *t = (struct text){0};
}
