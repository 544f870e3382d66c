/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic and bits of 32-bit words and of register pairs. */
#include "tests/sass/handlers.h"

static const struct operand *source(const struct instruction *i, uint32_t k)
{
    return &i->op[1 + i->outputs + k];
}

/* Word to be summed with a carry: -x is ~x + 1, whose carry counts. */
static wide_lanes addend(const struct warp *w, const struct operand *o)
{
    struct operand plain = *o;
    plain.negative = false;
    const lanes x = word_of(w, &plain);
    return o->negative ? widen(~x) + 1 : widen(x);
}

/* 1 in the lanes where the predicate holds. */
static wide_lanes carry_in(const struct warp *w, const struct operand *o)
{
    return widen(lanes_of_mask(predicate_of(w, o)) & 1);
}

/* R, [carry, carry,] a, b, c [, carry, carry]: of UR and R alike. */
void run_iadd3(struct warp *w, const struct instruction *i, uint32_t mask)
{
    wide_lanes sum =
        addend(w, source(i, 0)) + addend(w, source(i, 1)) + addend(w, source(i, 2));
    for (uint32_t k = 4u + i->outputs; has(i, MODIFIER_X) && k < i->operands; k++)
        sum += carry_in(w, &i->op[k]);
    const lanes high = narrow(sum >> 32);
    put_word(w, &i->op[0], narrow(sum), mask);
    if (i->outputs > 0)
        put_predicate(w, &i->op[1], mask_of(high), mask);
    if (i->outputs > 1)
        put_predicate(w, &i->op[2], mask_of((lanes)(high > 1)), mask);
}

/* IADD.64 R, a, b and UIADD3.64 UR, PT, PT, a, b, c. */
void run_iadd_wide(struct warp *w, const struct instruction *i, uint32_t mask)
{
    wide_lanes sum = {0};
    for (uint32_t k = 1u + i->outputs; k < i->operands; k++)
        sum += wide_of(w, &i->op[k]);
    for (uint32_t k = 0; k < i->outputs; k++)
        if (i->op[1 + k].index != TRUE_PREDICATE)
            fault(w, "carries of 64 bits are not known");
    put_wide(w, &i->op[0], sum, mask);
}

void run_viadd(struct warp *w, const struct instruction *i, uint32_t mask)
{
    put_word(w, &i->op[0], word_of(w, source(i, 0)) + word_of(w, source(i, 1)), mask);
}

/* a * b + c; .MOV, .IADD and .SHL are the same with a constant. */
void run_imad(struct warp *w, const struct instruction *i, uint32_t mask)
{
    lanes x = word_of(w, source(i, 0)) * word_of(w, source(i, 1)) + word_of(w, source(i, 2));
    if (has(i, MODIFIER_X))
        x += narrow(carry_in(w, source(i, 3)));
    put_word(w, &i->op[0], x, mask);
}

static wide_lanes product(const struct warp *w, const struct instruction *i)
{
    const lanes a = word_of(w, source(i, 0)), b = word_of(w, source(i, 1));
    if (has(i, MODIFIER_U32))
        return widen(a) * widen(b);
    return (wide_lanes)(__builtin_convertvector((signed_lanes)a, signed_wide_lanes) *
                        __builtin_convertvector((signed_lanes)b, signed_wide_lanes));
}

/* The carry is out of 64 bits. */
void run_imad_wide(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const wide_lanes x = product(w, i), sum = x + wide_of(w, source(i, 2));
    const wide_lanes carry = has(i, MODIFIER_X) ? carry_in(w, source(i, 3)) : (wide_lanes){0};
    if (i->outputs && has(i, MODIFIER_X))
        fault(w, "IMAD.WIDE.X with a carry out is not known");
    if (i->outputs)
        put_predicate(w, &i->op[1], mask_of(narrow((wide_lanes)(sum < x) & 1)), mask);
    put_wide(w, &i->op[0], sum + carry, mask);
}

void run_imad_hi(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const wide_lanes x = product(w, i), sum = x + wide_of(w, source(i, 2));
    if (i->outputs)
        put_predicate(w, &i->op[1], mask_of(narrow((wide_lanes)(sum < x) & 1)), mask);
    put_word(w, &i->op[0], narrow(sum >> 32), mask);
}

/* (a << s) + b; .HI: the upper half of (c:a) << s, with .SX32 a's sign as c. */
void run_lea(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const bool high = has(i, MODIFIER_HI);
    const lanes a = word_of(w, source(i, 0));
    const bool sign = has(i, MODIFIER_SX32);
    const struct operand *shift = source(i, high && !sign ? 3 : 2);
    const lanes upper = sign   ? (lanes)((signed_lanes)a >> 31)
                        : high ? word_of(w, source(i, 2))
                               : (lanes){0};
    const wide_lanes shifted = join(a, upper) << (shift->value & 31);
    wide_lanes sum = addend(w, source(i, 1)) + widen(narrow(high ? shifted >> 32 : shifted));
    if (has(i, MODIFIER_X))
        sum += carry_in(w, shift + 1);
    put_word(w, &i->op[0], narrow(sum), mask);
    if (i->outputs)
        put_predicate(w, &i->op[1], mask_of(narrow(sum >> 32)), mask);
}

