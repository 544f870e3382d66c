/* SPDX-License-Identifier: Apache-2.0 */
/* Mask to plan. Strip by strip: the cheapest draft of the strip as a whole, then the same without
   the rows that stand out, as long as that is cheaper; the winner goes to the tables. A pattern with
   strides is tried as residue classes and the rest, too. Each distinct pattern is planned once in
   each direction, heads and layers only share the work lists. */
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include "gen/short.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_LIMIT = 1 << 30 }; /* entries of a table: indices are 32 bits wide */

static void swap_drafts(struct draft *a, struct draft *b)
{
    struct draft c = *a;
    *a = *b;
    *b = c;
}

/* Lines go a faster way where they are alone. */
static double mixed_price(const struct builder *b, const struct draft *d)
{
    double cells = 0;
    for (uint64_t k = 0; k < d->n_lines; k++)
        cells += d->lines[k].row_end - d->lines[k].row_begin;
    return cells * b->price.mixed + b->strip->rows * b->price.mixed_row;
}

static uint32_t bit_of(enum abi_piece_kind kind)
{
    uint32_t k = 0;
    while (lowerings[k]->kind != kind || !lowerings[k]->build)
        k++;
    return (uint32_t)1 << k;
}

/* Where lines are not to be had, nobody may count on them. */
static struct price price_without_lines(const struct builder *b)
{
    struct price p = b->price;
    p.walk = 0;
    return p;
}

/* Builds a draft with the lowerings of `set` (bits by table row); tiles always close it. */
static void build_draft(struct builder *b, uint32_t set, struct draft *d)
{
    struct price p = set & bit_of(ABI_DIAGONAL) ? b->price : price_without_lines(b);
    strip_reopen(b->strip);
    draft_clear(d);
    d->cost = strip_price(b->strip, &p);
    for (uint32_t k = 0; lowerings[k]; k++)
        if (set >> k & 1)
            lowerings[k]->build(b->strip, &p, d);
    lowering_tiles.build(b->strip, &p, d);
    if (d->n_lines && (d->pieces > 1 || b->begun || b->pass->mixed))
        d->cost += mixed_price(b, d);
}

/* Lines for the whole strip, in b->draft[1]; false where some of it is not theirs to take. */
static bool lines_alone_draft(struct builder *b)
{
    struct strip *s = b->strip;
    uint32_t diagonal = bit_of(ABI_DIAGONAL), k = (uint32_t)__builtin_ctz(diagonal);
    if (!s->halves || b->price.walk <= 0 || strip_solid_tiles(s) ||
        lowerings[k]->cost(s, &b->price) > b->draft[0].cost)
        return false;
    s->lines_alone = true;
    build_draft(b, diagonal, &b->draft[1]);
    s->lines_alone = false;
    return b->draft[1].pieces == 1;
}

/* The lowerings that could take something of the loaded strip, and of these the optional. */
static uint32_t find_set(struct builder *b, uint32_t *ret_optional)
{
    struct price other = price_without_lines(b);
    uint32_t set = 0;
    *ret_optional = 0;
    for (uint32_t k = 0; lowerings[k] && !b->tiles_only; k++) {
        const struct lowering *l = lowerings[k];
        if (!l->applies || !(l->applies(b->strip, &b->price) || l->applies(b->strip, &other)))
            continue;
        set |= (uint32_t)1 << k;
        *ret_optional |= (uint32_t)l->optional << k;
    }
    return set;
}

/* The cheapest draft of the loaded strip, in b->draft[0]. What is optional is tried in all ways. */
static void best_draft(struct builder *b)
{
    uint32_t optional, set, some;
    draft_clear(&b->draft[0]);
    if (!b->strip->owned)
        return;
    strip_reopen(b->strip);
    set = find_set(b, &optional);
    some = optional;
    build_draft(b, set, &b->draft[0]);
    for (double best = b->draft[0].cost * (1 + LEAST_GAIN * __builtin_popcount(some)); some;) {
        some = (some - 1) & optional;
        build_draft(b, (set & ~optional) | some, &b->draft[1]);
        double weighed = b->draft[1].cost * (1 + LEAST_GAIN * __builtin_popcount(some));
        if (weighed > best)
            continue;
        best = weighed;
        swap_drafts(&b->draft[0], &b->draft[1]);
    }
    if (!b->tiles_only && lines_alone_draft(b) &&
        b->draft[1].cost < b->draft[0].cost * (1 - LEAST_GAIN))
        swap_drafts(&b->draft[0], &b->draft[1]);
}

