/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the heads with few labels (all but that of words) share. */
#pragma once
#include "model/backend/cpu/train/backward.h"

/* A target during its forward and backward pass. */
struct labels {
    const struct cpu_batch *p;
    const struct backward *b;
    const struct train_target *target;
    const struct target_form *form;
    double target_weight;
    const float *weight, *bias; /* [count, H], [count]: of the linear to the labels */
    uint32_t hidden, count;     /* count: labels */
    const uint32_t *row;        /* of the target's rows in p; null: p has no others */
    struct target_loss *loss;
};

/* Do they go through the pooler, or what all heads share? */
bool labels_are_pooled(const struct labels *n);
/* Rows from this one on whose mean is read: those of its sequence where means are pooled, else itself. */
uint32_t labels_mean_rows(const struct labels *n, uint32_t row);
/* The target's rows through the pooler, to x; from dx, which is overwritten, back to the rows, with the gradients of the
   pooler. */
int labels_pool(const struct labels *n, struct error *e);
int labels_pool_back(const struct labels *n, struct error *e);
/* The head's dropout at a site, in place, of x [rows of the target, H] or of its gradient. */
void labels_drop(const struct labels *n, uint32_t site, float *x);
/* The row in n->p of the target's k-th row, and its last hidden states, in the engine's dtype. */
uint32_t labels_row(const struct labels *n, uint32_t k);
const void *labels_hidden_row(const struct labels *n, uint32_t k);
