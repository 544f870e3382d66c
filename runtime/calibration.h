/* SPDX-License-Identifier: Apache-2.0 */
/* What `maskc calibrate` measured of this machine, kept as one JSON file for each CPU in the folder of
   the cache. Plans for code that this CPU runs are made with it, unless a row of the table of machines
   is asked for by name. A file is written aside and renamed; one of another CPU is never used. */
#pragma once
#include "gen/cost/machine.h"
#include "masks/base/error.h"
#include <jansson.h>
#include <stdbool.h>

enum { CALIBRATION_ROWS = 8 };
#define CALIBRATED "calibrated" /* the machine to ask for where the table's row will not do */

/* A row of the table as it is on this machine: other figures, "NAME (calibrated)". */
struct calibrated {
    const struct machine *row;
    struct machine machine; /* .name is set by calibration_machine alone */
    char name[32];
};

/* Peaks on one core, as measured by plain loops. 0: it has none. */
struct ceilings {
    double matrix, flops;      /* bf16 tiles, f32 multiply-adds: FLOP/s */
    double exps;               /* exp2 of a polynomial, 1/s */
    double bytes, cache_bytes; /* reading memory, reading the second cache: B/s */
};

struct calibration {
    struct ceilings ceilings;
    struct calibrated row[CALIBRATION_ROWS];
    uint32_t count;
};

/* "CPU model, family and stepping; level": what a calibration belongs to. Caller frees. */
char *calibration_identity(void);
/* Its file; "" where there is no folder for it. Caller frees. */
char *calibration_path(void);

/* *ret is a new calibration, or null where none is stored for this CPU. Fails where there is a file
   that is none: one line that starts with its path. */
int calibration_load(struct calibration **ret, struct error *e);
int calibration_prepare(struct error *e); /* makes the folder: before much is measured for it */
int calibration_save(const struct calibration *c, struct error *e);
json_t *calibration_json(const struct calibration *c); /* as stored, without probes */
void calibration_destroy(struct calibration *c);       /* null is fine */

void calibration_add(struct calibration *c, const struct machine *row,
                     const struct machine *measured);
const struct machine *calibration_machine(const struct calibration *c, const char *row);

/* The machine of a name that a kernel file gives: a row of the table, or that row as it is on this
   machine, where that is known, for "NAME (calibrated)". */
const struct machine *machine_named(const char *name, const struct calibration *c,
                                    struct error *e);

/* The machine that a plan is made for. `asked` is a name of the table or "calibrated"; null, or of
   another kind than the target: the stored one (c may be null) where this CPU runs the target, else
   the target's own row. */
const struct machine *machine_choose(const char *asked, const struct calibration *c,
                                     const struct target *t, const struct features *f,
                                     struct error *e);
