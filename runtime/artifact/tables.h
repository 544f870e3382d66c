/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the artifact: which tensors a plan's direction becomes, stated once for the writer and the
   reader; the checks that follow the reading; the checksum. */
#pragma once
#include "masks/base/datum.h"
#include "masks/safetensors.h"
#include "runtime/artifact/artifact.h"

enum { PLAN_TABLES = 12, STEP_TABLES = 5, CHECKSUM_DIGITS = 32 };

/* Counts that plan_pass does not hold itself: they follow from the mask. */
struct plan_extent {
    uint64_t item_first, layer_work;
};

/* One table as a tensor: `count` rows of `columns` numbers. `data` is the address of a pointer of
   the table's own type: it is read and written by memcpy. */
struct plan_table {
    const char *name, *dtype;
    uint32_t columns;
    void *data;
    uint64_t *count;
};

void plan_tables(struct plan_pass *p, struct plan_extent *x, uint32_t block_rows,
                 struct plan_table ret[PLAN_TABLES]);

/* The tables of steps of a pass; all are empty where its kernels read items. */
void step_tables(struct plan_steps *t, struct plan_extent *x,
                 struct plan_table ret[STEP_TABLES]);

/* Every index of every table stays inside what it points into, the sums agree, and each of the first `rows` rows has one
   owner. `where` names the file and the direction in messages. */
int pass_check(const struct plan_pass *p, const struct mask *m, uint32_t rows,
               uint32_t block_rows, const char *where, struct error *e);

/* The same for the steps of a pass, which `p` holds the items of and which pass_check() has passed: indices, columns and
   live bits are inside of the mask, groups have each item of a mask once, and the work of a layer has each group once. */
int steps_check(const struct plan_steps *t, const struct plan_pass *p, const struct mask *m,
                const char *where, struct error *e);

/* Each item may take the kernel that is named for it. Kernels are a target's: so is this check, of a plan that
   pass_check() has passed. */
int pass_check_kernels(const struct plan_pass *p, const struct item_kernels *kernels,
                       const char *where, struct error *e);

/* Where a reader stands, for messages. */
struct place {
    const char *where;
    struct error *e;
};

/* The structured metadata values. */
extern const char *const over_names[], *const transform_names[], *const arguments_names[];
int kernel_request_read(const struct datum *j, struct kernel_request *ret,
                        const struct place *at);
/* `features` decide whether there must be a backward pass. Fills all but code and source. */
int target_read(const struct datum *j, const struct kernel_request *f,
                struct artifact_target *ret, const struct place *at);

/* The tensor of a target's image: "sm_80/code", "sm_80/code1" .. */
enum { IMAGE_NAME_BYTES = 48 };
void image_name(const struct artifact_target *t, uint32_t index, char ret[IMAGE_NAME_BYTES]);

/* Where the checksum's digits stand in a file's header, or null; and the digits that should stand
   there, over all bytes with those digits taken as zeros. */
uint8_t *checksum_find(const uint8_t *bytes, uint64_t size);
void checksum_compute(const uint8_t *bytes, uint64_t size, const uint8_t *digits,
                      char ret[CHECKSUM_DIGITS + 1]);

/* ---- reading ---- */

struct reader {
    const struct safetensors *file;
    uint32_t taken; /* tensors used so far: at the end all of them */
    const char *path;
    struct error *e;
};

/* A tensor [rows, columns], or [rows] for columns 0, of any number of rows; a missing one has none. `ret` is
   the address of a pointer (of any type), which is null for a missing tensor. */
int artifact_take(struct reader *r, const char *name, const char *dtype, uint64_t columns,
                  void *ret, uint64_t *ret_rows);
struct datum *artifact_take_json(struct reader *r, const char *key); /* a new value, or null */
struct mask *artifact_take_mask(struct reader *r);                   /* a new mask, or null */
/* The length of a metadata list of 1 .. ARTIFACT_MAX_TARGETS entries; other lengths are an error. */
int artifact_count_list(struct reader *r, const struct datum *list, const char *what,
                        uint32_t *ret);
int artifact_read_plans(struct reader *r, struct artifact *a);
