/* SPDX-License-Identifier: Apache-2.0 */
/* Summary of a pass over one mask: the figures of struct plan_summary and the sentence that gives the reason for the
   plan. */
#include "gen/lowering/lowering.h"
#include "gen/plan/internal.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Visits by kind. */
struct tally {
    uint64_t entries;
    struct visits of[ABI_KINDS];
};

static bool is_transposed(const struct plan *p, const struct plan_pass *t)
{
    return t == &p->transposed;
}

static void add_piece(const struct plan *p, const struct plan_pass *t,
                      const struct abi_item *item, const struct abi_piece *piece,
                      struct tally *sum)
{
    const struct lowering *l = lowering_of(piece->kind);
    struct visits *v = &sum->of[piece->kind];
    const uint32_t columns = plan_sides(p, is_transposed(p, t)).columns;
    const uint64_t entries = l->executed(t, item, piece, columns);
    sum->entries += entries;
    v->entries += entries;
    v->pieces++;
    v->parts += piece->count;
    v->area += l->area ? l->area(t, item, piece, columns) : entries;
    v->active += l->active ? l->active(t, p->block_rows, item, piece) : entries;
    v->step = item->step;
}

/* All kinds but tiles know their active entries: tiles have the rest. */
static void count_tiles_active(const struct pattern *pattern, struct tally *sum)
{
    struct visits *tiles = &sum->of[ABI_TILES];
    tiles->active = pattern->active;
    for (uint32_t k = 0; k < ABI_KINDS; k++)
        tiles->active -= k == ABI_TILES ? 0 : sum->of[k].active;
}

static struct tally count(const struct plan *p, const struct plan_pass *t, uint32_t which,
                          const struct pattern *pattern)
{
    struct tally sum = {0};
    for (u32 i = t->item_first[which]; i < t->item_first[which + 1]; i++) {
        const struct abi_item *item = &t->items[i];
        for (u32 k = item->piece; k < item->piece + item->pieces; k++)
            add_piece(p, t, item, &t->pieces[k], &sum);
    }
    count_tiles_active(pattern, &sum);
    return sum;
}

void count_kernels(const struct plan_pass *t, uint32_t which, uint64_t ret[ABI_ITEM_KERNELS])
{
    memset(ret, 0, ABI_ITEM_KERNELS * sizeof *ret);
    for (u32 i = t->item_first[which]; i < t->item_first[which + 1]; i++)
        ret[t->items[i].kernel]++;
}

static void name_lowering(const struct tally *sum, bool all, struct plan_summary *s)
{
    if (!sum->entries || all) {
        snprintf(s->lowering, sizeof s->lowering, all ? "dense" : "empty");
        return;
    }
    for (const struct lowering *const *l = lowerings; *l; l++) {
        const struct visits *v = &sum->of[(*l)->kind];
        if (!(*l)->decode || !v->pieces)
            continue;
        size_t length = strlen(s->lowering);
        bool fewer = (*l)->name_of_fewer && v->entries < v->area;
        snprintf(s->lowering + length, sizeof s->lowering - length, "%s%s", length ? "+" : "",
                 fewer ? (*l)->name_of_fewer : (*l)->name);
    }
}

/* The reasons of all kinds that visit something, in the order that the lowerings ask for. */
static void add_reasons(const struct tally *sum, double cells, struct text *out)
{
    for (uint32_t told = 0; told < ABI_KINDS; told++)
        for (uint32_t k = 0; k < ABI_KINDS; k++) {
            const struct lowering *l = lowering_of(k);
            if (l->told != told || !sum->of[k].entries)
                continue;
            text_add(out, "%s", *text_get(out) ? "; " : "");
            l->reason(&sum->of[k], cells, out);
        }
}

static void give_reason(const struct tally *sum, const struct pattern *pattern, double cells,
                        bool all, struct plan_summary *s)
{
    struct text text = {0};
    if (!sum->entries)
        text_add(&text, "no entry is active: outputs are only cleared");
    else if ((double)pattern->active == cells)
        text_add(&text, "every entry is active");
    else if (all)
        text_add(&text, "every tile is active, and nothing is predicted faster");
    if (sum->entries && !all)
        add_reasons(sum, cells, &text);
    snprintf(s->reason, sizeof s->reason, "%s", text_get(&text));
    text_finish(&text);
}

