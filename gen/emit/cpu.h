/* SPDX-License-Identifier: Apache-2.0 */
/* What CPU targets add to emission: their launch record, and the sizes of pack and scratch space
   (templates/cpu/sizes.h). */
#pragma once
#include "gen/emit/emit.h"

/* The file to compile, with the name that #include gives it. */
#define CPU_ENTRY_FILE "cpu/attention.c"

/* Score columns that the templates take at a time: with a matrix unit as many as the first-level
   cache holds, else enough that what each chunk costs is not seen. */
uint32_t cpu_chunk_cols(const struct target *t, const struct kernel_config *c);

/* Groups of gathered columns that a matrix unit's kernel keeps. */
uint32_t cpu_gathers_kept(const struct kernel_config *c);

void cpu_launch(const struct target *t, const struct kernel_config *c,
                struct launch_record *ret);
