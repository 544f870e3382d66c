/* SPDX-License-Identifier: Apache-2.0 */
/* One table says which rates make a unit's price and what they are multiplied with; pricing and
   fitting read it from either side. */
#include "gen/cost/price.h"
#include <math.h>
#include <string.h>

enum scale {
    ONE,
    DIM,      /* elements of a row of a head */
    FLOP,     /* two products of D multiply-adds */
    FAR,      /* bytes of a key and a value that the cache lacks, as walks read them ... */
    TILE_FAR, /* ... and as tiles do, shared by the rows of a row block */
    RANGE_FAR, /* ... and what it lacks beyond FAR where a range of packed rows is far from the one before */
    BIAS_ONE,  /* one, and ... */
    BIAS_FLOP, /* ... two products, where there is a bias */
    SCALES
};

static const struct {
    enum unit unit;
    enum rate rate;
    enum scale scale;
} terms[] = {
    {UNIT_FULL, RATE_TILE_FLOP, FLOP},
    {UNIT_FULL, RATE_TILE_ENTRY, ONE},
    {UNIT_PARTIAL, RATE_TILE_FLOP, FLOP},
    {UNIT_PARTIAL, RATE_TILE_ENTRY, ONE},
    {UNIT_PARTIAL, RATE_TILE_MASK, ONE},
    {UNIT_GATHER, RATE_GATHER, DIM},
    {UNIT_GATHER, RATE_FAR, FAR},
    {UNIT_WALK, RATE_LINE_FLOP, FLOP},
    {UNIT_WALK, RATE_LINE_ENTRY, ONE},
    {UNIT_COLUMN, RATE_FAR, FAR},
    {UNIT_LINE, RATE_LINE, ONE},
    {UNIT_LINE_ROW, RATE_LINE_ROW, ONE},
    {UNIT_ROW, RATE_ROW_FLOP, FLOP},
    {UNIT_ROW, RATE_ROW_ENTRY, ONE},
    {UNIT_ROW, RATE_FAR, FAR},
    {UNIT_ROW_ITEM, RATE_ROW_ITEM, ONE},
    {UNIT_ROW_RANGE, RATE_ROW_RANGE, ONE},
    {UNIT_ROW_RANGE, RATE_FAR, RANGE_FAR},
    {UNIT_ITEM, RATE_ITEM, ONE},
    {UNIT_ITEM_ROW, RATE_ITEM_ELEMENT, DIM},
    {UNIT_FULL, RATE_TILE_FAR, TILE_FAR},
    {UNIT_PARTIAL, RATE_TILE_FAR, TILE_FAR},
    {UNIT_MIXED, RATE_MIXED, ONE},
    {UNIT_MIXED_ROW, RATE_MIXED_ROW, ONE},
    {UNIT_PACK, RATE_PACK, DIM},
    {UNIT_STREAM, RATE_STREAM, ONE},
    {UNIT_EXPOSED, RATE_EXPOSED, ONE},
    {UNIT_LOOP, RATE_LOOP, ONE},
    {UNIT_PARTIAL_ROW, RATE_PARTIAL, DIM},
    {UNIT_FULL, RATE_BIAS, BIAS_ONE},
    {UNIT_FULL, RATE_BIAS_FLOP, BIAS_FLOP},
    {UNIT_PARTIAL, RATE_BIAS, BIAS_ONE},
    {UNIT_PARTIAL, RATE_BIAS_FLOP, BIAS_FLOP},
    {UNIT_WALK, RATE_BIAS, BIAS_ONE},
    {UNIT_WALK, RATE_BIAS_FLOP, BIAS_FLOP},
    {UNIT_ROW, RATE_BIAS, BIAS_ONE},
    {UNIT_ROW, RATE_BIAS_FLOP, BIAS_FLOP},
};

enum { TERMS = sizeof terms / sizeof *terms };

typedef char one_price_a_unit[sizeof(struct price) == UNITS * sizeof(double) ? 1 : -1];

double cache_miss(double size, double cache)
{
    const double half = 1.6; /* times the cache's size: half of the bytes miss */
    double x = cache > 0 ? size / (half * cache) : 0;
    return x * x * x / (1 + x * x * x);
}

/* The share of a cache's sets that the rows of a head can use. Rows that lie a multiple of a large power of two apart
   fall on a few sets. */
static double used_share(struct price_shape s)
{
    enum { PAGE = 4096 };
    uint64_t row = (uint64_t)s.config->request.head_dim * dtype_bytes(s.config->request.dtype);
    uint64_t stride = row * s.heads, step = stride & -stride;
    step = step < PAGE ? step : PAGE;
    return row < step ? (double)row / (double)step : 1;
}

/* Share of the cache that keeps packed rows which are read in no order. From random masks of bf16 on AVX2, n = 512: at
   D = 64 a range costs 3 ns more than its keys, at D = 128 14 to 20 ns. */
#define SCATTERED_SHARE 0.35

/* Lines read the caller's tensors where these are f32 or where there is a matrix unit. Tiles read packed operands,
   except for f32 values. Packed operands are contiguous, so they use every set of the cache. */
