/* SPDX-License-Identifier: Apache-2.0 */
/* RUN/log.jsonl: one JSON object a line, each written at once, so that a killed run leaves whole lines and at most one
   that was cut. Numbers have 17 digits; what is not finite is null. */
#pragma once
#include "masks/base/error.h"
#include <stdint.h>

struct run_log {
    int fd;
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
