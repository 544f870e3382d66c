/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of SparseBERT's differentiable attention mask (Shi et al. 2021) in a file: alpha for each entry, two
   logits for each distance |i - j| as its code has them (the first meaning active), or alpha for each distance of the
   interior, whose border is always active. */
#pragma once
#include "masks/readers/readers.h"

enum dam_form {
    DAM_ENTRIES,   /* [H,n,n] */
    DAM_LOGITS,    /* [H,n,2] */
    DAM_DISTANCES, /* [H,n-2] */
};

struct dam_array {
    const struct array_file *file;
    enum dam_form form;
    uint32_t layers, heads; /* layers: 1 unless they stand in front: [L,H,..] */
    uint32_t n;             /* after the crop to r->n */
    bool finite;            /* the reader's wish: infinite numbers are refused */
    bool border; /* first and last row and column are active: of the form, or by r->border */
};

/* By the array's shape; maskbert's own files say which form theirs is. Refuses what is none. */
int dam_array_of(const struct array_file *a, const struct mask_request *r,
                 struct dam_array *ret, struct error *e);
/* Logits of a row by entry [n], or by distance [n], which is the same for every row; active where above 0. The last two
   distances of DAM_DISTANCES are only the border's, and 0 here. Returns -1 if one is NaN or infinite. */
int dam_logits(const struct dam_array *d, uint32_t layer, uint32_t head, uint32_t row,
               double *ret, struct error *e);
static inline bool dam_by_distance(const struct dam_array *d)
{
    return d->form != DAM_ENTRIES;
}
static inline bool dam_is_border(const struct dam_array *d, uint32_t i, uint32_t j)
{
    return d->border && (i == 0 || j == 0 || i + 1 == d->n || j + 1 == d->n);
}