static void add_dense(struct builder *b)
{
    const struct strip *s = b->strip;
    double solid = strip_solid_tiles(s), entries = 32.0 * s->rows;
    b->dense.count[UNIT_FULL] += entries * solid;
    b->dense.count[UNIT_PARTIAL] += entries * (s->tiles - solid);
    b->dense.count[UNIT_GATHER] += s->fragments ? (double)s->tiles * ABI_TILE_COLS : 0;
    b->dense.count[UNIT_ITEM]++;
    b->dense.count[UNIT_ITEM_ROW] += s->rows;
}

/* What each lowering would cost if it had the strip for itself. */
static void note_alone(struct builder *b)
{
    strip_reopen(b->strip);
    add_dense(b);
    for (uint32_t k = 0; lowerings[k]; k++) {
        if (!lowerings[k]->cost)
            continue;
        b->alone[k] += lowerings[k]->cost(b->strip, &b->report);
        b->applied[k] |= !lowerings[k]->applies || lowerings[k]->applies(b->strip, &b->price);
    }
}

/* Rows of the loaded strip that are not in `own`, one by one. */
static double price_of_rows_without(const struct builder *b, const u32 *own)
{
    double sum = 0;
    for (uint32_t r = 0; r < b->strip->rows; r++)
        if (!(own[r / 32] >> (r % 32) & 1))
            sum += rows_price(&b->price, b->strip, r);
    return sum;
}

static bool is_begun(const struct builder *b, uint32_t row)
{
    return b->begun && b->begun->row[row] < b->begun->row[row + 1];
}

static void emit_rows_without(struct builder *b, const struct pattern *p, const u32 *own)
{
    for (uint32_t r = 0; r < b->strip->rows; r++)
        if (!(own[r / 32] >> (r % 32) & 1))
            cuts_add_row(b, p, strip_row(b->strip, r));
}

/* Whether the row pass can have the strip's rows that are not in `own`. */
static bool may_leave(const struct builder *b, const u32 *own)
{
    for (uint32_t r = 0; b->begun && b->strips_resume && r < b->strip->rows; r++)
        if (!(own[r / 32] >> (r % 32) & 1) && is_begun(b, strip_row(b->strip, r)))
            return false;
    return true;
}

/* Moves rows that stand out into items of their own while that is cheaper; `own` becomes the rows
   that stay, and the draft for them is b->draft[2]. Returns the price of all. */
static double peel_rows(struct builder *b, const struct pattern *p, uint32_t row0, u32 *own)
{
    struct strip *s = b->strip;
    u32 fewer[ABI_MAX_STRIP / 32];
    best_draft(b);
    swap_drafts(&b->draft[0], &b->draft[2]);
    double best = b->draft[2].cost;
    while (!b->tiles_only && rows_stand_out(s, fewer) && may_leave(b, fewer)) {
        strip_load(s, p, row0, fewer);
        best_draft(b);
        double total = b->draft[0].cost + price_of_rows_without(b, fewer);
        if (total >= best)
            break;
        best = total;
        memcpy(own, fewer, sizeof fewer);
        swap_drafts(&b->draft[0], &b->draft[2]);
    }
    return best;
}

