/* SPDX-License-Identifier: Apache-2.0 */
/* A problem laid out on a kernel's device: where each tensor lies, and its elements on the host. */
#pragma once
#include "tools/reference/check.h"
#include "tools/reference/guarded.h"

enum { Q, K, V, O, D_O, D_Q, D_K, D_V, TENSORS };

struct tensor {
    int64_t batch, row, head; /* strides in elements */
    int64_t base;             /* of element 0 in its buffer */
    uint32_t buffer;
};

struct trial {
    const struct maskc_kernel *k;
    const struct problem *p;
    bool backward;
    uint32_t threads;
    struct tensor tensor[TENSORS];
    struct guarded buffer[TENSORS], lse, lengths, key_lengths, starts, samples, workspace[2];
    struct guarded bias, d_bias, d_diagonal; /* only with a bias */
    int32_t *first;                          /* [batch + 1]: packed offsets */
};

/* Where each tensor lies, by the problem's layout and the offsets. */
void trial_choose_layout(struct trial *l);
uint64_t trial_tokens(const struct trial *l);          /* rows of the queries */
uint64_t trial_elements(const struct trial *l, int t); /* of a tensor that is not fused */

/* Between the copies on the host and plain tensors in double; what is read is allocated anew. */
void trial_write_tensor(const struct trial *l, int t, const double *from);
void trial_read_tensor(const struct trial *l, int t, double **to);
void trial_read_lse(const struct trial *l, double **to);
