/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's tensors, four elements at a time, as float. */
#ifndef MASKC_CUDA_COMMON_FOUR_H
#define MASKC_CUDA_COMMON_FOUR_H
#include "cuda/common/matrix.h"
#include "cuda/common/work_item.h"

DEVICE struct f4 zero4(void)
{
    struct f4 x;
    x.x = x.y = x.z = x.w = 0;
    return x;
}

DEVICE struct f4 tf32_of4(struct f4 x)
{
    x.x = float_of(tf32_of(x.x));
    x.y = float_of(tf32_of(x.y));
    x.z = float_of(tf32_of(x.z));
    x.w = float_of(tf32_of(x.w));
    return x;
}

/* Loads four elements. tf32 is rounded here, for tiles and lines alike, so that both passes compute the same
   scores whatever pieces their plans have. */
DEVICE struct f4 load4(const struct view *v, u32 row, u32 d)
{
    const u8 *at = v->data + row * v->row + d * ELEMENT;
    if (TF32)
        return tf32_of4(*(const struct f4 *)at);
    if (FLOATS)
        return *(const struct f4 *)at;
    u32 low = ((const u32 *)at)[0], high = ((const u32 *)at)[1];
    struct f4 x;
    x.x = half_low(low);
    x.y = half_high(low);
    x.z = half_low(high);
    x.w = half_high(high);
    return x;
}

DEVICE void store4(const struct view *v, u32 row, u32 d, struct f4 x)
{
    u8 *at = v->data + row * v->row + d * ELEMENT;
    if (FLOATS) {
        *(struct f4 *)at = x;
        return;
    }
    ((u32 *)at)[0] = half_pack(x.x, x.y);
    ((u32 *)at)[1] = half_pack(x.z, x.w);
}

DEVICE struct f4 scaled4(struct f4 x, float by)
{
    x.x *= by;
    x.y *= by;
    x.z *= by;
    x.w *= by;
    return x;
}

DEVICE struct f4 fma4(struct f4 sum, struct f4 x, float by)
{
    sum.x += by * x.x;
    sum.y += by * x.y;
    sum.z += by * x.z;
    sum.w += by * x.w;
    return sum;
}

DEVICE float dot4(float sum, struct f4 a, struct f4 b)
{
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    sum += a.w * b.w;
    return sum;
}

#endif
