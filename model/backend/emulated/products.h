/* SPDX-License-Identifier: Apache-2.0 */
/* Products of the driver "emulated" (model/backend/gpu/driver.h), by plain loops. */
#pragma once
#include "model/backend/gpu/driver.h"

int emulated_product(const struct gpu *g, struct gpu_stream *s, const struct gpu_product *p,
                     bool *ret_fused, struct error *e);
int emulated_weight_gradient(const struct gpu *g, struct gpu_stream *s,
                             const struct weight_gradient *w, struct error *e);
