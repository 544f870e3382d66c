/* SPDX-License-Identifier: Apache-2.0 */
/* See planned_work.h. Counts come from the tables (tiled), or straight from the mask (resident), in
   plain loops over entries; then templates' steps say how many products each fragment takes. */
#include "tests/support/planned_work.h"
#include "gen/family/cuda_resident.h"
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAND = 16, FRAGMENT = 8, HALF = 16 };

/* Counts of an entry's items: live 16 x 8 fragments, live 16 x 16 halves of tiles, columns that are brought,
   rows of row_blocks. */
struct work {
    uint64_t fragments, halves, columns, rows;
};

/* Number of operations of an entry: products of scores for each step of 16 of D and fragment, products of
   sums for each step and half, operands that are brought of columns, and of rows. */
struct entry {
    const char *name;
    const struct plan_pass *pass;
    uint32_t scores, sums, operands, row_blocks;
};

/* ---- tiled: what stands in the tables ---- */

struct row_block {
    const struct plan_pass *pass;
    const struct abi_item *item;
    uint32_t height, length; /* rows of a pattern; positions that take part */
};

static bool takes_part(const struct row_block *s, uint32_t r)
{
    const struct abi_item *item = s->item;
    return r < item->rows && item->own[r / 32] >> (r % 32) & 1 &&
           item->row0 + item->step * r < s->length;
}

/* Slots of a group, under a pattern or not: its fragments and halves that some row of a band sees. */
static void add_slots(struct work *w, const struct row_block *s, u32 pattern, u32 slots)
{
    const u32 *word = pattern ? s->pass->patterns + (size_t)(pattern - 1) * s->height : NULL;
    for (uint32_t band = 0; band < s->height; band += BAND) {
        u32 seen = 0;
        for (uint32_t r = band; r < band + BAND; r++)
            seen |= takes_part(s, r) ? (word ? word[r] : ~(u32)0) & slots : 0;
        for (uint32_t c = 0; c < ABI_TILE_COLS; c += FRAGMENT)
            w->fragments += (seen >> c & 0xff) != 0;
        for (uint32_t c = 0; c < ABI_TILE_COLS; c += HALF)
            w->halves += (seen >> c & 0xffff) != 0;
    }
}

/* Bits begin .. end - 1 of those from column `first` on. */
static u32 slots_of(uint32_t first, uint32_t begin, uint32_t end)
{
    u32 slots = 0;
    for (uint32_t c = 0; c < ABI_TILE_COLS; c++)
        slots |= (u32)(first + c >= begin && first + c < end) << c;
    return slots;
}

static void add_tile(struct work *w, const struct row_block *s, struct abi_tile t)
{
    if (t.col0 >= s->length)
        return;
    const uint32_t left = s->length - t.col0;
    w->columns += left < ABI_TILE_COLS ? left : ABI_TILE_COLS;
    add_slots(w, s, t.pattern, slots_of(t.col0, t.col0, s->length));
}

/* From a multiple of 16 on; halves are multiples of 16, too. */
static void add_range(struct work *w, const struct row_block *s, struct abi_range r)
{
    const uint32_t end = r.end < s->length ? r.end : s->length;
    if (r.begin >= end)
        return;
    const uint32_t begin = r.begin / HALF * HALF;
    w->columns += end - begin;
    for (uint32_t c = begin; c < end; c += HALF)
        add_slots(w, s, 0, slots_of(c, r.begin, end < c + HALF ? end : c + HALF));
}

static void add_gather(struct work *w, const struct row_block *s, struct abi_gather g)
{
    uint32_t count = 0; /* columns ascend */
    while (count < g.count && s->pass->columns[g.first + count] < s->length)
        count++;
    w->columns += count;
    add_slots(w, s, g.pattern, slots_of(0, 0, count));
}

static void add_piece(struct work *w, const struct row_block *s, const struct abi_piece *p)
{
    for (u32 k = p->first; k < p->first + p->count; k++)
        if (p->kind == ABI_TILES)
            add_tile(w, s, s->pass->tiles[k]);
        else if (p->kind == ABI_BLOCKS)
            add_range(w, s, s->pass->ranges[k]);
        else
            add_gather(w, s, s->pass->gathers[k]);
}

