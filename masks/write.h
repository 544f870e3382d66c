/* SPDX-License-Identifier: Apache-2.0 */
/* A mask as dense bytes in a file: .npy and .safetensors ([n,n], [H,n,n] or [L,H,n,n] booleans;
   the smallest rank that holds it). The .mask writer is masks/analysis/state.h: it needs analysis. */
#pragma once
#include "masks/mask.h"

int mask_write_npy(const struct mask *m, const char *path, struct error *e);
int mask_write_safetensors(const struct mask *m, const char *path, struct error *e);
