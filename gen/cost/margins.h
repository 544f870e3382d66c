/* SPDX-License-Identifier: Apache-2.0 */
/* Margins of the choice among plans: smaller savings are within the price model's error, and the simpler plan wins. */
#pragma once

/* Least relative saving of a row block, a pass or a whole plan. */
#define LEAST_GAIN 0.02

/* Least relative saving of one tile whose entries lines or gathered columns take: its price is less exact than the sum
   of a row block's. */
#define LEAST_TILE_GAIN 0.1

/* Factor of the price of single rows with several ranges, where they compete with tiles. Such rows measured up to
   14 % slower than predicted: random(0.1), n = 512, bf16, AVX2. */
#define SCATTERED_ROW_WEIGHT 1.15

/* Least relative saving of another kernel family than one before it in the table: rates of different kernels err apart. Forward,
   fixed, n = 128, D = 128, sm_90a: 274 us are predicted for the tiled kernel and 286 for the resident one, which issues 3 % fewer
   instructions. */
#define LEAST_FAMILY_GAIN 0.1
