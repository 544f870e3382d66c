/* SPDX-License-Identifier: Apache-2.0 */
/* Attention kernels for the mask of a model's encoder. */
#pragma once
#include "masks/importance.h"
#include "runtime/maskc.h"

struct encoder_transform {
    bool sparsegen;
    float lambda; /* sparsegen's */
};
/* "softmax" or "sparsegen=LAMBDA"; null: softmax. */
int encoder_transform_parse(const char *text, struct encoder_transform *ret, struct error *e);

struct encoder_attention {
    const struct mask *mask; /* [layers or 1][heads] */
    enum maskc_dtype dtype;
    uint32_t head_dim;
    struct encoder_transform transform;
    const char *target;     /* that it is compiled for */
    const char *device;     /* that it is loaded on, as maskc_load takes it */
    bool text_only;         /* the device needs no binary */
    bool backward, dropout; /* what the kernel can do beside the forward pass */
    bool bias; /* scores get an array X beside the mask, and the backward pass gives dX */
    void (*progress)(const char *step); /* null: nobody */
    const uint8_t *bytes; /* of a kernel file that was made for all this; null: none */
    uint64_t size;
};
/* Compiled, or from maskc's cache; planned by this machine's stored calibration unless it trains. Freed by maskc_kernel_destroy. */
int encoder_attention_load(const struct encoder_attention *a, struct maskc_kernel **ret,
                           struct error *e);

/* The mask that keeps the most of an importance within a share of dense's predicted time of a training step's
   attention (gen/snap), for kernels as `a` has them. */
struct encoder_snap {
    const struct importance *importance;
    double share;
    bool
        threshold; /* the largest values of each head, the same part of each, and no other mask */
    uint32_t batch, threads;
};
struct encoder_snapped {
    struct mask *mask;                 /* the caller's */
    double share, retained, predicted; /* predicted: seconds of all layers */
};
int encoder_snap(const struct encoder_attention *a, const struct encoder_snap *s,
                 struct encoder_snapped *ret, struct error *e);
/* Seconds that attention under a mask is predicted to take, of all the mask's layers, for kernels as `a` has them: forward
   and, where `a` has it, backward. By the prices that snap goes by. */
int encoder_predict(const struct encoder_attention *a, const struct mask *m, uint32_t batch,
                    uint32_t threads, double *ret, struct error *e);
