/* SPDX-License-Identifier: Apache-2.0 */
/* Reads operands and writes results. */
#include "tests/sass/machine.h"

/* Bits of an immediate for an instruction that reads integers; a decimal number is a float's. */
static uint32_t immediate(const struct operand *o)
{
    const float x = (float)o->number;
    uint32_t bits = o->value;
    if (o->decimal)
        memcpy(&bits, &x, sizeof bits);
    return bits;
}

static lanes constant_of(const struct warp *w, const struct operand *o)
{
    const struct program *p = w->block->program;
    const uint32_t base = o->value + (o->uniform == ZERO_REGISTER ? 0 : w->ur[o->uniform]);
    lanes x = {0};
    if (o->index == ZERO_REGISTER) {
        if ((uint64_t)base + 4 > p->bank_bytes[o->bank])
            fault(w, "constant c[%u][0x%x] is outside of its bank", o->bank, base);
        uint32_t word;
        memcpy(&word, p->bank[o->bank] + base, 4);
        return splat(word);
    }
    FOR_LANES
    {
        const uint32_t at = base + w->r[o->index][l];
        uint32_t word = 0;
        if ((uint64_t)at + 4 <= p->bank_bytes[o->bank])
            memcpy(&word, p->bank[o->bank] + at, 4);
        x[l] = word;
    }
    return x;
}

static lanes raw(const struct warp *w, const struct operand *o)
{
    switch (o->kind) {
    case OPERAND_REGISTER:
        return register_at(w, o->index, 0);
    case OPERAND_UNIFORM:
        return splat(o->index == ZERO_REGISTER ? 0 : w->ur[o->index]);
    case OPERAND_IMMEDIATE:
        return splat(o->decimal ? immediate(o) : o->value);
    case OPERAND_CONSTANT:
        return constant_of(w, o);
    default:
        fault(w, "an operand of another kind is expected");
    }
}

lanes word_of(const struct warp *w, const struct operand *o)
{
    const lanes x = raw(w, o);
    return o->negative ? -x : o->inverted ? ~x : x;
}

float_lanes float_of(const struct warp *w, const struct operand *o)
{
    lanes x = raw(w, o);
    if (o->absolute)
        x &= 0x7fffffffu;
    if (o->negative)
        x ^= 0x80000000u;
    return (float_lanes)x;
}

wide_lanes wide_of(const struct warp *w, const struct operand *o)
{
    wide_lanes x;
    if (o->kind == OPERAND_REGISTER) {
        x = join(register_at(w, o->index, 0), register_at(w, o->index, 1));
    } else if (o->kind == OPERAND_UNIFORM) {
        const bool zero = o->index == ZERO_REGISTER;
        x = join(splat(zero ? 0 : w->ur[o->index]), splat(zero ? 0 : w->ur[o->index + 1]));
    } else if (o->kind == OPERAND_CONSTANT) {
        struct operand high = *o;
        high.value += 4;
        x = join(constant_of(w, o), constant_of(w, &high));
    } else { /* immediates are 32 bits with their sign */
        x = (wide_lanes) __builtin_convertvector((signed_lanes)raw(w, o), signed_wide_lanes);
    }
    return o->negative ? -x : o->inverted ? ~x : x;
}

uint32_t predicate_of(const struct warp *w, const struct operand *o)
{
    const uint32_t x = o->is_uniform ? w->up[o->index] : w->p[o->index];
    return o->inverted ? ~x : x;
}

void put_word(struct warp *w, const struct operand *to, lanes x, uint32_t mask)
{
    if (to->kind == OPERAND_REGISTER)
        put_register(w, to->index, x, mask);
    else if (to->index != ZERO_REGISTER)
        w->ur[to->index] = x[first_lane(mask)];
}

void put_wide(struct warp *w, const struct operand *to, wide_lanes x, uint32_t mask)
{
    struct operand high = *to;
    if (to->index == ZERO_REGISTER)
        return;
    high.index++;
    put_word(w, to, narrow(x), mask);
    put_word(w, &high, narrow(x >> 32), mask);
}

void put_predicate(struct warp *w, const struct operand *to, uint32_t x, uint32_t mask)
{
    if (to->index == TRUE_PREDICATE)
        return;
    if (to->is_uniform)
        w->up[to->index] = x >> first_lane(mask) & 1 ? ALL_LANES : 0;
    else
        w->p[to->index] = (w->p[to->index] & ~mask) | (x & mask);
}
