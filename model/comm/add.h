/* SPDX-License-Identifier: Apache-2.0 */
/* to[k] += from[k] for `count` numbers of each type that ranks sum. */
#pragma once
#include <stdint.h>

#define COMM_DEFINE_ADD(name, type)                                     \
    static inline void name(void *to, const void *from, uint64_t count) \
    {                                                                   \
        type *restrict x = to;                                          \
        const type *restrict y = from;                                  \
        for (uint64_t k = 0; k < count; k++)                            \
            x[k] += y[k];                                               \
    }
COMM_DEFINE_ADD(comm_add_f32, float)
COMM_DEFINE_ADD(comm_add_f64, double)
COMM_DEFINE_ADD(comm_add_u64, uint64_t)
#undef COMM_DEFINE_ADD
