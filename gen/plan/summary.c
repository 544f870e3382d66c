/* SPDX-License-Identifier: Apache-2.0 */
/* What a pass over one mask amounts to: the figures of struct plan_summary and the sentence that
   says why the plan is what it is. */
#include "gen/lowering/lowering.h"
#include "gen/plan/internal.h"
#include <stdio.h>
#include <string.h>

/* What was visited how. */
struct tally {
    uint64_t executed, cells[ABI_KINDS], pieces[ABI_KINDS], lines;
    uint64_t tiles;            /* entries of the tiles, where fragments are left out of them */
    uint64_t gathered, shared; /* active entries of scattered columns, of residue classes */
    uint32_t step;             /* of the classes */
};

static struct tally count(const struct plan *p, const struct plan_pass *t, uint32_t which)
{
    struct tally sum = {0};
    for (u32 i = t->item_first[which]; i < t->item_first[which + 1]; i++) {
        const struct abi_item *item = &t->items[i];
        for (u32 k = item->piece; k < item->piece + item->pieces; k++) {
            const struct abi_piece *piece = &t->pieces[k];
            uint64_t cells = lowering_of(piece->kind)->executed(t, item, piece, p->n);
            sum.executed += cells;
            sum.cells[piece->kind] += cells;
            sum.pieces[piece->kind]++;
            if (piece->kind == ABI_TILES && t->fragments)
                sum.tiles += tiles_area(t, item, piece, p->n);
            sum.lines += piece->kind == ABI_DIAGONAL ? piece->count : 0;
            if (piece->kind == ABI_COLUMNS)
                sum.gathered += columns_active(t, p->block_rows, item, piece);
            if (piece->kind != ABI_RESIDUE)
                continue;
            sum.shared += columns_active(t, p->block_rows, item, piece);
            sum.step = item->step;
        }
    }
    return sum;
}

static void name_lowering(const struct tally *sum, bool all, struct plan_summary *s)
{
    if (!sum->executed || all) {
        snprintf(s->lowering, sizeof s->lowering, all ? "dense" : "empty");
        return;
    }
    for (const struct lowering *const *l = lowerings; *l; l++) {
        if (!(*l)->decode || !sum->pieces[(*l)->kind])
            continue;
        size_t length = strlen(s->lowering);
        bool fewer = (*l)->kind == ABI_TILES && sum->cells[ABI_TILES] < sum->tiles;
        snprintf(s->lowering + length, sizeof s->lowering - length, "%s%s", length ? "+" : "",
                 fewer ? "fragments" : (*l)->name);
    }
}

/* The other kinds visit active entries only, but for gathered columns, which are counted. */
static double active_in_tiles(double active, const struct tally *sum)
{
    const uint64_t *cells = sum->cells;
    return active - (double)(cells[ABI_ROWS] + cells[ABI_BLOCKS] + cells[ABI_DIAGONAL]) -
           (double)(sum->gathered + sum->shared);
}

static void add_reason(struct plan_summary *s, const char *format, double a, double b)
{
    size_t length = strlen(s->reason);
    snprintf(s->reason + length, sizeof s->reason - length, "%s", length ? "; " : "");
    length = strlen(s->reason);
    snprintf(s->reason + length, sizeof s->reason - length, format, a, b);
}

/* Why each kind of piece is there, by the figures that decided. */
static void give_reason(const struct plan *p, const struct tally *sum,
                        const struct pattern *pattern, bool all, struct plan_summary *s)
{
    double area = (double)p->n * p->n, active = (double)pattern->active;
    const uint64_t *cells = sum->cells;
    if (!sum->executed)
        add_reason(s, "no entry is active: outputs are only cleared", 0, 0);
    else if (active == area)
        add_reason(s, "every entry is active", 0, 0);
    else if (all)
        add_reason(s, "every tile is active, and nothing is predicted faster", 0, 0);
    if (!sum->executed || all)
        return;
    if (cells[ABI_ROWS])
        add_reason(s, "rows that stand out: %.0f", (double)sum->pieces[ABI_ROWS], 0);
    if (cells[ABI_BLOCKS])
        add_reason(s, "ranges that whole strips see: %.3g%%",
                   100 * (double)cells[ABI_BLOCKS] / area, 0);
    if (cells[ABI_TILES])
        add_reason(s,
                   cells[ABI_TILES] < sum->tiles ? "fragments touch %.3g%%, %.3g%% active"
                                                 : "tiles touch %.3g%%, %.3g%% active",
                   100 * (double)cells[ABI_TILES] / area,
                   100 * active_in_tiles(active, sum) / area);
    if (cells[ABI_COLUMNS])
        add_reason(s, "scattered columns gathered: %.3g%%, %.3g%% active",
                   100 * (double)cells[ABI_COLUMNS] / area, 100 * (double)sum->gathered / area);
    if (cells[ABI_RESIDUE])
        add_reason(s, "residue classes modulo %.0f: %.3g%%", sum->step,
                   100 * (double)cells[ABI_RESIDUE] / area);
    if (cells[ABI_DIAGONAL])
        add_reason(s, "lines, too few entries for tiles: %.3g%%, %.3g each",
                   100 * (double)cells[ABI_DIAGONAL] / area,
                   (double)cells[ABI_DIAGONAL] / (double)sum->lines);
}

