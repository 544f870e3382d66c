/* SPDX-License-Identifier: Apache-2.0 */
/* What the two families of a CPU share. templates/cpu/layout.h and row_block.h check the sizes of pack and scratch
   space against their own at compile time. */
#pragma once
#include "gen/family/family.h"

uint32_t cpu_can(const struct kernel_request *r);
void cpu_launch(const struct target *t, const struct kernel_config *c, enum family_pass pass,
                struct launch_record *ret);
void cpu_numbers(const struct target *t, const struct kernel_config *c, struct text *out);
