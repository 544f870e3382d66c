/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/walk.h"
#include <stdio.h>
#include <stdlib.h>

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "a table that was read lets a kernel %s\n", what);
    abort();
}

struct walk {
    const struct plan_pass *p;
    uint32_t n, block_rows;
    struct abi_item item;
};

/* An entry (row r of the row block, column) that a kernel would load a key for. */
static void visit(const struct walk *w, uint32_t r, int64_t col)
{
    must(r < w->item.rows && (uint64_t)w->item.row0 + (uint64_t)w->item.step * r < w->n,
         "read a row that is not there");
    must(col >= 0 && col < w->n, "read a column that is not there");
}

static void walk_range(const struct walk *w, uint64_t index)
{
    must(index < w->p->n_ranges, "leave the ranges");
    visit(w, 0, w->p->ranges[index].begin);
    visit(w, w->item.rows - 1, (int64_t)w->p->ranges[index].end - 1);
}

static void walk_tile(const struct walk *w, uint64_t index)
{
    must(index < w->p->n_tiles, "leave the tiles");
    struct abi_tile t = w->p->tiles[index];
    must(t.pattern <= w->p->n_patterns, "leave the patterns");
    for (uint32_t r = 0; r < w->item.rows; r++) {
        uint32_t word = t.pattern
                            ? w->p->patterns[(uint64_t)(t.pattern - 1) * w->block_rows + r]
                            : UINT32_MAX;
        for (uint32_t c = 0; c < 32; c++)
            if (word >> c & 1)
                visit(w, r, (int64_t)t.col0 + c);
    }
}

static void walk_line(const struct walk *w, uint64_t index)
{
    must(index < w->p->n_lines, "leave the lines");
    struct abi_line l = w->p->lines[index];
    for (uint32_t r = l.row_begin; r < l.row_end; r++)
        visit(w, r, (int64_t)l.col0 + (int64_t)l.step * r);
}

static void walk_gather(const struct walk *w, uint64_t index)
{
    must(index < w->p->n_gathers, "leave the gathers");
    struct abi_gather g = w->p->gathers[index];
    must(g.pattern <= w->p->n_patterns, "leave the patterns");
    must(g.count >= 1 && g.count <= 32, "gather more columns than a word has bits");
    for (uint32_t k = 0; k < g.count; k++) {
        must((uint64_t)g.first + k < w->p->n_columns, "leave the columns");
        uint32_t col = w->p->columns[g.first + k];
        must(!k || col > w->p->columns[g.first + k - 1], "take columns out of order");
        visit(w, w->item.rows - 1, col);
    }
    for (uint32_t r = 0; r < w->block_rows && g.pattern; r++)
        must(!(w->p->patterns[(uint64_t)(g.pattern - 1) * w->block_rows + r] &
               ~(UINT32_MAX >> (32 - g.count))),
             "see a column that is not gathered");
}

static uint64_t walk_piece(const struct walk *w, uint64_t index)
{
    static void (*const kinds[ABI_KINDS])(const struct walk *, uint64_t) = {
        [ABI_BLOCKS] = walk_range, [ABI_TILES] = walk_tile,     [ABI_DIAGONAL] = walk_line,
        [ABI_ROWS] = walk_range,   [ABI_COLUMNS] = walk_gather, [ABI_RESIDUE] = walk_gather,
    };
    must(index < w->p->n_pieces, "leave the pieces");
    struct abi_piece p = w->p->pieces[index];
    must(p.kind < ABI_KINDS, "meet an unknown kind");
    for (uint32_t k = 0; k < p.count; k++)
        kinds[p.kind](w, (uint64_t)p.first + k);
    return p.cols;
}

static void walk_item(const struct plan_pass *p, uint32_t n, uint32_t block_rows,
                      uint64_t index)
{
    must(index < p->n_items, "leave the items");
    struct walk w = {p, n, block_rows, p->items[index]};
    uint64_t cols = 0;
    must(w.item.rows >= 1 && w.item.rows <= block_rows, "take more rows than a row block has");
    visit(&w, w.item.rows - 1, 0);
    for (uint32_t k = 0; k < w.item.pieces; k++)
        cols += walk_piece(&w, (uint64_t)w.item.piece + k);
    must(w.item.kernel == ABI_ROW_BLOCK_KERNEL || w.item.pieces == 1, "do half of an item");
    must(cols <= p->max_cols, "need more scratch than it is given");
    must((uint64_t)w.item.partial_slot + w.item.partial_slots <= p->partial_slots,
         "sit where there is no seat");
}

static void walk_pass(const struct plan_pass *p, const struct mask *m, uint32_t block_rows)
{
    for (uint64_t k = 0; k < (uint64_t)m->layers * m->heads; k++) {
        must(k < p->n_heads, "leave the heads");
        for (uint32_t i = 0; i < p->heads[k].items; i++)
            walk_item(p, m->n, block_rows, (uint64_t)p->heads[k].item + i);
    }
    for (uint32_t l = 0; l < m->layers; l++)
        for (uint64_t k = 0; k < p->layer_work[l][1]; k++) {
            must(p->layer_work[l][2] <= p->layer_work[l][1], "have more late work than work");
            must(p->layer_work[l][0] + k < p->n_work, "leave the work");
            struct abi_work w = p->work[p->layer_work[l][0] + k];
            must(w.head < m->heads, "work on a head that is not there");
            walk_item(p, m->n, block_rows, w.item);
        }
}

void walk_artifact(const struct artifact *a)
{
    for (uint32_t k = 0; k < a->n_targets; k++) {
        must(a->target[k].plan < a->n_plans, "take a plan that is not there");
        const struct artifact_plan *p = &a->plan[a->target[k].plan];
        walk_pass(&p->forward, a->mask, p->block_rows);
        if (a->request.backward)
            walk_pass(&p->transposed, a->mask, p->block_rows);
    }
}
