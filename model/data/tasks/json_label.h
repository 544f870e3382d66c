/* SPDX-License-Identifier: Apache-2.0 */
/* JSONL: an object a line, and labels in it. */
#pragma once
#include "masks/base/json_load.h"
#include "model/data/tasks/rows.h"
#include <stdbool.h>

/* The first character that is no white space is a brace. */
bool is_json(const struct task_source *from);

struct json_lines {
    const struct task_source *from;
    size_t at;
    uint32_t line;  /* of the object */
    json_t *object; /* until the next; the caller releases the last one */
};

/* 1: an object; 0: the end; -1: a line that is not an object. Blank lines are skipped. */
int json_lines_next(struct json_lines *l, struct error *e);

enum { JSON_LABEL_BYTES = 40 };

/* A text as it is, a number as it reads back, true and false as 1 and 0; null for anything else. */
const char *json_label(const json_t *value, char buffer[JSON_LABEL_BYTES]);