/* Columns that some row sees. */
static uint32_t count_columns(const struct pattern *p)
{
    int64_t *change = memory_new((size_t)p->n + 1, sizeof *change), rows = 0;
    uint32_t seen = 0;
    for (uint64_t k = 0; k < p->n_runs; k++) {
        change[p->run[k].begin]++;
        change[p->run[k].end]--;
    }
    for (uint32_t j = 0; j < p->n; j++) {
        rows += change[j];
        seen += rows > 0;
    }
    free(change);
    return seen;
}

/* Rows that see some column. */
static uint32_t count_rows(const struct pattern *p)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < p->n; i++)
        seen += p->row[i] < p->row[i + 1];
    return seen;
}

static uint32_t count_keys(const struct plan *p, const struct pattern *pattern, bool transposed)
{
    if (!p->config.request.keys)
        return p->n;
    return transposed ? count_rows(pattern) : count_columns(pattern);
}

/* Q, K, V, O and LSE. */
static double floor_bytes(const struct plan *p, uint32_t keys)
{
    const double row = 2.0 * p->config.request.head_dim * dtype_bytes(p->config.request.dtype);
    return plan_sides(p, false).rows * (row + sizeof(float)) + keys * row;
}

static void set_floor(const struct plan *p, const struct pattern *pattern,
                      struct plan_summary *s)
{
    const struct machine *m = p->machine;
    double cells = (double)pattern->active, d = p->config.request.head_dim;
    double compute = cells * 4 * d / m->flops, exp = cells / m->exps;
    double bytes = floor_bytes(p, s->keys);
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

enum { PACK_GROUP = 64, PACK_MARGIN = 64 }; /* columns */

/* Counts in change[] the groups that columns begin .. end - 1 touch with their margins. */
static void touch_groups(int64_t *change, uint32_t groups, uint32_t begin, uint32_t end)
{
    const uint32_t first = (begin < PACK_MARGIN ? 0 : begin - PACK_MARGIN) / PACK_GROUP;
    const uint32_t last = (end - 1 + PACK_MARGIN) / PACK_GROUP;
    change[first]++;
    change[last < groups ? last + 1 : groups]--;
}

/* Columns that a head of this pattern packs; `transposed`: they are its rows. */
static double count_groups(const struct pattern *p, bool transposed, uint32_t columns)
{
    const uint32_t groups = (columns + PACK_GROUP - 1) / PACK_GROUP;
    int64_t *change = memory_new((size_t)groups + 1, sizeof *change), open = 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (transposed && p->row[i] < p->row[i + 1])
            touch_groups(change, groups, i, i + 1);
        for (uint64_t k = p->row[i]; !transposed && k < p->row[i + 1]; k++)
            touch_groups(change, groups, p->run[k].begin, p->run[k].end);
    }
    for (uint32_t g = 0; g < groups; g++) {
        open += change[g];
        seen += open > 0;
    }
    free(change);
    return fmin(columns, (double)seen * PACK_GROUP);
}

void count_packed(struct plan *p, const struct mask *m)
{
    p->packed = memory_new(2 * (size_t)p->n_masks, sizeof *p->packed);
    for (uint32_t k = 0; k < 2 * p->n_masks; k++) {
        const bool transposed = k >= p->n_masks;
        const uint32_t columns = plan_sides(p, transposed).columns;
        p->packed[k] = !p->config.request.keys
                           ? columns
                           : count_groups(m->pattern[k % p->n_masks], transposed, columns);
    }
}

double packed_layer(const struct plan *p, bool transposed, uint32_t layer)
{
    double sum = 0;
    for (uint32_t h = 0; h < p->heads; h++)
        sum += packed_of(p, transposed, p->at[(size_t)layer * p->heads + h]);
    return sum / p->heads;
}

double packed_mean(const struct plan *p, bool transposed)
{
    double sum = 0;
    for (uint32_t l = 0; l < p->layers; l++)
        sum += packed_layer(p, transposed, l);
    return sum / p->layers;
}