/* Rows alone make no products. */
static void add_item(struct work *w, const struct row_block *s)
{
    const struct abi_item *item = s->item;
    if (item->partial_slots || (item->pieces && s->pass->pieces[item->piece].kind == ABI_ROWS))
        return;
    for (uint32_t r = 0; r < item->rows; r++)
        w->rows += takes_part(s, r);
    for (u32 k = 0; k < item->pieces && item->row0 < s->length; k++)
        add_piece(w, s, &s->pass->pieces[item->piece + k]);
}

static struct work tiled_work(const struct problem *p, const struct plan_pass *t,
                              uint32_t height)
{
    struct work w = {0};
    const uint64_t first = t->layer_work[p->layer][0], count = t->layer_work[p->layer][1];
    for (uint32_t b = 0; b < p->batch; b++)
        for (uint64_t k = first; k < first + count; k++)
            add_item(&w, &(struct row_block){t, &t->items[t->work[k].item], height,
                                             problem_rows(p, b)});
    return w;
}

uint64_t planned_fragments(const struct plan *p, bool transposed)
{
    const struct plan_pass *t = transposed ? &p->transposed : &p->forward;
    struct work w = {0};
    for (uint64_t k = t->layer_work[0][0], end = k + t->layer_work[0][1]; k < end; k++)
        add_item(&w, &(struct row_block){t, &t->items[t->work[k].item], p->block_rows, p->n});
    return w.fragments;
}

/* Sums are multiplied by halves, two fragments each. Above D = 128 they are parted: dQ walks for its
   state first, dK and dV have a walk each. */
static void expect_tiled(const struct maskc_kernel *k, const struct problem *p,
                         struct emulation_entry ret[3])
{
    const struct artifact_plan *plan = &k->artifact->plan[k->target->plan];
    const bool wide = p->head_dim > 128, two = wide || p->transform == ABI_SPARSEGEN;
    const struct entry list[] = {
        {"attention_forward", &plan->forward, 1, 2, 2, 1},
        {"attention_dq", &plan->forward, two ? 4 : 2, two ? 2 : 4, two ? 4 : 2, 3},
        {"attention_dkv", &plan->transposed, wide ? 3 : 2, 4, wide ? 4 : 2, 2},
    };
    const uint64_t steps = (p->head_dim + 15) / 16;
    for (uint32_t e = 0; e < (k->artifact->request.backward ? 3 : 1); e++) {
        struct work w = tiled_work(p, list[e].pass, plan->block_rows);
        snprintf(ret[e].name, sizeof ret[e].name, "%s", list[e].name);
        ret[e].products = steps * (list[e].scores * w.fragments + list[e].sums * w.halves);
        ret[e].copies =
            p->head_dim / 8 * (list[e].operands * w.columns + list[e].row_blocks * w.rows);
    }
}

/* ---- resident: what stands in the mask ---- */

enum { MAX_BANDS = 32 };

/* Halves of column tiles that have an active entry: for each band of 16 queries, in groups of 16 keys. */
struct head {
    uint32_t bands;
    bool half[MAX_BANDS][MAX_BANDS];
};

static void look_at_head(const struct problem *p, uint32_t h, uint32_t length, struct head *ret)
{
    const struct pattern *m = mask_pattern(p->mask, p->layer, h);
    memset(ret, 0, sizeof *ret);
    ret->bands = (length + BAND - 1) / BAND;
    for (uint32_t i = 0; i < length; i++)
        for (uint32_t j = 0; j < length; j++)
            if (pattern_test(m, i, j))
                ret->half[i / BAND][j / HALF] = true;
}

/* Returns the products of band i, where `of` bands share their loads: a loaded fragment is multiplied for all of them. */
static uint64_t shared_cost(bool seen, bool next, uint32_t i, uint32_t of)
{
    return i % of == 0 && (seen || (of == 2 && next)) ? of : 0;
}

/* A half is two fragments. Queries of S, P V, dP and dQ are taken band by band, keys of dV and dK `row_blocks` bands
   together. */
