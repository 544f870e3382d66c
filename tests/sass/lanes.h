/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 32 lanes, one a thread of a warp. */
#pragma once
#include <stdint.h>
#include <string.h>

typedef uint32_t lanes __attribute__((vector_size(128)));
typedef int32_t signed_lanes __attribute__((vector_size(128)));
typedef float float_lanes __attribute__((vector_size(128)));
typedef uint64_t wide_lanes __attribute__((vector_size(256)));
typedef int64_t signed_wide_lanes __attribute__((vector_size(256)));

/* Lane by lane: a vector's element at a variable place is slow to reach. */
union each {
    lanes all;
    uint32_t lane[32];
    float real[32];
};

#define ALL_LANES 0xffffffffu
#define FOR_LANES for (uint32_t l = 0; l < 32; l++)

static const lanes LANE = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                           16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static inline lanes splat(uint32_t x)
{
    return (lanes){0} + x;
}

static inline wide_lanes widen(lanes x)
{
    return __builtin_convertvector(x, wide_lanes);
}

static inline lanes narrow(wide_lanes x)
{
    return __builtin_convertvector(x, lanes);
}

static inline wide_lanes join(lanes low, lanes high)
{
    return widen(low) | widen(high) << 32;
}

/* All ones where the mask has a bit. */
static inline lanes lanes_of_mask(uint32_t mask)
{
    return (lanes)((splat(mask) >> LANE & 1) != 0);
}

static inline lanes lanes_choose(lanes where, lanes x, lanes otherwise)
{
    return (x & where) | (otherwise & ~where);
}

/* A bit for each lane that is not zero. */
static inline uint32_t mask_of(lanes x)
{
    const lanes bits = ((lanes)(x != 0) & 1) << LANE;
    uint32_t mask = 0;
    FOR_LANES mask |= bits[l];
    return mask;
}

static inline uint32_t first_lane(uint32_t mask)
{
    return (uint32_t)__builtin_ctz(mask);
}