static void build_strip(struct builder *b, const struct pattern *p, uint32_t row0, bool note)
{
    static const u32 none[ABI_MAX_STRIP / 32];
    struct strip *s = b->strip;
    u32 own[ABI_MAX_STRIP / 32];
    strip_load(s, p, row0, NULL);
    if (note)
        note_alone(b);
    memcpy(own, s->own, sizeof own);
    double best = peel_rows(b, p, row0, own);
    bool one = s->rows == 1; /* an item of one row is always the row pass */
    double alone = price_of_rows_without(b, none);
    if (!b->tiles_only && (one || (alone < best && may_leave(b, none)))) {
        memcpy(own, none, sizeof own);
        best = alone;
    }
    b->total += best;
    if (b->dry)
        return;
    emit_rows_without(b, p, own);
    memcpy(s->own, own, sizeof own);
    if (memcmp(own, none, sizeof own))
        tables_add_strip(b->pass, &b->index, s, &b->draft[2]);
}

int builder_check_room(const struct plan_pass *t, struct error *e)
{
    const uint64_t counts[] = {t->n_items, t->n_pieces,  t->n_ranges,  t->n_tiles,
                               t->n_lines, t->n_gathers, t->n_columns, t->n_patterns};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        if (counts[k] > TABLE_LIMIT)
            return error_set(e, ERROR_INPUT,
                             "the plan of this mask needs more than 2^30 table entries; "
                             "use fewer tokens or a mask with more structure");
    return 0;
}

int builder_strips(struct builder *b, const struct plan *p, const struct pattern *pattern,
                   bool note, struct error *e)
{
    for (uint32_t row0 = 0; row0 < p->n; row0 += p->strip_rows) {
        build_strip(b, pattern, row0, note);
        if (builder_check_room(b->pass, e))
            return -1;
    }
    return 0;
}

/* What each lowering would cost alone is of interest even where the plan is another. */
static void note_strips(struct builder *b, const struct plan *p, const struct pattern *pattern)
{
    for (uint32_t row0 = 0; row0 < p->n; row0 += p->strip_rows) {
        strip_load(b->strip, pattern, row0, NULL);
        note_alone(b);
    }
}

static u32 nanoseconds(double seconds)
{
    double ns = ceil(seconds * 1e9);
    return ns < 1 ? 1 : ns > (double)UINT32_MAX ? UINT32_MAX : (u32)ns;
}

/* What the plan does, and what each of its items costs. */
static struct effort count_plan(struct builder *b, uint32_t which)
{
    struct effort sum = {{0}};
    for (uint64_t k = b->pass->item_first[which]; k < b->pass->n_items; k++) {
        struct effort e = item_effort(b->pass, &b->pass->items[k]);
        b->pass->items[k].cost = nanoseconds(price_of(&b->report, &e));
        effort_add(&sum, &e, 1);
    }
    return sum;
}

static int build_pattern(struct builder *b, const struct plan *p, const struct pattern *pattern,
                         uint32_t which, struct error *e)
{
    struct split split;
    memset(b->alone, 0, sizeof b->alone);
    memset(b->applied, 0, sizeof b->applied);
    b->dense = (struct effort){{0}};
    b->pass->item_first[which] = (uint32_t)b->pass->n_items;
    classes_choose(b, p, pattern, &split);
    b->total = 0;
    b->n_long = b->seats = 0;
    if (split.step)
        note_strips(b, p, pattern);
    int failed =
        split.step ? classes_build(b, p, &split, e) : builder_strips(b, p, pattern, true, e);
    if (!failed)
        cuts_build(b, p, b->pass->item_first[which]);
    split_finish(&split);
    if (failed)
        return -1;
    b->pass->item_first[which + 1] = (uint32_t)b->pass->n_items;
    tables_partials_first(b->pass, b->pass->item_first[which]);
    b->pass->summary[which].effort = count_plan(b, which);
    b->pass->summary[which].dense = b->dense;
    summary_fill(p, b->pass, which, pattern, b->alone, b->applied);
    return 0;
}

static void finish_builder(struct builder *b)
{
    for (uint32_t k = 0; k < 3; k++)
        draft_finish(&b->draft[k]);
    free(b->long_rows);
    free(b->index.slot);
    free(b->place);
    strip_destroy(b->strip);
}

/* Of each pass over these tables one more launch, if some items resume what others leave. */
static double late_seconds(const struct plan *p, uint32_t passes)
{
    return p->target->kind == TARGET_CUDA ? passes * LATE_LAUNCH * p->machine->launch : 0;
}