static void add_head(const struct head *d, uint32_t row_blocks, uint64_t *forward,
                     uint64_t *backward)
{
    for (uint32_t i = 0; i < d->bands; i++)
        for (uint32_t k = 0; k < d->bands; k++) {
            *forward += 4 * d->half[i][k];
            *backward += 6 * d->half[i][k];
            *backward += 4 * shared_cost(d->half[i][k], d->half[i][k + 1], k, row_blocks);
        }
}

/* Operands that the backward pass copies of each row: above n = 128 O too, if it fits the memory of P and is not read late
   (templates/cuda/resident/backward_products.h). */
static uint32_t copied_operands(const struct resident_shape *s, uint32_t head_dim)
{
    const uint32_t whole = (s->rows + 15) / 16 * 16, wide = (head_dim + 15) / 16 * 16;
    const bool estimated = s->rows > 128, early = s->row_blocks == 1 && wide <= 64;
    return 4 + (estimated && early && whole >= wide);
}

static void expect_short(const struct maskc_kernel *k, const struct problem *p,
                         struct emulation_entry ret[2])
{
    struct error e;
    struct resident_shape shape = {.row_blocks = 1}, forward_shape = {0};
    struct head *d = memory_new(1, sizeof *d);
    uint64_t forward = 0, backward = 0, rows = 0;
    const struct target *t = target_find(k->target->name, &e);
    resident_backward(t, &k->artifact->request, &shape);
    resident_forward(t, &k->artifact->request, &forward_shape);
    for (uint32_t b = 0; b < p->batch; b++)
        for (uint32_t h = 0; h < p->mask->heads; h++, rows += problem_rows(p, b)) {
            look_at_head(p, h, problem_rows(p, b), d);
            add_head(d, shape.row_blocks, &forward, &backward);
        }
    const uint64_t steps = (p->head_dim + 15) / 16;
    const uint32_t copied = copied_operands(&shape, p->head_dim);
    ret[0] = (struct emulation_entry){"attention_resident_forward", steps * forward,
                                      (2 + forward_shape.q_copied) * rows * (p->head_dim / 8)};
    ret[1] = (struct emulation_entry){"attention_resident_backward", steps * backward,
                                      copied * rows * (p->head_dim / 8)};
    free(d);
}

/* ---- both ---- */

static bool agrees(const struct emulation_work *done, const struct emulation_entry *planned,
                   char *ret, size_t storage)
{
    struct emulation_entry e = {{0}};
    for (uint32_t k = 0; k < done->count; k++)
        if (!strcmp(done->entry[k].name, planned->name))
            e = done->entry[k];
    snprintf(ret, storage, "%s: %llu products, planned %llu; %llu copies, planned %llu",
             planned->name, (unsigned long long)e.products,
             (unsigned long long)planned->products, (unsigned long long)e.copies,
             (unsigned long long)planned->copies);
    return e.products == planned->products && e.copies == planned->copies;
}

static bool is_resident(const struct phase *p)
{
    return !strncmp(p->entry, "attention_resident_", 19);
}

bool work_is_planned(const struct maskc_kernel *k, const struct problem *p,
                     const struct emulation_work *done, char *ret, size_t storage)
{
    struct emulation_entry tiled[3] = {{{0}}}, whole[2] = {{{0}}};
    const struct launch_record *l = &k->target->launch;
    const bool forward = is_resident(&l->forward[0]);
    expect_tiled(k, p, tiled);
    if (forward)
        expect_short(k, p, whole);
    if (!agrees(done, forward ? whole : tiled, ret, storage))
        return false;
    if (!l->n_backward)
        return true;
    if (is_resident(&l->backward[0]))
        return agrees(done, &whole[1], ret, storage);
    return agrees(done, &tiled[1], ret, storage) && agrees(done, &tiled[2], ret, storage);
}

void must_hold_as_planned(const struct maskc_kernel *k, const char *name)
{
    char why[200];
    struct problem p = fixture_problem(k);
    struct emulation_work done;
    emulated_count_work(&done);
    must_hold(k, &p, name);
    emulated_count_work(NULL);
    if (!work_is_planned(k, &p, &done, why, sizeof why))
        fail_msg("%s: %s", name, why);
}

bool pass_merges(const struct plan_pass *p)
{
    for (uint64_t k = 0; k < p->n_items; k++)
        for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
            if (p->items[k].merge[w] && !p->items[k].partial_slots)
                return true;
    return false;
}
