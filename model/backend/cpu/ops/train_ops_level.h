/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of train_ops.h at one level of x86-64. Each file of them is compiled for each level;
   TRAIN_LEVEL is its name, and ends the names of what files share. */
#pragma once
#include "model/backend/cpu/ops/bf16_rows.h"
#include "model/backend/cpu/ops/train_ops.h"

#define LEVEL_JOIN(name, level) name##_##level
#define LEVEL_NAME(name, level) LEVEL_JOIN(name, level)
#define AT_LEVEL(name)          LEVEL_NAME(name, TRAIN_LEVEL)

/* f32 numbers between bf16 arrays and f32 functions, a part at a time. */
enum { PART = 128 };

static inline uint32_t part_of(uint64_t size, uint64_t at)
{
    return size - at < PART ? (uint32_t)(size - at) : PART;
}

#define train_drop_f32  AT_LEVEL(train_drop_f32)
#define train_drop_bf16 AT_LEVEL(train_drop_bf16)
void train_drop_f32(const struct row_dropout *d, const struct row_place *row, uint32_t rows,
                    uint32_t size, const float *x, float *y);
void train_drop_bf16(const struct row_dropout *d, const struct row_place *row, uint32_t rows,
                     uint32_t size, const float *x, uint16_t *y);

#define train_norm_f32       AT_LEVEL(train_norm_f32)
#define train_norm_bf16      AT_LEVEL(train_norm_bf16)
#define train_norm_back_f32  AT_LEVEL(train_norm_back_f32)
#define train_norm_back_bf16 AT_LEVEL(train_norm_back_bf16)
void train_norm_f32(const struct norm *n, uint32_t rows, float *x, const float *residual,
                    float *normalised, float *inverse, float *y);
void train_norm_bf16(const struct norm *n, uint32_t rows, float *x, const uint16_t *residual,
                     uint16_t *normalised, float *inverse, uint16_t *y);
void train_norm_back_f32(const struct norm *n, uint32_t rows, const float *normalised,
                         const float *inverse, const float *dy, float *dx, float *gain_sum,
                         float *shift_sum);
void train_norm_back_bf16(const struct norm *n, uint32_t rows, const uint16_t *normalised,
                          const float *inverse, const float *dy, float *dx, float *gain_sum,
                          float *shift_sum);

#define train_activate_f32       AT_LEVEL(train_activate_f32)
#define train_activate_bf16      AT_LEVEL(train_activate_bf16)
#define train_activate_back_f32  AT_LEVEL(train_activate_back_f32)
#define train_activate_back_bf16 AT_LEVEL(train_activate_back_bf16)
#define train_reactivate_bf16    AT_LEVEL(train_reactivate_bf16)
void train_activate_f32(enum after a, uint64_t size, const float *x, float *y);
void train_activate_bf16(enum after a, uint64_t size, const float *x, uint16_t *kept,
                         uint16_t *y);
void train_activate_back_f32(enum after a, uint64_t size, const float *x, const float *dy,
                             float *dx);
void train_activate_back_bf16(enum after a, uint64_t size, const uint16_t *x, const float *dy,
                              uint16_t *dx);
void train_reactivate_bf16(enum after a, uint64_t size, const uint16_t *x, uint16_t *y);

#define train_cross_entropy_f32  AT_LEVEL(train_cross_entropy_f32)
#define train_cross_entropy_bf16 AT_LEVEL(train_cross_entropy_bf16)
double train_cross_entropy_f32(uint32_t size, const float *logits, uint32_t label, float weight,
                               float *d_logits, int *ret_right);
double train_cross_entropy_bf16(uint32_t size, const float *logits, uint32_t label,
                                float weight, uint16_t *d_logits, int *ret_right);