static int build_pass(struct plan *p, struct plan_pass *pass, const struct mask *m,
                      bool transposed, struct error *e)
{
    struct builder b = {.pass = pass,
                        .report = p->price[transposed ? PASS_DKV : PASS_FORWARD],
                        .tiles_only = p->tiles_only,
                        .place = memory_new(p->n, sizeof *b.place)};
    b.price = b.report;
    if (!transposed && p->features.backward)
        b.price = price_add(b.price, p->price[PASS_DQ]);
    b.whole_classes = !p->tiles_only && residue_is_whole(p->target, &p->features);
    b.shared_classes = !p->tiles_only && residue_applies(p->target, &p->features);
    b.strips_resume = p->target->kind == TARGET_CUDA;
    b.cuts_rows = rows_are_cut(p->target, &p->features);
    b.late = late_seconds(p, !transposed && p->features.backward ? 2 : 1);
    int failed = 0;
    b.strip = strip_new(p->n, p->strip_rows);
    pass->strip_rows = p->strip_rows;
    pass->mixed = p->features.soft != ABI_SOFT_NONE;
    pass->halves = b.strip->halves =
        p->target->kind == TARGET_CPU && target_matrix(p->target, &p->features);
    pass->fragments = b.strip->fragments =
        p->target->kind == TARGET_CUDA && target_matrix(p->target, &p->features);
    pass->item_first = memory_new((size_t)m->n_patterns + 1, sizeof *pass->item_first);
    pass->summary = memory_new(m->n_patterns, sizeof *pass->summary);
    for (uint32_t k = 0; k < m->n_patterns && !failed; k++) {
        struct pattern *turned = transposed ? pattern_transpose(m->pattern[k], e) : NULL;
        if (transposed && !turned)
            failed = -1;
        else
            failed = build_pattern(&b, p, turned ? turned : m->pattern[k], k, e);
        pattern_destroy(turned);
    }
    finish_builder(&b);
    if (!failed)
        work_build(p, pass);
    return failed;
}

/* What kernels for CUDA must be able to do; on a CPU they are. */
static void note_features(struct plan *p, const struct plan_pass *t)
{
    for (uint64_t k = 0; k < t->n_items && p->target->kind == TARGET_CUDA; k++) {
        p->features.cut_rows |= t->items[k].seats > 0;
        p->features.shared_rows |= t->items[k].partial && !t->items[k].seats;
    }
}

struct plan *build_plan(const struct mask *m, const struct target *t, const struct features *f,
                        const struct machine *machine, struct error *e)
{
    if (machine->kind != t->kind) {
        error_set(e, ERROR_INPUT, "machine %s does not run code for target %s", machine->name,
                  t->name);
        return NULL;
    }
    struct plan *p = memory_new(1, sizeof *p);
    *p = (struct plan){
        .n = m->n,
        .heads = m->heads,
        .layers = m->layers,
        .n_masks = m->n_patterns,
        .at = memory_copy(m->at, (size_t)m->layers * m->heads * sizeof *m->at),
        .strip_rows = target_strip_rows(t, f),
        .tiles_only = short_forward(t, f, NULL),
        .target = t,
        .machine = machine,
        .features = *f,
    };
    for (int k = 0; k < PASSES; k++)
        p->price[k] = price_make(machine, (enum machine_pass)k,
                                 (struct price_shape){&p->features, p->target, p->n, p->heads});
    int failed = build_pass(p, &p->forward, m, false, e);
    if (!failed && f->backward)
        failed = build_pass(p, &p->transposed, m, true, e);
    note_features(p, &p->forward);
    note_features(p, &p->transposed);
#ifndef NDEBUG
    if (!failed)
        failed = plan_check(p, m, e);
#endif
    if (!failed)
        return p;
    plan_destroy(p);
    return NULL;
}

void plan_destroy(struct plan *p)
{
    if (!p)
        return;
    tables_finish(&p->forward);
    tables_finish(&p->transposed);
    free(p->at);
    free(p);
}
