/* SPDX-License-Identifier: Apache-2.0 */
/* Column gather: isolated columns (globals, the summary columns of fixed masks) that are cheaper gathered than as part
   of a tile or as lines are brought together, 32 at a time. They then cost a tile and the copies. Tiles would visit 32
   columns for one, lines each entry by itself. Row blocks use the same groups of shared columns, so that kernels that
   keep the last groups gather them once; a row block that needs less than half of a group, or gathers its columns
   more cheaply again, puts them into groups of its own. */
#include "gen/cost/margins.h"
#include "gen/lowering/fragments.h"
#include "gen/lowering/gathers.h"
#include "masks/base/memory.h"
#include <string.h>

extern const struct lowering lowering_columns;

/* Index of the column among the shared ones; n_shared if it is not shared. */
static uint32_t find_shared(const struct row_block *s, u32 column)
{
    uint32_t low = 0, high = s->n_shared;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (s->shared[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n_shared && s->shared[low] == column ? low : s->n_shared;
}

static void count_columns(const u32 *word, uint32_t rows, uint32_t count[ABI_TILE_COLS])
{
    memset(count, 0, ABI_TILE_COLS * sizeof *count);
    for (uint32_t r = 0; r < rows; r++)
        for (u32 left = word[r]; left; left &= left - 1)
            count[__builtin_ctz(left)]++;
}

/* Cost of walking the entries without the columns of `less`. A line begins at an entry with no entry above it. */
static double walk_price(const struct price *p, const u32 *word, uint32_t rows, u32 less)
{
    uint32_t cells = 0, lines = 0;
    u32 last = 0, any = 0;
    for (uint32_t r = 0; r < rows; r++) {
        u32 now = word[r] & ~less;
        cells += (uint32_t)__builtin_popcount(now);
        lines += (uint32_t)__builtin_popcount(now & ~(last | last << 1));
        last = now;
        any |= now;
    }
    return price_lines(p, rows, cells, lines, __builtin_popcount(any));
}

/* Columns to gather from a tile that is priced by its fragments: all of them, which removes the tile, or those of
   fragments that cost more than their columns gathered. A gathered column is priced as an eighth of a fragment in each
   band of rows. */
static u32 choose_by_fragment(const struct row_block *s, const struct price *p, const u32 *word)
{
    const double column = gathered_column_price(p, s->rows);
    u32 any = 0, chosen = 0;
    for (uint32_t r = 0; r < s->rows; r++)
        any |= word[r];
    if (__builtin_popcount(any) * column < (1 - LEAST_TILE_GAIN) * tile_price(s, p, word))
        return any;
    for (u32 eight = 0xff; eight; eight <<= FRAGMENT_COLS) {
        u32 alone[ABI_MAX_BLOCK_ROWS];
        for (uint32_t r = 0; r < s->rows; r++)
            alone[r] = word[r] & eight;
        if (__builtin_popcount(any & eight) * column <
            (1 - LEAST_TILE_GAIN) * fragments_price(s, p, alone))
            chosen |= any & eight;
    }
    return chosen;
}

/* Bit k: column k of the tile is a shared one, which other row blocks have gathered. */
static u32 shared_bits(const struct row_block *s, uint32_t tile)
{
    u32 ret = 0;
    for (uint32_t k = 0; k < ABI_TILE_COLS && s->n_shared; k++)
        ret |= (u32)(find_shared(s, tile * ABI_TILE_COLS + k) < s->n_shared) << k;
    return ret;
}

/* The columns of a tile that are worth gathering. A tile with an empty half is priced as a whole one: with the price of
   a half fewer columns are gathered, and longformer (n = 2048, forward, x86-64-amx) is predicted to need 1.4 % more. */
static u32 choose(const struct row_block *s, const struct price *p, const u32 *word,
                  uint32_t tile_at)
{
    if (s->fragments)
        return choose_by_fragment(s, p, word);
    uint32_t count[ABI_TILE_COLS];
    double tile = whole_tile_price(s, p), column = gathered_column_price(p, s->rows);
    double all = walk_price(p, word, s->rows, 0), best = all < tile ? all : tile;
    u32 heavy = 0, shared = shared_bits(s, tile_at);
    count_columns(word, s->rows, count);
    for (uint32_t k = 0; k < ABI_TILE_COLS; k++) {
        double price = column - (shared >> k & 1 ? p->gather : 0);
        if (count[k] && price_lines(p, s->rows, count[k], 1, 1) > price)
            heavy |= (u32)1 << k;
    }
    double ours =
        __builtin_popcount(heavy) * column - __builtin_popcount(heavy & shared) * p->gather;
    if (!heavy || ours >= (1 - LEAST_TILE_GAIN) * best)
        return 0;
    return ours + walk_price(p, word, s->rows, heavy) < (1 - LEAST_TILE_GAIN) * best ? heavy
                                                                                     : 0;
}

static bool applies(const struct row_block *s, const struct price *p)
{
    if (p->gather <= 0)
        return false;
    for (uint32_t k = 0; k < s->n_touched; k++)
        if (choose(s, p, row_block_tile(s, s->bits, s->touched[k]), s->touched[k]))
            return true;
    return false;
}

static void count_alone(struct row_block *s, struct effort *ret)
{
    uint64_t columns = (uint64_t)ABI_TILE_COLS * row_block_solid_tiles(s);
    for (uint32_t k = 0; k < s->n_touched; k++) {
        const u32 *word = row_block_tile(s, s->bits, s->touched[k]);
        u32 any = 0;
        for (uint32_t r = 0; r < s->rows; r++)
            any |= word[r];
        columns += (uint32_t)__builtin_popcount(any);
    }
    uint64_t whole = columns / ABI_TILE_COLS, rest = columns % ABI_TILE_COLS;
    ret->count[UNIT_GATHER] += (double)columns;
    ret->count[UNIT_PARTIAL] += (double)whole * gathers_entries(s->rows, ABI_TILE_COLS) +
                                (rest ? gathers_entries(s->rows, (uint32_t)rest) : 0);
}

/* The group that is being filled. */
struct group {
    u32 column[ABI_TILE_COLS];
    u32 word[ABI_MAX_BLOCK_ROWS]; /* bit k: the row sees column[k] */
    uint32_t count;
};

static bool is_full(const struct row_block *s, const struct group *g)
{
    u32 all = ~(u32)0 >> (ABI_TILE_COLS - g->count);
    for (uint32_t r = 0; r < s->rows; r++)
        if (row_block_owns(s, r) && g->word[r] != all)
            return false;
    return true;
}

static void close_group(const struct row_block *s, struct draft *d, struct group *g)
{
    if (!g->count)
        return;
    bool full = is_full(s, g);
    struct abi_gather gather = {(u32)d->n_columns, g->count, 0};
    if (!full) {
        gather.pattern = (u32)(d->n_words / s->block_rows) + 1;
        memcpy(draft_pattern(d, s->block_rows), g->word, s->block_rows * sizeof *g->word);
    }
    for (uint32_t k = 0; k < g->count; k++)
        *MEMORY_PUSH(d->columns, d->n_columns, d->columns_capacity) = g->column[k];
    *MEMORY_PUSH(d->gathers, d->n_gathers, d->gathers_capacity) = gather;
    memset(g, 0, sizeof *g);
}

/* Moves one column of a tile to a group's place. */
static void take_column(const struct row_block *s, u32 *word, uint32_t bit, struct group *g,
                        uint32_t at)
{
    for (uint32_t r = 0; r < s->rows; r++) {
        g->word[r] |= (word[r] >> bit & 1) << at;
        word[r] &= ~((u32)1 << bit);
    }
}

/* Shared columns, 32 a group. */
struct shared_groups {
    struct group group[COLUMNS_SHARED / ABI_TILE_COLS];
    uint32_t used
        [COLUMNS_SHARED /
         ABI_TILE_COLS]; /* columns of each group that the row block gathers; 0: in its own groups */
    uint32_t own;        /* other columns that it gathers */
};

static void count_taken(const struct row_block *s, const struct price *p,
                        struct shared_groups *ret)
{
    for (uint32_t k = 0; k < s->n_touched && s->n_shared; k++) {
        const u32 *word = row_block_tile(s, s->open, s->touched[k]);
        for (u32 left = choose(s, p, word, s->touched[k]); left; left &= left - 1) {
            u32 column = s->touched[k] * ABI_TILE_COLS + (uint32_t)__builtin_ctz(left);
            uint32_t at = find_shared(s, column);
            if (at < s->n_shared)
                ret->used[at / ABI_TILE_COLS]++;
            else
                ret->own++;
        }
    }
}

/* Gives up a shared group if the row block gathers less than half of its columns, or so few that gathering them again in
   a group that the row block needs anyway costs less than the product. */
static void join_shared(const struct row_block *s, const struct price *p,
                        struct shared_groups *x)
{
    const double product = gathers_entries(s->rows, 0) * p->partial;
    for (uint32_t k = COLUMNS_SHARED / ABI_TILE_COLS; k-- > 0;) {
        const bool little = 2 * x->used[k] < x->group[k].count;
        const bool fits = x->own && x->own + x->used[k] <= ABI_TILE_COLS;
        if (!little && !(fits && x->used[k] * p->gather < product))
            continue;
        x->own += x->used[k];
        x->used[k] = 0;
    }
}

static void open_shared(const struct row_block *s, const struct price *p,
                        struct shared_groups *ret)
{
    memset(ret, 0, sizeof *ret);
    count_taken(s, p, ret);
    for (uint32_t k = 0; k < s->n_shared; k++) {
        struct group *g = &ret->group[k / ABI_TILE_COLS];
        g->column[g->count++] = s->shared[k];
    }
    join_shared(s, p, ret);
}

/* Returns the group of a column: a shared one, or the row block's own, to which the column is added. *ret_at is its place
   in the group. */
static struct group *find_group(const struct row_block *s, struct shared_groups *shared,
                                struct group *own, u32 column, uint32_t *ret_at)
{
    uint32_t at = find_shared(s, column), k = at / ABI_TILE_COLS;
    if (at < s->n_shared && shared->used[k]) {
        *ret_at = at % ABI_TILE_COLS;
        return &shared->group[k];
    }
    *ret_at = own->count++;
    own->column[*ret_at] = column;
    return own;
}

static void build(struct row_block *s, const struct price *p, struct draft *d)
{
    uint64_t first = d->n_gathers, columns = d->n_columns;
    struct group own = {.count = 0};
    struct shared_groups shared;
    open_shared(s, p, &shared);
    for (uint32_t k = 0; k < s->n_touched; k++) {
        u32 *word = row_block_tile(s, s->open, s->touched[k]);
        for (u32 left = choose(s, p, word, s->touched[k]); left; left &= left - 1) {
            uint32_t bit = (uint32_t)__builtin_ctz(left), at;
            u32 column = s->touched[k] * ABI_TILE_COLS + bit;
            struct group *g = find_group(s, &shared, &own, column, &at);
            take_column(s, word, bit, g, at);
            if (own.count == ABI_TILE_COLS)
                close_group(s, d, &own);
        }
    }
    close_group(s, d, &own);
    const uint64_t own_groups = d->n_gathers;
    for (uint32_t k = 0; k * ABI_TILE_COLS < s->n_shared; k++)
        if (shared.used[k])
            close_group(s, d, &shared.group[k]);
    d->n_kept = (uint32_t)(d->n_gathers - own_groups);
    if (d->n_gathers > first)
        draft_piece(d, ABI_COLUMNS, first, d->n_gathers - first, d->n_columns - columns);
}

static void reason(const struct visits *v, double cells, struct text *out)
{
    text_add(out, "scattered columns gathered: %.3g%%, %.3g%% active",
             100 * (double)v->entries / cells, 100 * (double)v->active / cells);
}

const struct lowering lowering_columns = {
    .name = "columns",
    .part = "column group",
    .kind = ABI_COLUMNS,
    .table = TABLE_GATHERS,
    .fits_item = item_is_row_block,
    .active = gathers_active,
    .reason = reason,
    .told = 3,
    .optional = true,
    .applies = applies,
    .count_alone = count_alone,
    .build = build,
    .decode = gathers_decode,
    .columns = gathers_columns,
    .count = gathers_count,
    .executed = gathers_executed,
    .print = gathers_print,
};