static lanes look_up(uint32_t table, lanes a, lanes b, lanes c)
{
    lanes x = {0};
    for (uint32_t k = 0; k < 8; k++)
        if (table >> k & 1)
            x |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return x;
}

/* [P,] R, a, b, c, table, !PT: P holds where the result is not zero. */
void run_lop3(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const uint32_t p = i->op[0].kind == OPERAND_PREDICATE;
    const struct operand *o = &i->op[1 + p];
    const lanes a = word_of(w, &o[0]), b = word_of(w, &o[1]), c = word_of(w, &o[2]);
    const uint32_t table = o[3].value;
    const lanes x = table == 0xc0   ? a & b
                    : table == 0xfc ? a | b
                    : table == 0x3c ? a ^ b
                                    : look_up(table, a, b, c);
    put_word(w, &i->op[p], x, mask);
    if (p) {
        const uint32_t other = i->operands > 6 ? predicate_of(w, &o[4]) : 0;
        put_predicate(w, &i->op[0],
                      has(i, MODIFIER_PAND) ? mask_of(x) & other : mask_of(x) | other, mask);
    }
}

/* low, shift, high: of the 64 bits high:low the lower half, with .HI the upper. Shifts are clamped, with
   .W taken modulo the width. */
void run_shf(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const bool wide = has(i, MODIFIER_U64) || has(i, MODIFIER_S64);
    const uint32_t most = wide ? 63 : 32;
    lanes by = word_of(w, source(i, 1));
    const lanes high = word_of(w, source(i, 2));
    const wide_lanes both = join(word_of(w, source(i, 0)), high);
    const bool sign = has(i, MODIFIER_S32) || has(i, MODIFIER_S64);
    if (has(i, MODIFIER_W))
        by &= wide ? 63 : 31;
    else
        by = lanes_choose((lanes)(by > most), splat(most), by);
    const wide_lanes s = widen(by);
    const wide_lanes x = has(i, MODIFIER_L) ? both << s
                         : sign ? (wide_lanes)((signed_wide_lanes)both >> (signed_wide_lanes)s)
                                : both >> s;
    put_word(w, &i->op[0], narrow(has(i, MODIFIER_HI) ? x >> 32 : x), mask);
}

/* `width` ones from bit `at` on. */
void run_bmsk(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes at = word_of(w, source(i, 0)), width = word_of(w, source(i, 1));
    lanes x;
    FOR_LANES x[l] =
        at[l] > 31 ? 0 : (width[l] > 31 ? UINT32_MAX : (1u << width[l]) - 1) << at[l];
    put_word(w, &i->op[0], x, mask);
}

/* Bytes of a and b by the selector's digits; 8 in a digit: the byte's sign. */
void run_prmt(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes a = word_of(w, source(i, 0)), s = word_of(w, source(i, 1)),
                b = word_of(w, source(i, 2));
    const wide_lanes both = join(a, b);
    lanes x = {0};
    for (uint32_t k = 0; k < 4; k++) {
        const lanes digit = s >> 4 * k;
        const lanes byte = narrow(both >> widen(digit % 8) * 8) & 255;
        const lanes sign = (lanes)(byte > 127) & 255;
        x |= lanes_choose((lanes)((digit & 8) != 0), sign, byte) << 8 * k;
    }
    put_word(w, &i->op[0], x, mask);
}

static lanes extreme(const struct instruction *i, lanes a, lanes b, uint32_t least)
{
    const lanes below =
        has(i, MODIFIER_U32) ? (lanes)(a < b) : (lanes)((signed_lanes)a < (signed_lanes)b);
    return lanes_choose(below ^ lanes_of_mask(~least), a, b);
}

/* a, b, P: the smaller where P holds. */
void run_imnmx(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes a = word_of(w, source(i, 0)), b = word_of(w, source(i, 1));
    put_word(w, &i->op[0], extreme(i, a, b, predicate_of(w, source(i, 2))), mask);
}

void run_viaddmnmx(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes sum = word_of(w, source(i, 0)) + word_of(w, source(i, 1));
    put_word(w, &i->op[0],
             extreme(i, sum, word_of(w, source(i, 2)), predicate_of(w, source(i, 3))), mask);
}

void run_popc(struct warp *w, const struct instruction *i, uint32_t mask)
{
    lanes x = word_of(w, source(i, 0));
    FOR_LANES x[l] = (uint32_t)__builtin_popcount(x[l]);
    put_word(w, &i->op[0], x, mask);
}