static void make_scales(const struct machine *m, struct price_shape s, double ret[SCALES])
{
    const struct kernel_request *r = &s.config->request;
    bool matrix = s.matrix, floats = dtype_bytes(r->dtype) == 4;
    double walk = 2.0 * r->head_dim * (matrix ? dtype_bytes(r->dtype) : 4);
    double tile = 2.0 * r->head_dim * (matrix ? 2 : 4), share = used_share(s);
    ret[ONE] = 1;
    ret[DIM] = r->head_dim;
    ret[FLOP] = 4.0 * r->head_dim;
    ret[BIAS_ONE] = r->bias != ABI_BIAS_NONE;
    ret[BIAS_FLOP] = ret[BIAS_ONE] * ret[FLOP];
    ret[FAR] = walk * cache_miss(walk * s.n, m->cache * (matrix || floats ? share : 1));
    ret[RANGE_FAR] = matrix || floats
                         ? 0
                         : walk * (cache_miss(walk * s.n, m->cache * SCATTERED_SHARE) -
                                   cache_miss(walk * s.n, m->cache));
    ret[TILE_FAR] =
        tile * cache_miss(tile * s.n, m->cache * (floats ? share : 1)) / s.block_rows;
}

/* A thread block with a tall row block takes the resources of two. Its time per unit of work halves, its start-up does
   not. A byte that it loads serves twice the rows. */
static double tall_share(const struct kernel_config *c, int unit)
{
    return !c->tall || unit == UNIT_ITEM || unit == UNIT_ROW_ITEM || unit == UNIT_LOOP ? 1
                                                                                       : 0.5;
}

/* Sparsegen on a CPU: the search for tau goes over the scores again, forward alone. Measured, dense, n = 128 to 2048: three
   to four times what softmax takes for an entry. */
static void add_search(const struct machine *m, enum machine_pass pass, struct price_shape s,
                       double price[UNITS])
{
    static const enum unit entries[] = {UNIT_FULL, UNIT_PARTIAL, UNIT_WALK, UNIT_ROW};
    enum { SEARCH = 3 };
    if (pass != PASS_FORWARD || s.target->kind != TARGET_CPU ||
        s.config->request.transform != ABI_SPARSEGEN)
        return;
    for (size_t k = 0; k < sizeof entries / sizeof *entries; k++)
        price[entries[k]] += SEARCH * m->rate[pass][RATE_TILE_ENTRY];
}

struct price price_make(const struct machine *m, enum machine_pass pass, struct price_shape s)
{
    double scale[SCALES], price[UNITS] = {0};
    make_scales(m, s, scale);
    for (int k = 0; k < TERMS; k++)
        price[terms[k].unit] += m->rate[pass][terms[k].rate] * scale[terms[k].scale];
    add_search(m, pass, s, price);
    if (m->rate[pass][RATE_LINE_ENTRY] <= 0) /* these templates have no lines */
        price[UNIT_WALK] = 0;
    for (int k = 0; k < UNITS; k++)
        price[k] *= tall_share(s.config, k);
    struct price ret;
    memcpy(&ret, price, sizeof ret);
    return ret;
}

struct price price_add(struct price a, struct price b)
{
    double x[UNITS], y[UNITS];
    memcpy(x, &a, sizeof a);
    memcpy(y, &b, sizeof b);
    for (int k = 0; k < UNITS; k++)
        x[k] += y[k];
    memcpy(&a, x, sizeof a);
    return a;
}

double price_of(const struct price *p, const struct effort *e)
{
    double price[UNITS], sum = 0;
    memcpy(price, p, sizeof price);
    for (int k = 0; k < UNITS; k++)
        sum += price[k] * e->count[k];
    return sum;
}

void effort_add(struct effort *to, const struct effort *e, double times)
{
    for (int k = 0; k < UNITS; k++)
        to->count[k] += e->count[k] * times;
}

void effort_terms(const struct machine *m, struct price_shape s, const struct effort *e,
                  double ret[RATES])
{
    double scale[SCALES];
    make_scales(m, s, scale);
    memset(ret, 0, RATES * sizeof *ret);
    for (int k = 0; k < TERMS; k++)
        ret[terms[k].rate] += e->count[terms[k].unit] * scale[terms[k].scale] *
                              tall_share(s.config, terms[k].unit);
}

double line_entries(uint32_t rows, double cells, double lines)
{
    double missing = lines * rows - cells, more = lines * (LINE_GRAIN - 1);
    return cells + (missing < more ? missing : more);
}

double line_columns(uint32_t rows, double columns, double lines)
{
    return lines > LINES_KEPT ? columns * rows / LINE_GRAIN : columns;
}

double price_lines(const struct price *p, uint32_t rows, double cells, double lines,
                   double columns)
{
    if (p->walk <= 0)
        return cells > 0 ? INFINITY : 0;
    return line_entries(rows, cells, lines) * p->walk + lines * p->line +
           line_columns(rows, columns, lines) * p->column;
}

double range_entries(uint32_t rows, uint32_t columns)
{
    uint32_t grains = (columns + RANGE_GRAIN - 1) / RANGE_GRAIN;
    return (double)rows * grains * RANGE_GRAIN;
}
