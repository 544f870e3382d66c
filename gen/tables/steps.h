/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of steps of one pass, as templates/abi.h defines them: made from a plan's items by gen/steps, stored in
   kernel files, read by kernels of cuda_hopper. Without groups where the kernels of a pass read items. */
#pragma once
#include "templates/abi.h"
#include <stdint.h>

struct plan_steps {
    struct abi_group *groups;
    struct abi_step *steps;
    struct abi_work *work; /* `item` is a group */
    uint64_t n_groups, n_steps, n_work, groups_capacity, steps_capacity;
    uint32_t *group_first;      /* [mask patterns + 1]: groups of pattern p */
    uint64_t (*layer_work)[2];  /* [layers]: first and count in `work` */
    uint32_t warpgroups, slots; /* row blocks of a group and slots of a step, at most */
};
