/* SPDX-License-Identifier: Apache-2.0 */
/* Random masks for the planner's tests: unions of the structures that lowerings look for, with
   empty rows and noise, over several heads and layers that share patterns. */
#pragma once
#include "masks/mask.h"

struct random {
    uint64_t state;
};

uint32_t random_below(struct random *r, uint32_t limit);
struct pattern *random_pattern(struct random *r, uint32_t n);
struct mask *random_mask(struct random *r);
