/* SPDX-License-Identifier: Apache-2.0 */
#include "model/base/element.h"
#include <math.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name, *torch;
    uint32_t bytes;
} types[ELEMENT_COUNT] = {
    [ELEMENT_F32] = {"F32", "float32", 4},
    [ELEMENT_BF16] = {"BF16", "bfloat16", 2},
    [ELEMENT_F16] = {"F16", "float16", 2},
    [ELEMENT_F64] = {"F64", "float64", 8},
};

const char *element_name(enum element t)
{
    return types[t].name;
}

const char *element_torch(enum element t)
{
    return types[t].torch;
}

uint32_t element_bytes(enum element t)
{
    return types[t].bytes;
}

bool element_parse(const char *name, enum element *ret)
{
    for (int k = 0; k < ELEMENT_COUNT; k++)
        if (!strcasecmp(types[k].name, name)) {
            *ret = (enum element)k;
            return true;
        }
    return false;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31)
        return from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) /* zero or subnormal: mantissa * 2^-24 */
        return from_bits(sign | bits_of((float)mantissa * 0x1p-24f));
    return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

static uint16_t f32_to_f16(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float size = from_bits(bits & 0x7fffffffu);
    if (size != size)
        return sign | 0x7e00;
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-14f) /* adding 0.5 leaves multiples of 2^-24, rounded to even */
        return sign | (uint16_t)(bits_of(size + 0.5f) - bits_of(0.5f));
    uint32_t rest = bits_of(size);
    rest += 0xfff + (rest >> 13 & 1);
    return sign | (uint16_t)((rest >> 13) - (112u << 10));
}

static uint16_t f32_to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void elements_to_f32(enum element from, const void *bytes, uint64_t count, float *ret)
{
    const uint8_t *p = bytes;
    uint16_t half;
    double wide;
    if (from == ELEMENT_F32) {
        memcpy(ret, bytes, count * sizeof *ret);
        return;
    }
    for (uint64_t k = 0; k < count; k++) {
        if (from == ELEMENT_F64) {
            memcpy(&wide, p + 8 * k, sizeof wide);
            ret[k] = (float)wide;
            continue;
        }
        memcpy(&half, p + 2 * k, sizeof half);
        ret[k] = from == ELEMENT_BF16 ? from_bits((uint32_t)half << 16) : f16_to_f32(half);
    }
}

void elements_from_f32(enum element to, const float *values, uint64_t count, void *ret)
{
    uint8_t *p = ret;
    if (to == ELEMENT_F32) {
        memcpy(ret, values, count * sizeof *values);
        return;
    }
    for (uint64_t k = 0; k < count; k++) {
        if (to == ELEMENT_F64) {
            double wide = (double)values[k];
            memcpy(p + 8 * k, &wide, sizeof wide);
            continue;
        }
        uint16_t half = to == ELEMENT_BF16 ? f32_to_bf16(values[k]) : f32_to_f16(values[k]);
        memcpy(p + 2 * k, &half, sizeof half);
    }
}

/* NaN and infinity have an exponent of all ones: the highest bits without the sign. */
uint64_t elements_not_finite(enum element t, const void *bytes, uint64_t count)
{
    const uint8_t *p = bytes;
    uint16_t half, mask = t == ELEMENT_BF16 ? 0x7f80 : 0x7c00;
    uint32_t word;
    double wide;
    for (uint64_t k = 0; k < count; k++) {
        bool bad;
        if (t == ELEMENT_F32) {
            memcpy(&word, p + 4 * k, sizeof word);
            bad = (word & 0x7f800000u) == 0x7f800000u;
        } else if (t == ELEMENT_F64) {
            memcpy(&wide, p + 8 * k, sizeof wide);
            bad = !isfinite((float)wide);
        } else {
            memcpy(&half, p + 2 * k, sizeof half);
            bad = (half & mask) == mask;
        }
        if (bad)
            return k;
    }
    return count;
}
