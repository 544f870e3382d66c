/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/table.h"
#include "masks/base/memory.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NARROWEST = 14 }; /* of a text column that is wrapped */

/* --- lines of a width ------------------------------------------------------------------------ */

/* Bytes of the first `columns` characters of UTF-8. */
static size_t prefix(const char *s, size_t columns)
{
    size_t k = 0;
    for (size_t n = 0; s[k]; k++) {
        n += ((unsigned char)s[k] & 0xc0) != 0x80;
        if (n > columns)
            break;
    }
    return k;
}

static uint32_t width_of(const char *s)
{
    uint32_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Bytes up to and with the last of these characters among the first `most`; 0: there is none. */
static size_t last_of(const char *s, size_t most, const char *breaks)
{
    while (most && !strchr(breaks, s[most - 1]))
        most--;
    return most;
}

/* Bytes of the next line. A word that is too long is cut, or stays whole. */
static size_t next_line(const char *s, size_t width, bool cut)
{
    static const char *const weaker = " ,;|+";
    const size_t most = prefix(s, width);
    if (!s[most] || s[most] == ' ')
        return most;
    size_t at = last_of(s, most, " ");
    const size_t comma = last_of(s, most, ",;");
    /* A figure keeps its unit. */
    if (at > 1 && isdigit((unsigned char)s[at - 2]) && comma > most / 2 && s[comma] == ' ')
        return comma;
    if (at < most / 2)
        at = last_of(s, most, weaker);
    if (at || cut)
        return at ? at : most;
    at = most + strcspn(s + most, weaker);
    return s[at] ? at + 1 : at;
}

static void add_blanks(struct text *out, size_t n)
{
    text_add(out, "%*s", (int)n, "");
}

/* Without blanks at the end. */
static void add_line(struct text *out, const char *s, size_t n)
{
    while (n && s[n - 1] == ' ')
        n--;
    text_append(out, s, n);
}

static void fold_line(const char *s, uint32_t width, uint32_t hang, struct text *out)
{
    size_t indent = strspn(s, " ");
    for (s += indent;; indent += hang, hang = 0) {
        const size_t n = next_line(s, width > indent ? width - indent : 1, false);
        if (n)
            add_blanks(out, indent);
        add_line(out, s, n);
        text_add(out, "\n");
        s += n + strspn(s + n, " ");
        if (!*s)
            return;
    }
}

void lines_fold(const char *lines, uint32_t width, uint32_t hang, struct text *out)
{
    if (!width) {
        text_add(out, "%s", lines);
        return;
    }
    while (*lines) {
        const size_t n = strcspn(lines, "\n");
        char *line = memory_new(n + 1, 1);
        memcpy(line, lines, n);
        fold_line(line, width, hang, out);
        free(line);
        lines += n + (lines[n] == '\n');
    }
}

void lines_print(struct text *lines, uint32_t width, uint32_t hang)
{
    struct text out = {0};
    lines_fold(text_get(lines), width, hang, &out);
    fputs(text_get(&out), stdout);
    text_finish(&out);
    text_finish(lines);
}

/* --- tables ---------------------------------------------------------------------------------- */

static void add_column(struct table *t, const char *title, bool right)
{
    if (t->columns == TABLE_COLUMNS_MOST)
        abort();
    t->title[t->columns] = title;
    t->right[t->columns++] = right;
}

void table_text_column(struct table *t, const char *title)
{
    add_column(t, title, false);
}

void table_number_column(struct table *t, const char *title)
{
    add_column(t, title, true);
}

void table_cell(struct table *t, const char *format, ...)
{
    char *cell;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    cell = memory_new((size_t)(n < 0 ? 0 : n) + 1, 1);
    if (n > 0)
        vsnprintf(cell, (size_t)n + 1, format, again);
    va_end(again);
    *MEMORY_PUSH(t->cell, t->cells, t->capacity) = cell;
}

/* Row -1: the titles. */
static const char *cell_at(const struct table *t, int64_t row, uint32_t column)
{
    const int64_t k = row * t->columns + column;
    return row < 0 ? t->title[column] : k < t->cells ? t->cell[k] : "";
}

static bool titled(const struct table *t)
{
    bool ret = false;
    for (uint32_t c = 0; c < t->columns; c++)
        ret = ret || *t->title[c];
    return ret;
}

static int64_t rows_of(const struct table *t)
{
    return (t->cells + t->columns - 1) / t->columns;
}

/* The widest column that may be wrapped further, or -1. */
static int widest(const struct table *t, const uint32_t *width)
{
    int ret = -1;
    for (uint32_t c = 0; c < t->columns; c++)
        if (!t->right[c] && width[c] > NARROWEST && (ret < 0 || width[c] > width[ret]))
            ret = (int)c;
    return ret;
}

/* Returns the number of blanks between columns: two; if that is too wide, one. Then text columns are narrowed, the widest
   first. */
static uint32_t choose_widths(const struct table *t, uint32_t most, uint32_t *ret)
{
    uint32_t sum = 0, gap = 2;
    for (uint32_t c = 0; c < t->columns; c++) {
        ret[c] = 0;
        for (int64_t r = -1; r < rows_of(t); r++) {
            const uint32_t n = width_of(cell_at(t, r, c));
            ret[c] = n > ret[c] ? n : ret[c];
        }
        sum += ret[c];
    }
    if (most && sum + gap * (t->columns - 1) > most)
        gap = 1;
    sum += gap * (t->columns - 1);
    for (int c; most && sum > most && (c = widest(t, ret)) >= 0; sum--)
        ret[c]--;
    return gap;
}

static void add_cell(const char *s, size_t n, uint32_t width, bool right, struct text *line)
{
    char *part = memory_new(n + 1, 1);
    memcpy(part, s, n);
    const uint32_t used = width_of(part), pad = width > used ? width - used : 0;
    if (right)
        add_blanks(line, pad);
    text_append(line, s, n);
    if (!right)
        add_blanks(line, pad);
    free(part);
}

/* One line of a row; each rest[c] moves on. Returns true if there is another line. */
static bool add_row_line(const struct table *t, const uint32_t *width, uint32_t gap,
                         const char **rest, struct text *out)
{
    struct text line = {0};
    bool more = false;
    for (uint32_t c = 0; c < t->columns; c++) {
        const size_t n = t->right[c] ? strlen(rest[c]) : next_line(rest[c], width[c], true);
        if (c)
            add_blanks(&line, gap);
        add_cell(rest[c], n, width[c], t->right[c], &line);
        rest[c] += n + strspn(rest[c] + n, " ");
        more = more || *rest[c];
    }
    add_line(out, text_get(&line), line.length);
    text_add(out, "\n");
    text_finish(&line);
    return more;
}

void table_add_to(const struct table *t, uint32_t width, struct text *out)
{
    uint32_t each[TABLE_COLUMNS_MOST];
    const char *rest[TABLE_COLUMNS_MOST];
    const uint32_t gap = choose_widths(t, width, each);
    for (int64_t r = titled(t) ? -1 : 0; r < rows_of(t); r++) {
        for (uint32_t c = 0; c < t->columns; c++)
            rest[c] = cell_at(t, r, c);
        while (add_row_line(t, each, gap, rest, out))
            ;
    }
}

void table_finish(struct table *t)
{
    for (uint32_t k = 0; k < t->cells; k++)
        free(t->cell[k]);
    free(t->cell);
    *t = (struct table){0};
}

void table_print(struct table *t, uint32_t width)
{
    struct text out = {0};
    table_add_to(t, width, &out);
    fputs(text_get(&out), stdout);
    text_finish(&out);
    table_finish(t);
}
