/* SPDX-License-Identifier: Apache-2.0 */
/* Input and output of maskc run: .npy files. */
#pragma once
#include "masks/base/file.h"
#include "masks/npy.h"
#include "tools/maskc/options.h"
#include "tools/reference/check.h"

/* An array as it lies in its file. */
struct run_array {
    struct file file;
    struct npy npy;
    const char *path;
};

struct run_inputs {
    struct run_array query, key, value, grad, lengths, offsets, samples, bias;
    int32_t *length;  /* [batch], or null */
    uint32_t *sample; /* [batch], or null */
    struct problem p;
    uint64_t tokens; /* rows of the given arrays: packed T, else B N */
};

/* Opens all that the options name and checks it against the kernel. To be finished on failure too. */
int run_inputs_open(const struct options *o, const struct maskc_kernel *k,
                    struct run_inputs *in, struct error *e);
void run_inputs_finish(struct run_inputs *in);

/* Row t of a given array stands at this row of the right-padded tensors of a problem. */
uint64_t *run_inputs_rows(const struct run_inputs *in);
/* Elements in double, right-padded. */
double *run_inputs_tensor(const struct run_inputs *in, const struct run_array *a,
                          const uint64_t *row);
double *run_inputs_bias(const struct run_inputs *in);

/* All that a launch computed, as files in a folder. */
int run_outputs_save(const struct run_inputs *in, const char *folder,
                     const struct problem_data *d, const uint64_t *row, bool diagonals,
                     struct error *e);
