/* SPDX-License-Identifier: Apache-2.0 */
/* Floats. The special functions of a GPU are approximations of about 2 ulp; here they are libm's. */
#include "tests/sass/handlers.h"
#include <fenv.h>
#include <immintrin.h>
#include <math.h>

#define EACH(x, expression)            \
    do {                               \
        FOR_LANES x[l] = (expression); \
    } while (0)

/* A GPU's operations on floats give one NaN. */
static void put_float(struct warp *w, const struct instruction *i, float_lanes x, uint32_t mask)
{
    const lanes is_nan = (lanes)(x != x);
    if (has(i, MODIFIER_FTZ))
        EACH(x, fabsf(x[l]) < 0x1p-126f ? copysignf(0, x[l]) : x[l]);
    put_word(w, &i->op[0], ((lanes)x & ~is_nan) | (is_nan & 0x7fffffff), mask);
}

/* .RP up, .RM down, .RZ towards zero; else to nearest. */
static int rounding(const struct instruction *i)
{
    return has(i, MODIFIER_RP)   ? FE_UPWARD
           : has(i, MODIFIER_RM) ? FE_DOWNWARD
           : has(i, MODIFIER_RZ) ? FE_TOWARDZERO
                                 : FE_TONEAREST;
}

static float_lanes fma_rounded(float_lanes a, float_lanes b, float_lanes c, int mode)
{
    float_lanes x;
    fesetround(mode);
    FOR_LANES
    {
        volatile float r = fmaf(a[l], b[l], c[l]);
        x[l] = r;
    }
    fesetround(FE_TONEAREST);
    return x;
}

/* Through pointers: so it becomes one instruction for eight lanes. */
static void fma_nearest(float_lanes *x, const float_lanes *a, const float_lanes *b,
                        const float_lanes *c)
{
    float *to = (float *)x;
    const float *p = (const float *)a, *q = (const float *)b, *r = (const float *)c;
    FOR_LANES to[l] = fmaf(p[l], q[l], r[l]);
}

void run_fadd(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const float_lanes a = float_of(w, &i->op[1]), b = float_of(w, &i->op[2]);
    const int mode = rounding(i);
    put_float(w, i,
              mode == FE_TONEAREST ? a + b : fma_rounded(a, (float_lanes){0} + 1, b, mode),
              mask);
}

void run_fmul(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const float_lanes a = float_of(w, &i->op[1]), b = float_of(w, &i->op[2]);
    const int mode = rounding(i);
    put_float(w, i, mode == FE_TONEAREST ? a * b : fma_rounded(a, b, (float_lanes){0}, mode),
              mask);
}

void run_ffma(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const float_lanes a = float_of(w, &i->op[1]), b = float_of(w, &i->op[2]),
                      c = float_of(w, &i->op[3]);
    const int mode = rounding(i);
    float_lanes x;
    if (mode == FE_TONEAREST)
        fma_nearest(&x, &a, &b, &c);
    else
        x = fma_rounded(a, b, c, mode);
    put_float(w, i, x, mask);
}

/* a, b, P: the smaller where P holds; of a number and none the number, with .NAN none. */
void run_fmnmx(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const float_lanes a = float_of(w, &i->op[1]), b = float_of(w, &i->op[2]);
    const lanes least = lanes_of_mask(predicate_of(w, &i->op[3]));
    const lanes a_none = (lanes)(a != a), b_none = (lanes)(b != b);
    lanes x = lanes_choose((lanes)(a < b) ^ ~least, (lanes)a, (lanes)b);
    x = lanes_choose(b_none, (lanes)a, lanes_choose(a_none, (lanes)b, x));
    if (has(i, MODIFIER_NAN))
        x = lanes_choose(a_none | b_none, splat(0x7fffffff), x);
    put_float(w, i, (float_lanes)x, mask);
}

/* A denormal's exponent field is 0: the unit takes and gives zero for it. */
static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

void run_mufu(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const float_lanes a = float_of(w, &i->op[1]);
    float_lanes x;
    if (has(i, MODIFIER_EX2))
        EACH(x, flushed(exp2f(flushed(a[l]))));
    else if (has(i, MODIFIER_LG2))
        EACH(x, log2f(flushed(a[l])));
    else if (has(i, MODIFIER_RCP))
        EACH(x, flushed(1 / flushed(a[l])));
    else if (has(i, MODIFIER_RSQ))
        EACH(x, 1 / sqrtf(flushed(a[l])));
    else
        fault(w, "a special function that is not known");
    put_word(w, &i->op[0], (lanes)x, mask);
}

