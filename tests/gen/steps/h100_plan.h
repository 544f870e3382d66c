/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of tests for an H100, in bf16 and with the backward pass. */
#pragma once
#include "gen/plan/plan.h"

extern const struct kernel_family family_cuda_hopper;

/* A new plan for the family, or for the cheapest one where that is null; the test fails where there is none. */
struct plan *h100_plan(const struct mask *m, uint32_t head_dim,
                       const struct kernel_family *family);
