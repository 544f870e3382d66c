/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/tasks/json_label.h"
#include "masks/base/number.h"
#include <stdio.h>
#include <string.h>

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_mark(const struct task_source *from)
{
    return from->size >= 3 && !memcmp(from->bytes, "\xef\xbb\xbf", 3) ? 3 : 0;
}

bool is_json(const struct task_source *from)
{
    size_t at = skip_mark(from);
    while (at < from->size && is_blank(from->bytes[at]))
        at++;
    return at < from->size && from->bytes[at] == '{';
}

static int parse_line(struct json_lines *l, const char *bytes, size_t size, struct error *e)
{
    json_error_t why;
    l->object = json_load_bytes(bytes, size, JSON_FROM_FILE, &why);
    if (json_is_object(l->object))
        return 1;
    if (l->object)
        return error_set(e, ERROR_INPUT, "%s:%u:1: a JSON object is expected", l->from->path,
                         l->line);
    return error_set(e, ERROR_INPUT, "%s:%u:%d: not JSON: %s", l->from->path, l->line,
                     why.column > 0 ? why.column : 1, why.text);
}

int json_lines_next(struct json_lines *l, struct error *e)
{
    json_decref(l->object);
    l->object = NULL;
    if (!l->at)
        l->at = skip_mark(l->from);
    while (l->at < l->from->size) {
        const char *line = (const char *)l->from->bytes + l->at;
        const char *end = memchr(line, '\n', l->from->size - l->at);
        size_t size = end ? (size_t)(end - line) : l->from->size - l->at, blank = 0;
        l->at += size + (end != NULL);
        l->line++;
        while (blank < size && is_blank((uint8_t)line[blank]))
            blank++;
        if (blank < size)
            return parse_line(l, line, size, e);
    }
    return 0;
}

/* The fewest digits that read back as the value; 2.0 stays a number with a point. */
static void add_real(double value, char buffer[JSON_LABEL_BYTES])
{
    for (int digits = 15; digits <= 17; digits++) {
        number_print(buffer, JSON_LABEL_BYTES, "%.*g", digits, value);
        if (number_read(buffer, NULL) == value)
            break;
    }
    if (!strpbrk(buffer, ".en"))
        strcat(buffer, ".0");
}

const char *json_label(const json_t *value, char buffer[JSON_LABEL_BYTES])
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        snprintf(buffer, JSON_LABEL_BYTES, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        add_real(json_real_value(value), buffer);
    else if (json_is_boolean(value))
        snprintf(buffer, JSON_LABEL_BYTES, "%d", json_is_true(value));
    else
        return NULL;
    return buffer;
}
