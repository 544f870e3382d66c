/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the emulation's blocks, added up for the caller (emulated.h). */
#pragma once
#include "runtime/emulated/launch.h"

/* Where a block is to count what it asks of the banks; null where nobody asked. */
struct emulation_banks *counts_begin(void);
/* A block of this entry has run: takes what it counted, and frees its banks. */
void counts_end(const char *entry, const struct emulation_launch *l);
