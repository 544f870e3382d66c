/* SPDX-License-Identifier: Apache-2.0 */
/* What CPU targets add to emission: their launch record, and the sizes of pack and scratch space
   that templates/cpu/layout.h and strip.h check against their own at compile time. */
#pragma once
#include "gen/emit/emit.h"

/* The file to compile, with the name that #include gives it. */
#define CPU_ENTRY_FILE "cpu/attention.c"

enum { CPU_CHUNK_COLS = 512 };

void cpu_launch(const struct target *t, const struct features *f, struct launch_record *ret);
