/* SPDX-License-Identifier: Apache-2.0 */
/* Values that only change their place. */
#include "tests/sass/handlers.h"

void run_nothing(struct warp *w, const struct instruction *i, uint32_t mask)
{
    (void)w, (void)i, (void)mask;
}

void run_mov(struct warp *w, const struct instruction *i, uint32_t mask)
{
    put_word(w, &i->op[0], word_of(w, &i->op[1]), mask);
}

void run_mov_wide(struct warp *w, const struct instruction *i, uint32_t mask)
{
    put_wide(w, &i->op[0], wide_of(w, &i->op[1]), mask);
}

/* R, c[bank][at]: 4, 8 or 16 bytes. */
void run_constant(struct warp *w, const struct instruction *i, uint32_t mask)
{
    struct operand to = i->op[0], from = i->op[1];
    lanes x[4];
    if (i->bytes < 4)
        fault(w, "constants of less than 4 bytes are not known");
    for (uint32_t k = 0; k < i->bytes / 4u; k++, from.value += 4)
        x[k] = word_of(w, &from);
    for (uint32_t k = 0; k < i->bytes / 4u && to.index != ZERO_REGISTER; k++, to.index++)
        put_word(w, &to, x[k], mask);
}

void run_special(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes value[] = {[SPECIAL_ZERO] = splat(0),
                           [SPECIAL_THREAD] = LANE + 32 * w->index,
                           [SPECIAL_BLOCK] = splat(w->block->index),
                           [SPECIAL_WAVE] = splat(w->block->wave),
                           [SPECIAL_LANE] = LANE};
    put_word(w, &i->op[0], value[i->op[1].index], mask);
}

/* CS2R R, SRZ: a pair of zeros. */
void run_zero(struct warp *w, const struct instruction *i, uint32_t mask)
{
    if (i->op[1].index != SPECIAL_ZERO)
        fault(w, "CS2R of anything but SRZ is not known");
    if (has(i, MODIFIER_U32))
        put_word(w, &i->op[0], splat(0), mask);
    else
        put_wide(w, &i->op[0], (wide_lanes){0}, mask);
}

/* R2UR: all lanes must agree, since one is asked. */
void run_first(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes x = word_of(w, &i->op[i->operands - 1]);
    const uint32_t same = mask_of((lanes)(x == splat(x[first_lane(mask)])));
    if (mask & ~same)
        fault(w, "lanes differ in what becomes a uniform register");
    put_word(w, &i->op[0], x, mask);
}
