/* SPDX-License-Identifier: Apache-2.0 */
/* Summary of a pass over one mask: the figures of struct plan_summary and the sentence that gives the reason for the
   plan. */
#include "gen/lowering/lowering.h"
#include "gen/plan/internal.h"
#include <stdio.h>
#include <string.h>

/* Visits by kind. */
struct tally {
    uint64_t entries;
    struct visits of[ABI_KINDS];
};

static void add_piece(const struct plan *p, const struct plan_pass *t,
                      const struct abi_item *item, const struct abi_piece *piece,
                      struct tally *sum)
{
    const struct lowering *l = lowering_of(piece->kind);
    struct visits *v = &sum->of[piece->kind];
    const uint64_t entries = l->executed(t, item, piece, p->n);
    sum->entries += entries;
    v->entries += entries;
    v->pieces++;
    v->parts += piece->count;
    v->area += l->area ? l->area(t, item, piece, p->n) : entries;
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

static void give_reason(const struct plan *p, const struct tally *sum,
                        const struct pattern *pattern, bool all, struct plan_summary *s)
{
    struct text text = {0};
    double cells = (double)p->n * p->n;
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

/* Panels for products, and rows as floats where the caller's are not and no matrix unit takes them. */
struct effort pack_effort(const struct plan *p, uint32_t uses)
{
    struct effort e = {{0}};
    bool panels = uses & ABI_PACKED_KINDS;
    bool rows = uses && dtype_bytes(p->config.request.dtype) == 2 &&
                !family_is_matrix(p->target, &p->config);
    e.count[UNIT_PACK] = (double)(panels + rows) * p->n;
    return e;
}

/* Lists the rejected lowerings with their seconds; `pack`: seconds of packing operands. */
static void list_rejected(struct plan_summary *s, const struct plan_alone *alone, double pack)
{
    for (uint32_t k = 0; lowerings[k]; k++) {
        const struct lowering *l = lowerings[k];
        if (!alone->applied[k] || !strcmp(l->name, s->lowering))
            continue;
        const double seconds =
            l == &lowering_dense
                ? s->dense_predicted
                : alone->seconds[k] + (ABI_PACKED_KINDS >> l->kind & 1 ? pack : 0);
        struct plan_rejected *r = &s->rejected[s->n_rejected++];
        *r = (struct plan_rejected){.predicted = seconds};
        snprintf(r->lowering, sizeof r->lowering, "%s", l->name);
    }
}

void summary_fill(const struct plan *p, struct plan_pass *pass, uint32_t which,
                  const struct pattern *pattern)
{
    struct plan_summary *s = &pass->summary[which];
    struct tally sum = count(p, pass, which, pattern);
    double area = (double)p->n * p->n;
    const struct price *price = &p->price[pass == &p->forward ? PASS_FORWARD : PASS_DKV];
    struct effort pack = pack_effort(p, 1u << ABI_TILES), own;
    bool walks = sum.of[ABI_DIAGONAL].pieces;
    bool all = sum.entries == (uint64_t)p->n * p->n && !walks;
    uint32_t uses = 0;
    for (uint32_t k = 0; k < ABI_KINDS; k++)
        uses |= (uint32_t)(sum.of[k].pieces > 0) << k;
    s->executed_fraction = (double)sum.entries / area;
    own = pack_effort(p, uses);
    effort_add(&s->effort, &own, 1);
    s->predicted = price_of(price, &s->effort);
    s->dense_predicted = price_of(price, &s->dense);
    if (s->dense_predicted < s->predicted) /* a choice for forward and dQ together */
        s->dense_predicted = s->predicted;
    name_lowering(&sum, all, s);
    give_reason(p, &sum, pattern, all, s);
    set_floor(p, pattern, s);
    list_rejected(s, &pass->alone[which], price_of(price, &pack));
}
