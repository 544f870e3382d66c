/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, predicates, and what they choose. */
#include "tests/sass/handlers.h"

/* Lanes by how they compare, as bits: a < b, a == b, a > b, one is no number. */
enum { BELOW = 1, SAME = 2, ABOVE = 4, UNORDERED = 8 };

static uint32_t wanted(const struct instruction *i)
{
    static const struct {
        enum modifier modifier;
        uint32_t where;
    } table[] = {{MODIFIER_LT, BELOW},
                 {MODIFIER_LE, BELOW | SAME},
                 {MODIFIER_GT, ABOVE},
                 {MODIFIER_GE, ABOVE | SAME},
                 {MODIFIER_EQ, SAME},
                 {MODIFIER_NE, BELOW | ABOVE},
                 {MODIFIER_LTU, BELOW | UNORDERED},
                 {MODIFIER_LEU, BELOW | SAME | UNORDERED},
                 {MODIFIER_GTU, ABOVE | UNORDERED},
                 {MODIFIER_GEU, ABOVE | SAME | UNORDERED},
                 {MODIFIER_EQU, SAME | UNORDERED},
                 {MODIFIER_NEU, BELOW | ABOVE | UNORDERED}};
    for (uint32_t k = 0; k < sizeof table / sizeof *table; k++)
        if (has(i, table[k].modifier))
            return table[k].where;
    return 0;
}

struct order {
    uint32_t below, same, above; /* lanes */
};

static uint32_t lanes_wanted(const struct instruction *i, struct order o)
{
    const uint32_t where = wanted(i);
    return (where & BELOW ? o.below : 0) | (where & SAME ? o.same : 0) |
           (where & ABOVE ? o.above : 0) |
           (where & UNORDERED ? ~(o.below | o.same | o.above) : 0);
}

static struct order order_words(lanes a, lanes b, bool is_signed)
{
    const lanes below = is_signed ? (lanes)((signed_lanes)a < (signed_lanes)b) : (lanes)(a < b);
    struct order o = {.below = mask_of(below), .same = mask_of((lanes)(a == b))};
    o.above = ~(o.below | o.same);
    return o;
}

static struct order order_wide(wide_lanes a, wide_lanes b, bool is_signed)
{
    const wide_lanes below = is_signed
                                 ? (wide_lanes)((signed_wide_lanes)a < (signed_wide_lanes)b)
                                 : (wide_lanes)(a < b);
    struct order o = {.below = mask_of(narrow(below)),
                      .same = mask_of(narrow((wide_lanes)(a == b)))};
    o.above = ~(o.below | o.same);
    return o;
}

static struct order order_floats(float_lanes a, float_lanes b)
{
    return (struct order){.below = mask_of((lanes)(a < b)),
                          .same = mask_of((lanes)(a == b)),
                          .above = mask_of((lanes)(a > b))};
}

static uint32_t combine(const struct instruction *i, uint32_t x, uint32_t with)
{
    return has(i, MODIFIER_AND) ? x & with : has(i, MODIFIER_OR) ? x | with : x ^ with;
}

/* P, Q, a, b, with: P is the comparison, Q its opposite, each combined with the last. */
static void put_comparison(struct warp *w, const struct instruction *i, uint32_t x,
                           uint32_t mask)
{
    const uint32_t with = predicate_of(w, &i->op[4]);
    put_predicate(w, &i->op[0], combine(i, x, with), mask);
    put_predicate(w, &i->op[1], combine(i, ~x, with), mask);
}

/* .EX continues a comparison of the lower words, whose outcome is the last operand. */
void run_isetp(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const bool wide = has(i, MODIFIER_U64) || has(i, MODIFIER_S64);
    const bool is_signed = !has(i, MODIFIER_U32) && !has(i, MODIFIER_U64);
    struct order o = wide
                         ? order_wide(wide_of(w, &i->op[2]), wide_of(w, &i->op[3]), is_signed)
                         : order_words(word_of(w, &i->op[2]), word_of(w, &i->op[3]), is_signed);
    uint32_t x = lanes_wanted(i, o);
    if (has(i, MODIFIER_EX)) {
        const uint32_t lower = predicate_of(w, &i->op[5]);
        const uint32_t same = o.same;
        o.same = 0;
        x = lanes_wanted(i, o) & ~same;
        x |= same & lower;
    }
    put_comparison(w, i, x, mask);
}

void run_fsetp(struct warp *w, const struct instruction *i, uint32_t mask)
{
    put_comparison(
        w, i, lanes_wanted(i, order_floats(float_of(w, &i->op[2]), float_of(w, &i->op[3]))),
        mask);
}

/* .BF: 1.0 or 0. */
void run_fset(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const uint32_t x = combine(
        i, lanes_wanted(i, order_floats(float_of(w, &i->op[1]), float_of(w, &i->op[2]))),
        predicate_of(w, &i->op[3]));
    put_word(w, &i->op[0], lanes_of_mask(x) & (has(i, MODIFIER_BF) ? 0x3f800000u : ALL_LANES),
             mask);
}

/* P, Q, a, b, c, table of P, table of Q. */
void run_plop3(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const uint32_t a = predicate_of(w, &i->op[2]), b = predicate_of(w, &i->op[3]),
                   c = predicate_of(w, &i->op[4]);
    uint32_t x[2] = {0, 0};
    for (uint32_t which = 0; which < 2; which++)
        for (uint32_t k = 0; k < 8; k++)
            if (i->op[5 + which].value >> k & 1)
                x[which] |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    put_predicate(w, &i->op[0], x[0], mask);
    put_predicate(w, &i->op[1], x[1], mask);
}

/* R, PR, x, which: the named predicates become bits, the others are x's. */
void run_p2r(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const uint32_t which = i->op[3].value;
    lanes x = word_of(w, &i->op[2]) & ~which;
    for (uint32_t k = 0; k < TRUE_PREDICATE; k++)
        if (which >> k & 1)
            x |= lanes_of_mask(w->p[k]) & (1u << k);
    put_word(w, &i->op[0], x, mask);
}

/* PR, R.Bk, which. */
void run_r2p(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const struct operand *from = &i->op[1];
    const lanes x = register_at(w, from->index, 0) >> (from->half ? 8 * (from->half - 1) : 0);
    for (uint32_t k = 0; k < TRUE_PREDICATE; k++)
        if (i->op[2].value >> k & 1)
            w->p[k] = (w->p[k] & ~mask) | (mask_of(x & (1u << k)) & mask);
}

void run_sel(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes where = lanes_of_mask(predicate_of(w, &i->op[3]));
    put_word(w, &i->op[0], lanes_choose(where, word_of(w, &i->op[1]), word_of(w, &i->op[2])),
             mask);
}

void run_sel_wide(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes where = lanes_of_mask(predicate_of(w, &i->op[3]));
    const wide_lanes a = wide_of(w, &i->op[1]), b = wide_of(w, &i->op[2]);
    put_wide(w, &i->op[0],
             join(lanes_choose(where, narrow(a), narrow(b)),
                  lanes_choose(where, narrow(a >> 32), narrow(b >> 32))),
             mask);
}

void run_fsel(struct warp *w, const struct instruction *i, uint32_t mask)
{
    const lanes where = lanes_of_mask(predicate_of(w, &i->op[3]));
    put_word(w, &i->op[0],
             lanes_choose(where, (lanes)float_of(w, &i->op[1]), (lanes)float_of(w, &i->op[2])),
             mask);
}
