/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of x86-64 that the row functions (encoder_ops.h, train_ops.h) are compiled for, in ascending order. */
#pragma once
#include <stdbool.h>

enum row_level { ROW_V2, ROW_V3, ROW_V4, ROW_V4_BF16, ROW_LEVELS };

/* True if this process may run the level: it has the instructions, and MASKC_MAX_CPU allows them. */
bool row_level_runs(enum row_level l);
enum row_level row_level_best(void);
