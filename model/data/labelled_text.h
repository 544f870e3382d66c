/* SPDX-License-Identifier: Apache-2.0 */
/* Files with `label TAB text` on each line. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/file.h"

struct labelled_row {
    const char *label, *text; /* into the file */
    uint32_t label_size, text_size;
};

struct labelled_text {
    const char *path, *at, *end;
    uint64_t line; /* of the row that was read last, from 1 */
};
/* The file and its path must outlive it. */
struct labelled_text labelled_text_begin(const char *path, const struct file *f);
/* 1: a row, 0: the end, -1 with "PATH:LINE:COLUMN: what": a line without a label or a text, or with a second tab. */
int labelled_text_next(struct labelled_text *r, struct labelled_row *ret, struct error *e);
/* Such an error about the row that was read last; column counts from 0. Returns -1. */
int labelled_text_broken(const struct labelled_text *r, size_t column, const char *what,
                         struct error *e);
