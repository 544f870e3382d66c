/* SPDX-License-Identifier: Apache-2.0 */
/* Internal declarations shared by the training operations. */
#pragma once
#include "model/backend/gpu/train/train.h"

/* Fills the dropout fields of args except `place`. */
void gpu_train_drop_with(const struct op_batch *p, uint32_t site, double probability,
                         struct train_args *a);

/* ---- members of struct ops, in ops_back.c ---- */
int gpu_close_back(struct op_batch *p, const struct op_close *o, float *d, void *d_sum,
                   void *dx, struct error *e);
int gpu_linear_back(struct op_batch *p, const struct op_linear *o,
                    const struct op_linear_back *b, struct error *e);
int gpu_norm_back(struct op_batch *p, const struct op_norm *o, float *d, struct error *e);
int gpu_add(struct op_batch *p, const float *x, float *to, struct error *e);
int gpu_embed_back(struct op_batch *p, float *d, struct error *e);
