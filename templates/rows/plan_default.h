/* SPDX-License-Identifier: Apache-2.0 */
/* The plan header of the row kernels, written by hand for one case. */
enum {
    HIDDEN = 384,
    DTYPE = ABI_BF16,
};
