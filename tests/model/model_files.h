/* SPDX-License-Identifier: Apache-2.0 */
/* A model's folder as the tests of its readers need it: small, and wrong in one place at a time. What
   cannot be made fails the test. */
#pragma once
#include "model/checkpoint/weights.h"

/* A temporary folder, as a group's setup and teardown. */
int model_begin(void **state);
int model_end(void **state);
extern char model_folder[];
void model_write(const char *name, const void *bytes, size_t size);
void model_write_or_remove(const char *name, const char *text); /* null: no such file */

/* Two layers of 8; `more` is JSON behind the other keys, and counts. */
struct model_config model_make_config(const char *architecture, const char *more);

/* A tensor of the file that is written, to be changed before. */
struct change {
    const char *name;      /* begins with it: this tensor alone; null: all */
    const char *from, *to; /* in the name */
    const char *dtype;
    uint64_t rows; /* another first dimension */
    bool left_out, nan;
};

/* model.safetensors (or `file`) of the tensors that `which` wants: -1 all, 0 even ones, 1 odd ones. */
void model_write_weights(const struct model_config *c, const struct weights *w,
                         const struct change *change, const char *file, int which);

/* Every tensor of a that has data in b, element by element; the tolerance is relative. */
void must_be_equal(const struct weights *a, const struct weights *b, double tolerance);
