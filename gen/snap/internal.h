/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions that the files of gen/snap share. */
#pragma once
#include "gen/plan/row_price.h"
#include "gen/snap/snap.h"

/* A row block of one head, and bits of its entries: key j of row r in bit j % 64 of words[r * stride + j / 64]. */
struct block {
    const float *value; /* [rows][n] */
    uint32_t n, row0, rows;
    size_t stride;
};

static inline size_t block_words(const struct block *b)
{
    return b->rows * b->stride;
}

static inline void cells_set(const struct block *b, uint64_t *words, uint32_t r, uint32_t j)
{
    words[r * b->stride + j / 64] |= (uint64_t)1 << (j % 64);
}

static inline bool cells_test(const struct block *b, const uint64_t *words, uint32_t r,
                              uint32_t j)
{
    return words[r * b->stride + j / 64] >> (j % 64) & 1;
}

void cells_columns(const struct block *b, uint64_t *words, uint32_t begin, uint32_t end);
void cells_row(const struct block *b, uint64_t *words, uint32_t r);
/* Sets the diagonal of keys row0 + r + offset, within the mask. */
void cells_diagonal(const struct block *b, uint64_t *words, int64_t offset);
double cells_value(const struct block *b, const uint64_t *words);
/* The most important key of a row; of equal ones the last, as for --keep. */
uint32_t row_most(const float *value, uint32_t n);
/* Adds row_most() to each row. */
void cells_keep_rows(const struct block *b, uint64_t *words);
/* A pattern of length n with only these entries. */
struct pattern *cells_pattern(const struct block *b, const uint64_t *words);

/* Price and value of a candidate of a row block. */
struct point {
    double price, value;
    uint64_t *words;
};

struct points {
    struct point *point;
    uint32_t count, capacity;
};
void points_finish(struct points *p);
/* Keeps the concave hull: ascending in price and value, falling in value over price; the cheapest comes first. */
void points_hull(struct points *p);

/* Candidates of a row block: for any plan, and for plans of lines alone, which pack no operands (none if such a plan is
   impossible). */
struct candidates {
    struct points any, lines;
};

/* Prices candidates of a row block. */
struct pricer {
    struct row_pricer *row;
    struct price price; /* of an entry, a line ..., all passes that count */
    bool training, keep_rows;
};

/* Adds the point of these cells, and another with all entries that are executed anyway if these are more. */
void price_add_points(const struct pricer *x, const struct block *b, const uint64_t *words,
                      struct candidates *ret);

/* All candidates of a row block, priced. */
void candidates_list(const struct pricer *x, const struct block *b, struct candidates *ret);

/* A search over masks of an importance that is cut into row blocks. */
struct search {
    const struct importance *p;
    const struct snap_request *r;
    struct kernel_request kernel;
    double total; /* of the importance */
    double dense; /* seconds */
    uint32_t repeat, block_rows;
};
/* Predicted seconds of a mask, by its whole plan; negative with *e set. */
double search_predict(const struct search *x, const struct mask *m, struct error *e);
struct block search_block(const struct search *x, uint64_t which);
uint64_t search_blocks(const struct search *x); /* row blocks of all heads of all layers */

/* Masks 0 .. last of one kind, each at least as large in what it retains as those before it. */
struct path {
    uint64_t last;
    struct mask *(*mask)(const struct path *path, uint64_t k); /* owned by the caller */
    double (*retained)(const struct path *path, uint64_t k);
    const struct search *search;
    void *data; /* of the kind */
};

/* The last mask of the path within `seconds`, or the faster of the first that retains r->retain and the last of all;
   ret->mask is null if there is none or it retains nothing. More seconds never retain less. */
int path_solve(const struct path *path, double seconds, struct snap_mask *ret, struct error *e);

/* Alternatives to snap's own mask. *ret lives until rival_finish(). */
void rival_begin(const struct search *x, enum snap_kind kind, struct path *ret);
void rival_finish(struct path *path);

/* Steps of all row blocks, by falling value over price. */
void choose_begin(const struct search *x, struct points *hulls, struct path *ret);
void choose_finish(struct path *path);
/* Bound of the linear programme: the highest value of a choice whose row blocks' prices add up to `price`, for one
   sequence, all heads. */
double choose_bound(const struct path *path, double price);
double choose_price(const struct path *path, uint64_t k); /* of the row blocks of mask k */