/* Whether a / b needs the slow way: an exponent at an end, or the two far apart. */
void run_fchk(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const float_lanes a = float_of(w, &i->op[1]), b = float_of(w, &i->op[2]);
    uint32_t slow = 0;
    FOR_LANES
    {
        const int p = (int)(((lanes)a)[l] >> 23 & 255), q = (int)(((lanes)b)[l] >> 23 & 255);
        const bool ends = p == 255 || q == 255 || q == 0 || p < 25 || q > 252;
        slow |= (uint32_t)(ends || p - q > 125 || q - p > 124) << l;
    }
    put_predicate(w, &i->op[0], slow, mask);
}

static float round_up(double x, float nearest)
{
    return nearest < x ? nextafterf(nearest, INFINITY) : nearest;
}

void run_i2f(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const bool short_word = has(i, MODIFIER_U16);
    const lanes word = word_of(w, &i->op[1]) >> (i->op[1].half == 2 ? 16 : 0);
    const lanes a = word & (short_word ? 0xffff : ALL_LANES);
    const bool up = has(i, MODIFIER_RP), is_signed = !has(i, MODIFIER_U32) && !short_word;
    float_lanes x;
    FOR_LANES
    {
        const double d = is_signed ? (double)(int32_t)a[l] : (double)a[l];
        x[l] = up ? round_up(d, (float)d) : (float)d;
    }
    put_word(w, &i->op[0], (lanes)x, mask);
}

void run_i2f_wide(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const wide_lanes a = wide_of(w, &i->op[1]);
    float_lanes x;
    FOR_LANES
    {
        const float f = (float)a[l];
        x[l] = has(i, MODIFIER_RP) && f < 0x1p64f && (uint64_t)f < a[l]
                   ? nextafterf(f, INFINITY)
                   : f;
    }
    put_word(w, &i->op[0], (lanes)x, mask);
}

void run_f2i(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const float_lanes a = float_of(w, &i->op[1]);
    lanes x;
    if (!has(i, MODIFIER_U32) || !has(i, MODIFIER_TRUNC))
        fault(w, "a conversion to integers that is not known");
    EACH(x, a[l] > 0 ? a[l] >= 0x1p32f ? UINT32_MAX : (uint32_t)a[l] : 0);
    put_word(w, &i->op[0], x, mask);
}

void run_f2i_wide(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const float_lanes a = float_of(w, &i->op[1]);
    wide_lanes x;
    EACH(x, a[l] > 0 ? a[l] >= 0x1p64f ? UINT64_MAX : (uint64_t)a[l] : 0);
    put_wide(w, &i->op[0], x, mask);
}

/* ---- halves ---- */

static uint32_t bf16_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static uint32_t f16_bits(float x)
{
    return isnan(x) ? 0x7fff : _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}

/* F2FP R, high, low: two floats to halves of a word. */
void run_pack(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const float_lanes high = float_of(w, &i->op[1]), low = float_of(w, &i->op[2]);
    lanes x;
    if (has(i, MODIFIER_BF16))
        EACH(x, bf16_bits(high[l]) << 16 | bf16_bits(low[l]));
    else
        EACH(x, f16_bits(high[l]) << 16 | f16_bits(low[l]));
    put_word(w, &i->op[0], x, mask);
}

/* HADD2.F32 R, -RZ, R.H0_H0. */
void run_half_to_float(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const struct operand *from = &i->op[2];
    const lanes bits = register_at(w, from->index, 0);
    float_lanes x;
    if (i->op[1].index != ZERO_REGISTER || !from->half)
        fault(w, "HADD2 of two halves is not known");
    FOR_LANES
    {
        const float f = _cvtsh_ss((uint16_t)(bits[l] >> 16 * (from->half - 1)));
        x[l] = from->negative ? -f : f;
    }
    put_word(w, &i->op[0], (lanes)x, mask);
}

/* HFMA2 R, -RZ, RZ, high, low: two constants. */
void run_half_constants(struct warp *w, const struct instruction *i, uint32_t mask)
{
    if (i->op[1].index != ZERO_REGISTER || i->op[2].index != ZERO_REGISTER || i->operands < 5)
        fault(w, "HFMA2 of registers is not known");
    uint32_t part[2];
    for (uint32_t k = 0; k < 2; k++) {
        const struct operand *o = &i->op[3 + k];
        const uint32_t special =
            o->value >> 31 << 15 | ((o->value & 0x7fffffffu) == 0x7f800000u ? 0x7c00 : 0x7fff);
        part[k] = o->decimal ? f16_bits((float)o->number) : special;
    }
    put_word(w, &i->op[0], splat(part[0] << 16 | part[1]), mask);
}
