/* SPDX-License-Identifier: Apache-2.0 */
/* Between double and the kernels' types, by arithmetic rather than by the compiler's types, which not
   every compiler has. */
#include "tools/reference/check.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* Leaves out the last digits of a double's 53, ties to even; a carry goes on into the exponent. */
static double round_digits(double x, int digits)
{
    uint64_t word, unit = UINT64_C(1) << digits;
    memcpy(&word, &x, sizeof word);
    word += unit / 2 - 1 + (word >> digits & 1);
    word &= ~(unit - 1);
    memcpy(&x, &word, sizeof x);
    return x;
}

/* bits: of the significand, with its hidden one; smallest: normal number. */
static double round_to(double x, int bits, double smallest, double largest)
{
    if (x == 0 || !isfinite(x))
        return x;
    double y;
    if (fabs(x) < smallest) {
        double unit = ldexp(smallest, 1 - bits);
        y = nearbyint(x / unit) * unit; /* ties to even: the default rounding mode */
    } else {
        y = round_digits(x, DBL_MANT_DIG - bits);
    }
    return fabs(y) > largest ? copysign(INFINITY, x) : y;
}

double dtype_round(enum abi_dtype dtype, double x)
{
    switch (dtype) {
    case ABI_BF16:
        return round_to(x, 8, 0x1p-126, 0x1.FEp127);
    case ABI_F16:
        return round_to(x, 11, 0x1p-14, 65504);
    case ABI_TF32:
        return round_to(x, 11, 0x1p-126, 0x1.FFCp127);
    case ABI_F32:
        break;
    }
    return (float)x;
}

double dtype_held(enum abi_dtype dtype, double x)
{
    return dtype_bytes(dtype) == 4 ? (float)x : dtype_round(dtype, x);
}

static uint16_t encode_f16(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double y = fabs(dtype_round(ABI_F16, x));
    if (isnan(y))
        return 0x7e00;
    if (isinf(y))
        return sign | 0x7c00;
    if (y < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)(y * 0x1p24));
    int exponent = ilogb(y);
    return (uint16_t)(sign | (exponent + 15) << 10 | (int)((ldexp(y, -exponent) - 1) * 1024));
}

static double decode_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, digits = bits & 1023;
    double y = exponent == 31  ? (digits ? NAN : INFINITY)
               : exponent == 0 ? digits * 0x1p-24
                               : ldexp(1024 + digits, exponent - 25);
    return bits & 0x8000 ? -y : y;
}

void dtype_encode(enum abi_dtype dtype, double x, void *to)
{
    float f = (float)dtype_held(dtype, x);
    uint16_t half;
    uint32_t word;
    memcpy(&word, &f, 4);
    if (dtype_bytes(dtype) == 4) {
        memcpy(to, &f, 4);
        return;
    }
    half = dtype == ABI_BF16 ? (uint16_t)(word >> 16) : encode_f16(x);
    memcpy(to, &half, 2);
}

double dtype_decode(enum abi_dtype dtype, const void *from)
{
    float f;
    uint16_t half;
    uint32_t word;
    if (dtype_bytes(dtype) == 4) {
        memcpy(&f, from, 4);
        return f;
    }
    memcpy(&half, from, 2);
    if (dtype == ABI_F16)
        return decode_f16(half);
    word = (uint32_t)half << 16;
    memcpy(&f, &word, 4);
    return f;
}
