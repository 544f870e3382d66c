/* SPDX-License-Identifier: Apache-2.0 */
/* The device "emulated", which only libmaskc has. */
#pragma once
#include "runtime/device/device.h"

extern const struct device device_emulated;

/* Seed of the emulation's fiber order, 0: in order; also $MASKC_EMULATION_SEED. */
void emulated_set_seed(uint64_t seed);

/* Makes launches on the device "emulated" add their requests to the banks of shared memory to *ret,
   which is cleared first (struct emulation_banks in runtime/emulated/launch.h). Null: stops it.
   Sites have no particular order. For one thread at a time. */
struct emulation_banks;
void emulated_count_banks(struct emulation_banks *ret);
/* The same for what each entry has the machine do: products and copies. An entry beyond the first
   EMULATION_MAX_ENTRIES is left out. */
struct emulation_work;
void emulated_count_work(struct emulation_work *ret);
