/* SPDX-License-Identifier: Apache-2.0 */
/* A fault of ptxas in machine code: it gives registers of a first operand that stays in them through a loop to others. */
#pragma once
#include "tests/sass/machine.h"

/* -1 with a line in `why` where HGMMA may read, in one register, what LDSM loaded or what something else wrote. */
int rows_check(const struct program *p, char *why, size_t capacity);
