/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a TSV or CSV file, one at a time. A TSV has no quotes (QUOTE_NONE): a tab ends a field and a newline a row. A CSV's
   fields may stand in double quotes, which hold commas, newlines and doubled quotes. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/text.h"
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file; messages begin with the path. */
struct task_source {
    const char *path;
    const uint8_t *bytes;
    size_t size;
    const char *label;              /* of all rows; null: the rows have labels */
    const struct task_source *next; /* read after it as one file; null: the last */
};

struct row_field {
    size_t at;             /* its first byte in rows.text */
    uint32_t line, column; /* from 1; columns count bytes */
};

struct rows {
    const char *path;
    const uint8_t *begin, *at, *end;
    uint32_t line; /* the next one */
    char separator;
    struct text text; /* fields of the row, each with a zero behind it */
    struct row_field *field;
    size_t fields, capacity;
};

/* Skips a byte order mark. Separator: '\t', ',' or 0: a line is a field. */
void rows_begin(struct rows *r, const struct task_source *from, char separator);
/* 1: a row; 0: the end; -1: a quote that nothing closes, or a zero byte. An empty line is a row of one empty field. */
int rows_next(struct rows *r, struct error *e);
const char *rows_field(const struct rows *r, size_t k); /* until the next row */
/* The field with this text, or -1. */
int rows_find(const struct rows *r, const char *text);
/* "PATH:LINE:COLUMN: .." of field k; beyond the last one, of the row's first. Returns -1. */
int rows_fail(const struct rows *r, size_t k, struct error *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void rows_finish(struct rows *r);
