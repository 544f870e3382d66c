/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of maskc: rows of the table in main.c, functions that get the parsed options and return the
   program's exit code; and what they share. */
#pragma once
#include "masks/base/error.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/pipeline.h"
#include "tools/maskc/options.h"
#include <jansson.h>

int command_gallery(const struct options *o);
int command_show(const struct options *o);
int command_order(const struct options *o);
int command_make(const struct options *o);
int command_plan(const struct options *o);
int command_snap(const struct options *o);
int command_emit(const struct options *o);
int command_compile(const struct options *o);
int command_info(const struct options *o);
int command_verify(const struct options *o);
int command_run(const struct options *o);
int command_bench(const struct options *o);
int command_calibrate(const struct options *o);
int command_cache(const struct options *o);
int command_devices(const struct options *o);
int command_support(const struct options *o);

/* Prints "maskc: TEXT" to stderr and returns the exit code of the error's kind. */
int command_fail(const struct error *e);

/* Prints "maskc: TEXT" to stderr. */
void command_note(const char *text);

/* Refuses --head beside --json. */
int command_check_head(const struct options *o, struct error *e);

/* Refuses a --layer that the kernel file does not have. */
int command_check_layer(const struct options *o, const struct artifact *a, const char *path,
                        struct error *e);

/* Targets (ARTIFACT_MAX_TARGETS rows in `target`), features and machine as the options say, checked
   against each other; mask and cache are left to the caller. */
int command_request(const struct options *o, const char *default_targets,
                    const struct target **target, struct compile_request *ret, struct error *e);

/* The same, for commands of one target, the first; "cuda" may stand for several. */
int command_one_target(const struct options *o, const char *default_target,
                       const struct target **target, struct compile_request *ret,
                       struct error *e);

/* Plans of --measured. Null without the option, or after a warning if the file cannot be used. Caller finishes it. */
const struct measured_plans *command_measured(const struct options *o,
                                              struct measured_plans *ret);

/* maskc_load with our kind of error. */
int command_load(const char *path, const char *device, struct maskc_kernel **ret,
                 struct error *e);

void kernel_file_print(const struct artifact *a, const char *path, uint64_t size);
/* A mask into a file, by its suffix: .mask (where it can be stated exactly), .npy, .safetensors. */
int command_write_mask(const struct mask *m, const char *path, struct error *e);
uint32_t command_threads(const struct options *o); /* --threads, else those of a launch */
enum { COMMAND_HEADS = 12 };                       /* of a mask with one, in plans */
void command_print_json(json_t *j);                /* prints and lets go of it */
json_t *command_number(double x);                  /* null where it is not finite */
