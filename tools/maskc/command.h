/* SPDX-License-Identifier: Apache-2.0 */
/* A command of maskc: a row of the table in main.c and a function that gets the parsed options and
   returns the program's exit code. */
#pragma once
#include "masks/base/error.h"
#include "runtime/kernel.h"
#include "tools/maskc/options.h"
#include <jansson.h>

struct command {
    const char *name;
    const char *arguments; /* "MASK", "FILE.mkb", "[MASK|FILE.mkb ...]": for the usage line */
    const char *summary;   /* one line, for the map of the commands */
    const char *details;   /* a paragraph for --help, or null */
    uint64_t options;      /* OPTION_BITs */
    uint32_t min_arguments, max_arguments;
    int (*run)(const struct options *o);
};

extern const struct command commands[]; /* ends with a null name */

int command_show(const struct options *o);
int command_make(const struct options *o);
int command_plan(const struct options *o);
int command_emit(const struct options *o);
int command_compile(const struct options *o);
int command_info(const struct options *o);
int command_verify(const struct options *o);
int command_run(const struct options *o);
int command_bench(const struct options *o);
int command_calibrate(const struct options *o);
int command_cache(const struct options *o);
int command_devices(const struct options *o);

/* Prints "maskc: TEXT" to stderr and returns the exit code of the error's kind. */
int command_fail(const struct error *e);

/* Targets (ARTIFACT_MAX_TARGETS rows in `target`), features and machine as the options say, checked
   against each other; mask and cache are left to the caller. */
int command_request(const struct options *o, const char *default_targets,
                    const struct target **target, struct compile_request *ret, struct error *e);

/* maskc_load with our kind of error. */
int command_load(const char *path, const char *device, struct maskc_kernel **ret,
                 struct error *e);

void kernel_file_print(const struct artifact *a, const char *path, uint64_t size);
void command_print_json(json_t *j); /* prints and lets go of it */
json_t *command_number(double x);   /* null where it is not finite */
bool has_suffix(const char *name, const char *suffix);
