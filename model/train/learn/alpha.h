/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a learned mask. A unit is one entry or one distance |i - j|. It has P = sigmoid(logit): the probability
   that it is on or, for kind `p`, the value that is used. The logit is alpha itself or, as in SparseBERT's code, the
   first of two logits minus the second. */
#pragma once
#include "masks/base/error.h"
#include "model/checkpoint/config.h"
#include "model/train/learn/learn_options.h"

struct alpha_shape {
    enum learn_kind kind;
    uint32_t layers, heads, n; /* layers: 1 where all share the mask */
    bool per_layer;            /* the first dimension is layers, even if 1 */
    bool distances;            /* a unit is a distance, else an entry */
    bool border;    /* distances of the interior; the first and last row and column are on */
    bool pairs;     /* two logits a unit */
    bool symmetric; /* the entries (i, j) and (j, i) are one unit, which is stored twice */
};

/* Shape for the model's positions. DAM_s with a border needs at least three. */
int alpha_shape_of(const struct learn_options *o, const struct model_config *c,
                   struct alpha_shape *ret, struct error *e);
uint64_t alpha_head_units(const struct alpha_shape *s); /* n n, n - 2 or n */
uint64_t alpha_units(const struct alpha_shape *s);      /* of all layers and heads */
uint64_t alpha_count(const struct alpha_shape *s);      /* numbers that are stored */
/* The dimensions, without layers where they share: [H,n,n], [H,n-2] or [H,n,2]. Returns the rank. */
uint32_t alpha_dimensions(const struct alpha_shape *s, uint64_t ret[4]);
/* The same of one number a unit: [H,n,n], [H,n-2] or [H,n]. */
uint32_t alpha_unit_dimensions(const struct alpha_shape *s, uint64_t ret[4]);

/* Normal draws of deviation 1e-3, a function of the seed. */
void alpha_initialise(const struct alpha_shape *s, uint64_t seed, float *ret);
static inline float alpha_logit(const struct alpha_shape *s, const float *alpha, uint64_t unit)
{
    return s->pairs ? alpha[2 * unit] - alpha[2 * unit + 1] : alpha[unit];
}
/* The unit of entry (i, j) among a head's; -1: the border, which is always on. */
int64_t alpha_unit_at(const struct alpha_shape *s, uint32_t i, uint32_t j);

struct mask;
/* The mask without noise: what has a logit above 0, and the border. */
struct mask *alpha_mask(const struct alpha_shape *s, const float *alpha);
/* A file with the tensor "alpha", whole or not at all. */
int alpha_write(const char *path, const struct alpha_shape *s, const float *alpha,
                struct error *e);
/* Reads alpha from a file of alpha_write(), or from alpha.safetensors of a folder. Fails, with *ret untouched, if the shape differs
   or a value is not finite. */
int alpha_read(const char *path, const struct alpha_shape *s, float *ret, struct error *e);
