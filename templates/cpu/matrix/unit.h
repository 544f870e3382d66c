/* SPDX-License-Identifier: Apache-2.0 */
/* The unit that does a kernel's dense work on bf16 where there is one (MATRIX): the tiles of AMX, or
   the dot products of AVX-512 (DOTS). */
#ifndef MASKC_CPU_MATRIX_UNIT_H
#define MASKC_CPU_MATRIX_UNIT_H
#include "cpu/vector.h"

#if DOTS
#include "cpu/matrix/dots.h"
#elif MATRIX
#include "cpu/matrix/amx.h"
#else

INLINE void matrix_begin(void)
{
}

INLINE void matrix_end(void)
{
}

#endif
#if MATRIX
#include "cpu/matrix/bf16.h"
#endif
#endif
