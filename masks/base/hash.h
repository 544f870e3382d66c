/* SPDX-License-Identifier: Apache-2.0 */
/* xxhash, inlined: libmaskc-runtime has no other library than libc and OpenMP. */
#pragma once
#define XXH_INLINE_ALL
#include <xxhash.h>