/* Panels for products, and rows as floats where the caller's are not and no matrix unit takes them. */
struct effort pack_effort(const struct plan *p, double columns, uint32_t uses)
{
    struct effort e = {{0}};
    bool panels = uses & ABI_PACKED_KINDS;
    bool rows = uses && dtype_bytes(p->config.request.dtype) == 2 &&
                !family_is_matrix(p->target, &p->config);
    e.count[UNIT_PACK] = (panels + rows) * columns;
    return e;
}

/* A pass over a mask whose plan has pieces of the kinds `uses`, and the work of each lowering alone. */
struct rejecting {
    const struct plan *plan;
    enum machine_pass pass;
    uint32_t which, uses;
    const struct plan_alone *alone;
};

/* Seconds of a lowering by itself, in the terms of s->predicted. A plan that packs nothing also saves the memory that
   packing moves; with that, too, tiles cost no more than dense. */
static double alone_seconds(const struct rejecting *of, uint32_t k,
                            const struct plan_summary *s)
{
    const struct plan *p = of->plan;
    const uint32_t uses = of->alone->uses[k];
    const double seconds = of->alone->seconds[k];
    const struct effort own =
        pack_effort(p, packed_of(p, of->pass == PASS_DKV, of->which), uses);
    const double plain = seconds + price_of(&p->price[of->pass], &own);
    if (!(uses & ABI_PACKED_KINDS) || of->uses & ABI_PACKED_KINDS)
        return plain;
    return fmax(plain, fmin(seconds + predict_pack(p, of->pass), s->dense_predicted));
}

/* True if a plan of these kinds has nothing but this one. Residue classes as a lowering include what is left of them. */
static bool is_all(uint32_t uses, enum abi_piece_kind kind)
{
    return !uses || uses == 1u << kind || (kind == ABI_RESIDUE && uses >> kind & 1);
}

/* Lists the lowerings that could make the whole plan instead, with their seconds; the plan may use one for a part. */
static void list_rejected(const struct rejecting *of, struct plan_summary *s)
{
    for (uint32_t k = 0; lowerings[k]; k++) {
        const struct lowering *l = lowerings[k];
        const bool dense = l == &lowering_dense;
        if (!of->alone->applied[k] || !strcmp(l->name, s->lowering) ||
            (!dense && is_all(of->uses, l->kind)))
            continue;
        const double seconds = dense ? s->dense_predicted : alone_seconds(of, k, s);
        struct plan_rejected *r = &s->rejected[s->n_rejected++];
        *r = (struct plan_rejected){.predicted = seconds,
                                    .at_least = l->bounds && seconds < s->predicted};
        snprintf(r->lowering, sizeof r->lowering, "%s", l->name);
    }
}

void summary_fill(const struct plan *p, struct plan_pass *pass, uint32_t which,
                  const struct pattern *pattern)
{
    struct plan_summary *s = &pass->summary[which];
    struct tally sum = count(p, pass, which, pattern);
    const bool transposed = is_transposed(p, pass);
    const struct request_sides sides = plan_sides(p, transposed);
    double area = (double)sides.rows * sides.columns;
    const enum machine_pass priced = transposed ? PASS_DKV : PASS_FORWARD;
    const struct price *price = &p->price[priced];
    struct effort own;
    bool walks = sum.of[ABI_DIAGONAL].pieces;
    bool all = sum.entries == (uint64_t)sides.rows * sides.columns && !walks;
    uint32_t uses = 0;
    for (uint32_t k = 0; k < ABI_KINDS; k++)
        uses |= (uint32_t)(sum.of[k].pieces > 0) << k;
    s->executed_fraction = (double)sum.entries / area;
    own = pack_effort(p, packed_of(p, transposed, which), uses);
    effort_add(&s->effort, &own, 1);
    s->predicted = price_of(price, &s->effort);
    s->dense_predicted = price_of(price, &s->dense);
    if (s->dense_predicted < s->predicted) /* a choice for forward and dQ together */
        s->dense_predicted = s->predicted;
    name_lowering(&sum, all, s);
    give_reason(&sum, pattern, area, all, s);
    s->keys = count_keys(p, pattern, transposed);
    set_floor(p, pattern, s);
    list_rejected(&(struct rejecting){p, priced, which, uses, &pass->alone[which]}, s);
}
