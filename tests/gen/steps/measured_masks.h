/* SPDX-License-Identifier: Apache-2.0 */
/* Masks that prototypes of cuda_hopper were timed with: a mask of 12 equal heads from a formula that says which query sees
   which key. */
#pragma once
#include "masks/mask.h"
#include "templates/abi.h"

struct mask *measured_mask(u32 n, bool (*has)(u32 i, u32 j));

bool is_dense(u32 i, u32 j);
bool is_causal(u32 i, u32 j);
bool is_window_256(u32 i, u32 j);
bool is_blocks_256(u32 i, u32 j);
bool is_window_64(u32 i, u32 j);  /* and two columns */
bool is_longformer(u32 i, u32 j); /* and two rows */
bool is_scattered(u32 i, u32 j); /* one in ten tiles of 64 x 32, half of them under a pattern */
bool is_gathered(u32 i, u32 j);  /* scattered columns */
bool in_window(u32 i, u32 j, u32 width);
