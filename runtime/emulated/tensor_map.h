/* SPDX-License-Identifier: Apache-2.0 */
/* Content of a `struct tensor_map` (templates/cuda/hopper/args.h) on the emulated device: what cuTensorMapEncodeTiled
   encodes for a GPU. The emulated TMA refuses a map that breaks the driver's rules, so the launch only fills it in:

       struct emulated_tensor_map m = {.magic = EMULATED_TENSOR_MAP, .address = ..., ...};
       memcpy(map->opaque, &m, sizeof m);

   Dimensions are listed innermost first, here (d, head, row, batch). */
#pragma once
#include <stdint.h>

enum { EMULATED_TENSOR_MAP_DIMENSIONS = 4 };

#define EMULATED_TENSOR_MAP 0x50414d5f55544d45u /* "EMTU_MAP" in memory */

struct emulated_tensor_map {
    uint64_t magic;   /* EMULATED_TENSOR_MAP */
    uint64_t address; /* of element (0, 0, 0, 0): a multiple of 16 */
    uint64_t stride
        [EMULATED_TENSOR_MAP_DIMENSIONS]; /* bytes: element_bytes, then multiples of 16 below 2^40 */
    uint32_t extent[EMULATED_TENSOR_MAP_DIMENSIONS]; /* elements, at least 1 */
    uint32_t box
        [EMULATED_TENSOR_MAP_DIMENSIONS]; /* elements, 1 to 256; box[0] * element_bytes is at most `swizzle` */
    uint32_t element_bytes; /* 2 */
    uint32_t swizzle;       /* bytes: 128 */
    uint8_t unused[40];     /* zeros */
};

_Static_assert(sizeof(struct emulated_tensor_map) == 128, "as long as a CUtensorMap");
