/* SPDX-License-Identifier: Apache-2.0 */
/* Results of `maskc calibrate` on this machine, kept as one JSON file for each CPU, and for each model of
   GPU, in the folder of the cache. Plans for code that this CPU runs, and for the target of a GPU that is
   here, are made with it, unless a row of the table of machines is asked for by name. A file is
   written aside and renamed; one of another CPU or GPU is never used. */
#pragma once
#include "gen/cost/machine.h"
#include "masks/base/error.h"
#include <jansson.h>
#include <stdbool.h>

/* Rows of the CPU's levels, and two for each of some GPUs. */
enum { CALIBRATION_ROWS = 16 };
#define CALIBRATED "calibrated" /* the machine to ask for where the table's row will not do */

/* A row of the table as it is on this machine: other figures, "NAME (calibrated)". */
struct calibrated {
    const struct machine *row;
    const struct target *target; /* of a GPU, whose row others share; null: the CPU's */
    struct machine machine;      /* calibration_add() sets .name */
    char name[32];
};

/* Peaks of one core, measured by plain loops. matrix 0: no unit. */
struct ceilings {
    double matrix, flops;      /* bf16 unit, f32 multiply-adds: FLOP/s */
    double exps;               /* exp2 by a polynomial, 1/s */
    double bytes, cache_bytes; /* reading memory, reading the second cache: B/s */
};

struct calibration {
    struct ceilings ceilings;
    struct calibrated row[CALIBRATION_ROWS];
    uint32_t count;
};

/* Owner of a calibration: the CPU, or the GPU with this number. */
enum { CALIBRATION_CPU = -1 };

/* "CPU model, family and stepping; level", or "GPU model, compute capability; target": what a calibration
   belongs to. Caller frees. */
char *calibration_identity(int whose);
/* Its file; "" where there is no folder for it. Caller frees. */
char *calibration_path(int whose);

/* *ret is a new calibration, or null where none is stored for this CPU. Fails if the file is
   no calibration: one line that starts with its path. */
int calibration_load(struct calibration **ret, struct error *e);
/* Adds what is stored of the GPUs here; *c may be null before, and after. Asks the driver, which takes a
   while: for those who plan for one. Fails as calibration_load, with what could be read added. */
int calibration_load_gpus(struct calibration **c, struct error *e);
int calibration_prepare(struct error *e); /* makes the folder: before much is measured for it */
int calibration_save(const struct calibration *c, int whose, struct error *e);
json_t *calibration_json(const struct calibration *c, int whose); /* as stored, no probes */
void calibration_destroy(struct calibration *c);                  /* null is fine */

/* Sets the machine's workers and processors to those of a GPU; 0 without that GPU. */
void calibration_size(int gpu, struct machine *m);

void calibration_add(struct calibration *c, const struct machine *row,
                     const struct target *target, const struct machine *measured);
/* The row for a target: of a GPU's target its own, of a CPU's any. Null where there is none. */
const struct machine *calibration_machine(const struct calibration *c, const char *row,
                                          const struct target *target);

/* The machine of a name that a kernel file gives for a target: a row of the table, or that row as it is
   on this machine, where that is known, for "NAME (calibrated)". */
const struct machine *machine_named(const char *name, const struct calibration *c,
                                    const struct target *target, struct error *e);

/* The machine that a plan is made for. `asked` is a name of the table or "calibrated"; null, or of
   another kind than the target: the stored one (c may be null) where this CPU runs the target, or a GPU
   here has it for its own, else the target's own row. */
const struct machine *machine_choose(const char *asked, const struct calibration *c,
                                     const struct target *t, const struct kernel_request *f,
                                     struct error *e);
