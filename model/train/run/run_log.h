/* SPDX-License-Identifier: Apache-2.0 */
/* RUN/log.jsonl: one JSON object a line, each written at once, so that a killed run leaves whole lines and at most one
   that was cut. Numbers have 17 digits; what is not finite is null. */
#pragma once
#include "model/objective/objective.h"
#include <stdint.h>

struct run_log {
    int fd; /* below 0: nothing is written */
};

/* Appends; a last line that was cut is removed first. */
int run_log_open(struct run_log *l, const char *run, struct error *e);
void run_log_close(struct run_log *l);

struct log_field {
    const char *name;
    double value;
};
/* {"step":..}; `event` or `eval` and its name come first where kind is not null: {"event":"save",..}. */
int run_log_write(struct run_log *l, const char *kind, const char *name,
                  const struct log_field *field, uint32_t fields, struct error *e);

/* The fields of a line that is put together. */
struct log_line {
    struct log_field field[32];
    uint32_t count;
};
void log_line_add(struct log_line *to, const struct log_field *field, size_t count);
void log_line_add_metrics(struct log_line *to, const struct metric *m, uint32_t count);
