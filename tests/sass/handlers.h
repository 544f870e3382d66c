/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers that opcodes.c names, by the file they are in. Each runs one instruction for the lanes of
   `mask`, which is not empty. */
#pragma once
#include "tests/sass/machine.h"

#define HANDLER(name) run_instruction run_##name;
/* clang-format off */
#define HANDLERS(H)                                                                            \
    /* integer.c */                                                                            \
    H(iadd3) H(iadd_wide) H(viadd) H(imad) H(imad_wide) H(imad_hi) H(lea) H(lop3) H(shf)       \
    H(prmt) H(bmsk) H(imnmx) H(viaddmnmx) H(popc)                                              \
    /* predicate.c */                                                                          \
    H(isetp) H(fsetp) H(fset) H(plop3) H(p2r) H(r2p) H(sel) H(sel_wide) H(fsel)                \
    /* move.c */                                                                               \
    H(nothing) H(mov) H(mov_wide) H(constant) H(special) H(zero) H(first)                      \
    /* real.c */                                                                               \
    H(fadd) H(fmul) H(ffma) H(fmnmx) H(mufu) H(fchk) H(i2f) H(i2f_wide) H(f2i) H(f2i_wide)     \
    H(pack) H(half_to_float) H(half_constants)                                                 \
    /* memory.c, shared.c */                                                                   \
    H(load) H(store) H(load_local) H(store_local) H(load_shared) H(store_shared)               \
    H(load_matrix) H(store_matrix) H(copy) H(copy_commit) H(copy_wait)                         \
    /* collective.c, matrix.c */                                                               \
    H(shuffle) H(vote) H(redux) H(mma_16816) H(mma_1688)                                       \
    /* control.c */                                                                            \
    H(barrier_set) H(barrier_leave) H(trap)                                                    \
    /* hopper/barrier.c, bulk.c, product.c */                                                  \
    H(mbarrier_init) H(mbarrier_invalidate) H(mbarrier_arrive) H(mbarrier_test)                \
    H(named_arrive) H(async_fence) H(registers_down) H(registers_up) H(elect)                  \
    H(tensor_load) H(bulk_load) H(tensor_store) H(bulk_commit)                                 \
    H(product_issue) H(products_fence) H(products_wait)
/* clang-format on */
HANDLERS(HANDLER)
