/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/tasks/rows.h"
#include "masks/base/memory.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rows_begin(struct rows *r, const struct task_source *from, char separator)
{
    *r =
        (struct rows){.path = from->path, .at = from->bytes, .line = 1, .separator = separator};
    r->end = from->bytes + from->size;
    if (from->size >= 3 && !memcmp(from->bytes, "\xef\xbb\xbf", 3))
        r->at += 3;
    r->begin = r->at;
}

static int fail_here(const struct rows *r, struct error *e, const char *what)
{
    return error_set(e, ERROR_INPUT, "%s:%u:%zu: %s", r->path, r->line,
                     (size_t)(r->at - r->begin) + 1, what);
}

static bool ends_line(const struct rows *r)
{
    return *r->at == '\n' || (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n');
}

static bool ends_field(const struct rows *r)
{
    return r->separator && *r->at == (uint8_t)r->separator;
}

/* Bytes up to the closing quote; r->at stands behind the opening one. */
static int take_quoted(struct rows *r, struct error *e)
{
    struct rows opened = *r;
    opened.at--;
    for (; r->at < r->end; r->at++) {
        if (!*r->at)
            return fail_here(r, e, "a zero byte; text is expected");
        if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"')) {
            r->at++;
            return 0;
        }
        r->at += *r->at == '"';
        text_append(&r->text, (const char *)r->at, 1);
        if (*r->at == '\n') {
            r->line++;
            r->begin = r->at + 1;
        }
    }
    return fail_here(&opened, e, "no quote closes this one");
}

static int take_field(struct rows *r, struct error *e)
{
    *MEMORY_PUSH(r->field, r->fields, r->capacity) =
        (struct row_field){r->text.length, r->line, (uint32_t)(r->at - r->begin) + 1};
    if (r->separator == ',' && r->at < r->end && *r->at == '"') {
        r->at++;
        if (take_quoted(r, e) < 0)
            return -1;
    }
    const uint8_t *from = r->at;
    while (r->at < r->end && !ends_field(r) && !ends_line(r)) {
        if (!*r->at)
            return fail_here(r, e, "a zero byte; text is expected");
        r->at++;
    }
    text_append(&r->text, (const char *)from, (size_t)(r->at - from));
    text_append(&r->text, "", 1);
    return 0;
}

int rows_next(struct rows *r, struct error *e)
{
    r->fields = r->text.length = 0;
    if (r->at == r->end)
        return 0;
    for (;;) {
        if (take_field(r, e) < 0)
            return -1;
        if (r->at == r->end)
            return 1;
        bool separated = ends_field(r);
        r->at += *r->at == '\r' ? 2 : 1;
        if (separated)
            continue;
        r->line++;
        r->begin = r->at;
        return 1;
    }
}

const char *rows_field(const struct rows *r, size_t k)
{
    return r->text.bytes + r->field[k].at;
}

int rows_find(const struct rows *r, const char *text)
{
    for (size_t k = 0; k < r->fields; k++)
        if (!strcmp(rows_field(r, k), text))
            return (int)k;
    return -1;
}

int rows_fail(const struct rows *r, size_t k, struct error *e, const char *format, ...)
{
    struct row_field none = {0, r->line, 1}, at = k < r->fields ? r->field[k]
                                                  : r->fields   ? r->field[0]
                                                                : none;
    struct error what = {0};
    char *bytes = memory_new(ERROR_TEXT_BYTES, 1);
    va_list args;
    va_start(args, format);
    vsnprintf(bytes, ERROR_TEXT_BYTES, format, args);
    va_end(args);
    error_set(&what, ERROR_INPUT, "%s:%u:%u: %s", r->path, at.line, at.column, bytes);
    free(bytes);
    if (e)
        *e = what;
    return -1;
}

void rows_finish(struct rows *r)
{
    free(r->field);
    text_finish(&r->text);
}
