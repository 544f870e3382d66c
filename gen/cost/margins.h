/* SPDX-License-Identifier: Apache-2.0 */
/* Margins of the choice among plans: smaller savings are within the price model's error, and the simpler plan wins. No
   other file states one. */
#pragma once

/* Minimum relative saving of a row block, a pass or a whole plan. */
#define LEAST_GAIN 0.02

/* Minimum relative saving for computing the entries of one tile by lines or gathered columns. The price of one tile is less
   exact than the sum over a row block. */
#define LEAST_TILE_GAIN 0.1

/* Minimum relative saving for moving rows of a row block out as global rows, and on GPUs for joining global rows to one item.
   Moving rows of a mask of DAM (n = 128, bf16) for a predicted 2.6 % made the forward pass 6 % slower; useful moves save
   10 to 40 % (star, n = 128 and 512). */
#define LEAST_ROWS_GAIN 0.05

/* Minimum relative saving for cutting global rows. The prediction takes all heads to be alike; where others have less work than
   this one, the gain is lost. */
#define LEAST_CUT_GAIN 0.1

/* Factor of the price of single rows with several ranges, where they compete with tiles. Such rows measured up to
   14 % slower than predicted: random(0.1), n = 512, bf16, AVX2. */
#define SCATTERED_ROW_WEIGHT 1.15

/* Minimum relative saving for another kernel family than an earlier one of the table: rates of different kernels have different
   errors. Those of an H100 miss the times that they are fitted to by 8 % (root mean square). Dense, n = 128, forward: 194 us are predicted for the tiled
   kernel, which was not timed, and 195 us for the resident one, which took 190. */
#define LEAST_FAMILY_GAIN 0.1
