/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions in which the lanes of a warp cooperate. */
#include "tests/sass/handlers.h"

/* SHFL P, R, x, b, c: c is clamp in bits 0-4 and segment mask in bits 8-12, as in PTX's shfl.sync. */
void run_shuffle(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const union each x = {word_of(w, &i->op[2])}, b = {word_of(w, &i->op[3])},
                     c = {word_of(w, &i->op[4])};
    union each y = x;
    uint32_t inside = 0;
    FOR_LANES
    {
        const uint32_t segment = c.lane[l] >> 8 & 31, clamp = c.lane[l] & 31,
                       by = b.lane[l] & 31;
        const uint32_t most = (l & segment) | (clamp & ~segment), least = l & segment;
        const int32_t from = has(i, MODIFIER_BFLY)   ? (int32_t)(l ^ by)
                             : has(i, MODIFIER_UP)   ? (int32_t)l - (int32_t)by
                             : has(i, MODIFIER_DOWN) ? (int32_t)(l + by)
                                                     : (int32_t)(least | (by & ~segment));
        const bool in = has(i, MODIFIER_UP) ? from >= (int32_t)most : from <= (int32_t)most;
        const uint32_t lane = in ? (uint32_t)from & 31 : l;
        if (mask >> l & 1 && !(mask >> lane & 1))
            fault(w, "lane %u asks for the value of lane %u, which is not there", l, lane);
        y.lane[l] = x.lane[lane];
        inside |= (uint32_t)in << l;
    }
    put_predicate(w, &i->op[0], inside, mask);
    put_word(w, &i->op[1], y.all, mask);
}

/* VOTE [R,] P, p: whether any (.ALL: every) lane has it; R gets their bits. */
void run_vote(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const uint32_t yes = predicate_of(w, &i->op[i->operands - 1]) & mask;
    const bool holds = has(i, MODIFIER_ALL) ? yes == mask : yes != 0;
    for (uint32_t k = 0; k + 1 < i->operands; k++) {
        if (i->op[k].kind == OPERAND_PREDICATE)
            put_predicate(w, &i->op[k], holds ? ALL_LANES : 0, mask);
        else
            put_word(w, &i->op[k], splat(yes), mask);
    }
}

void run_redux(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes x = word_of(w, &i->op[1]);
    uint32_t all = 0;
    if (!has(i, MODIFIER_OR))
        fault(w, "a reduction that is not known");
    FOR_LANES all |= mask >> l & 1 ? x[l] : 0;
    put_word(w, &i->op[0], splat(all), mask);
}
