/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and paragraphs for people. Both fit a width in columns; width 0 is any width. */
#pragma once
#include "masks/base/text.h"
#include <stdbool.h>
#include <stdint.h>

enum { TABLE_WIDTH = 100, TABLE_COLUMNS_MOST = 24 };

struct table {
    const char *title[TABLE_COLUMNS_MOST];
    bool right[TABLE_COLUMNS_MOST]; /* aligned right, as numbers are; never wrapped */
    uint32_t columns;
    char **cell; /* row by row */
    uint32_t cells, capacity;
};

/* Columns come before cells. Titles must outlive the table; if all are empty, no line of titles is printed. */
void table_text_column(struct table *t, const char *title);
void table_number_column(struct table *t, const char *title);
/* Adds the next cell of the current row; a full row is followed by a new one. */
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends titles and rows, with two blanks between columns, or one where that is too wide. If it still is, cells of text
   columns are wrapped. */
void table_add_to(const struct table *t, uint32_t width, struct text *out);
void table_finish(struct table *t);
/* Prints to stdout and finishes the table. */
void table_print(struct table *t, uint32_t width);

/* Appends text with its lines folded at blanks and commas, continued `hang` columns right of their own indentation. A
   longer word, such as a path, stays whole. */
void lines_fold(const char *lines, uint32_t width, uint32_t hang, struct text *out);
/* Prints to stdout and finishes the text. */
void lines_print(struct text *lines, uint32_t width, uint32_t hang);