static void set_floor(const struct plan *p, const struct pattern *pattern,
                      struct plan_summary *s)
{
    const struct machine *m = p->machine;
    double cells = (double)pattern->active, rows = p->n, d = p->config.request.head_dim;
    double compute = cells * 4 * d / m->flops, exp = cells / m->exps;
    double bytes =
        rows * (4 * d * dtype_bytes(p->config.request.dtype) + 4); /* Q, K, V, O and LSE */
    double memory = bytes / (bytes <= m->cache ? m->cache_bytes : m->bytes);
    s->floor = memory;
    s->bound = "memory";
    if (exp > s->floor) {
        s->floor = exp;
        s->bound = "exp";
    }
    if (compute > s->floor) {
        s->floor = compute;
        s->bound = "compute";
    }
}

/* Lines alone, of few rows each. */
static bool is_scattered(const struct plan_pass *t, const struct abi_item *item)
{
    if (item->pieces != 1 || t->pieces[item->piece].kind != ABI_DIAGONAL)
        return false;
    const struct abi_piece *piece = &t->pieces[item->piece];
    return lines_scattered(t->lines + piece->first, piece->count, t->diagonal_rows);
}

struct effort item_effort(const struct plan_pass *t, const struct abi_item *item)
{
    struct effort e = {{0}};
    if (item->rows == 1 && item->step == 1) {
        e.count[UNIT_ROW_ITEM] = 1;
    } else {
        e.count[UNIT_ITEM] = 1;
        e.count[UNIT_ITEM_ROW] = item->rows;
    }
    for (uint32_t r = 0; r < item->rows; r++)
        if (item->merge[r / 32] >> (r % 32) & 1)
            e.count[UNIT_ITEM_ROW] += t->fragments ? RESUME_OUTPUTS_FAR : RESUME_OUTPUTS;
    for (u32 k = item->piece; k < item->piece + item->pieces; k++)
        lowering_of(t->pieces[k].kind)->count(t, item, &t->pieces[k], &e);
    bool mixed = item->pieces > 1 || e.count[UNIT_ITEM_ROW] > item->rows; /* or resumes */
    mixed |= t->mixed || is_scattered(t, item);
    if (e.count[UNIT_LINE] > 0 && mixed) {
        e.count[UNIT_MIXED] = e.count[UNIT_WALK];
        e.count[UNIT_MIXED_ROW] = item->rows;
    }
    return e;
}

/* Panels for products, and rows as floats where the caller's are not and no matrix unit takes them. */
struct effort pack_effort(const struct plan *p, uint32_t uses)
{
    struct effort e = {{0}};
    bool panels = uses & (1u << ABI_TILES | 1u << ABI_BLOCKS);
    bool rows = uses && dtype_bytes(p->config.request.dtype) == 2 && !p->family->matrix;
    e.count[UNIT_PACK] = (double)(panels + rows) * p->n;
    return e;
}

void summary_fill(const struct plan *p, struct plan_pass *pass, uint32_t which,
                  const struct pattern *pattern, const double *alone, const bool *applied)
{
    struct plan_summary *s = &pass->summary[which];
    struct tally sum = count(p, pass, which);
    double area = (double)p->n * p->n;
    const struct price *price = &p->price[pass == &p->forward ? PASS_FORWARD : PASS_DKV];
    struct effort pack = pack_effort(p, 1u << ABI_TILES), own;
    bool walks = sum.pieces[ABI_DIAGONAL];
    bool all = sum.executed == (uint64_t)p->n * p->n && !walks;
    uint32_t uses = 0;
    for (uint32_t k = 0; k < ABI_KINDS; k++)
        uses |= (uint32_t)(sum.pieces[k] > 0) << k;
    s->executed_fraction = (double)sum.executed / area;
    own = pack_effort(p, uses);
    effort_add(&s->effort, &own, 1);
    effort_add(&s->dense, &pack, 1);
    s->predicted = price_of(price, &s->effort);
    s->dense_predicted = price_of(price, &s->dense);
    if (s->dense_predicted < s->predicted) /* a choice for forward and dQ together */
        s->dense_predicted = s->predicted;
    name_lowering(&sum, all, s);
    give_reason(p, &sum, pattern, all, s);
    set_floor(p, pattern, s);
    for (uint32_t k = 0; lowerings[k]; k++) {
        if (!applied[k] || !strcmp(lowerings[k]->name, s->lowering))
            continue;
        if (!strcmp(lowerings[k]->name, "dense")) {
            s->rejected[s->n_rejected++] = (struct plan_rejected){"dense", s->dense_predicted};
            continue;
        }
        bool packs = lowerings[k]->kind == ABI_TILES || lowerings[k]->kind == ABI_BLOCKS;
        s->rejected[s->n_rejected++] = (struct plan_rejected){
            lowerings[k]->name, alone[k] + (packs ? price_of(price, &pack) : 0)};
    }
}
