/* SPDX-License-Identifier: Apache-2.0 */
/* Options for learning a mask together with the model (SparseBERT, Shi et al. 2021). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum learn_kind {
    LEARN_NOTHING,
    LEARN_P,         /* P = sigmoid(alpha) itself, in the scores (Eq. 3, 5, 6) */
    LEARN_ENTRIES,   /* DAM_u: an alpha for each entry, sampled */
    LEARN_DISTANCES, /* DAM_s: an alpha for each distance |i - j|, sampled */
    LEARN_KINDS
};
extern const char
    *const learn_kind_names[LEARN_KINDS]; /* "p", "dam-u", "dam-s"; the first is null */

struct learn_options {
    enum learn_kind kind;
    bool code;       /* DAM_s as SparseBERT's code has it: two logits a distance, no border */
    bool per_layer;  /* each layer has an alpha of its own */
    bool symmetric;  /* DAM_u: alpha_ij = alpha_ji; P always is */
    bool relaxed;    /* samples as they are drawn, between 0 and 1 */
    bool leaks;      /* an off key's bias is -scale and not -inf */
    bool two_levels; /* weights and alpha learn from different sequences of each batch */
    double lambda;   /* of the penalty, lambda * the sum of M (or P) */
    double tau, tau_end; /* temperature of the first and of the last step */
    double scale;        /* c of Eq. 6 */
    double rate;         /* of alpha, at its peak */
    uint64_t settle;     /* the mask is fixed for so many steps, the last ones */
    double snap;    /* to the snap of P at this share of dense's time; 0: to what is above 0 */
    bool threshold; /* in place of the snap to the largest P of each head, within that share */
    const char *
        alpha; /* what alpha begins with: a run's folder, or its file; null: small random numbers */
    uint32_t snap_threads; /* that its time is predicted for: those that the run began with */
};
