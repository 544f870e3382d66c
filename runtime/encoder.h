/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's encoder takes from the compiler: attention for its mask, and the encoder ops (embeddings,
   LayerNorm, what its matrix products leave to do) as code for a GPU or as text for the emulation. */
#pragma once
#include "masks/importance.h"
#include "runtime/maskc.h"
#include "templates/abi.h"
#include "templates/encoder_ops/args.h"

/* ---- attention ---- */

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

/* ---- encoder ops ---- */

enum encoder_op {
    ENCODER_OP_EMBED,
    ENCODER_OP_NORM,
    ENCODER_OP_FINISH,
    ENCODER_OP_GATHER,
    ENCODER_OP_MEAN,
    ENCODER_OPS
};
extern const char *const encoder_op_entries[ENCODER_OPS]; /* their kernels' names */

struct encoder_ops_shape {
    enum maskc_dtype dtype; /* MASKC_F32 or MASKC_BF16 */
    uint32_t hidden;        /* length of a row, 1 or more */
};
/* Machine code for that GPU, compiled or from maskc's cache; a zero follows, as it may be text. The caller
   frees it. Null with *e set. */
uint8_t *encoder_ops_image(const struct encoder_ops_shape *s, int ordinal, struct error *e);
/* Their CUDA text in one piece, as emulated_open takes it. The caller frees it. */
char *encoder_ops_text(const struct encoder_ops_shape *s);
