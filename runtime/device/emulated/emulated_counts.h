/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks of the emulation counted, added up for who asked (emulated.h). */
#pragma once
#include "runtime/emulated/launch.h"

/* Where a block is to count what it asks of the banks; null where nobody asked. */
struct emulation_banks *counts_begin(void);
/* A block of this entry has run: takes what it counted, and frees its banks. */
void counts_end(const char *entry, const struct emulation_launch *l);
