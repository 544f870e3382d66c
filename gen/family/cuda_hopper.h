/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of sm_90a by wgmma and TMA: the shapes that each pass has. */
#pragma once
#include "gen/family/family.h"

/* The shapes of a pass that take the head dimension: 1 at least where the family applies. */
uint32_t hopper_shapes(const struct kernel_request *r, enum machine_pass pass,
                       const struct step_shape *ret[STEP_SHAPES_MOST]);
/* The one that the config names. */
const struct step_shape *hopper_shape(const struct kernel_config *c, enum machine_pass pass);
/* Bytes of shared memory that a block of it asks for. */
uint32_t hopper_shared_bytes(const struct step_shape *s, enum machine_pass pass,
                             uint32_t head_dim);
