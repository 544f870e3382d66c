/* SPDX-License-Identifier: Apache-2.0 */
/* Bisection along a path, and its last mask: plans near dense may be predicted to take longer than dense's. Which masks
   are looked at depends on the time only by the direction that is taken from each: so more time never ends at an earlier
   mask, whatever the plans of masks in between are predicted to take. */
#include "gen/snap/internal.h"

/* Relative error of sums of the importance that are added in another order. */
#define ROUNDING 1e-9

static int measure(const struct path *path, uint64_t k, struct snap_mask *ret, struct error *e)
{
    struct mask *m = path->mask(path, k);
    double seconds = search_predict(path->search, m, e);
    if (seconds < 0) {
        mask_destroy(m);
        return -1;
    }
    *ret = (struct snap_mask){.kind = ret->kind,
                              .mask = m,
                              .predicted = seconds,
                              .share = seconds / path->search->dense};
    return 0;
}

/* *ret becomes mask k if its predicted time is within the limit. */
static int try(const struct path *path, uint64_t k, double seconds, struct snap_mask *ret,
               bool *within, struct error *e)
{
    struct snap_mask next = {.kind = ret->kind};
    if (measure(path, k, &next, e) < 0)
        return -1;
    *within = next.predicted <= seconds;
    mask_destroy(*within ? ret->mask : next.mask);
    if (*within)
        *ret = next;
    return 0;
}

static int bisect(const struct path *path, double seconds, struct snap_mask *ret,
                  struct error *e)
{
    uint64_t low = 0, high = path->last + 1;
    bool within;
    if (try(path, 0, seconds, ret, &within, e) < 0)
        return -1;
    if (!within)
        return 0;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (try(path, middle, seconds, ret, &within, e) < 0)
            return -1;
        if (within)
            low = middle;
        else
            high = middle;
    }
    return 0;
}

static int solve_seconds(const struct path *path, double seconds, struct snap_mask *ret,
                         struct error *e)
{
    bool all;
    if (try(path, path->last, seconds, ret, &all, e) < 0)
        return -1;
    return all ? 0 : bisect(path, seconds, ret, e);
}

/* The first mask that retains enough: its number, or last + 1. */
static uint64_t first_retaining(const struct path *path, double retain)
{
    uint64_t low = 0, high = path->last + 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (path->retained(path, middle) >= retain)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int solve_retain(const struct path *path, double retain, struct snap_mask *ret,
                        struct error *e)
{
    struct snap_mask all = {.kind = ret->kind};
    uint64_t k = first_retaining(path, retain - ROUNDING);
    if (k > path->last)
        return 0;
    if (measure(path, k, ret, e) < 0 ||
        (k < path->last && measure(path, path->last, &all, e) < 0))
        return -1;
    bool faster = all.mask && all.predicted < ret->predicted;
    mask_destroy(faster ? ret->mask : all.mask);
    if (faster)
        *ret = all;
    return 0;
}

int path_solve(const struct path *path, double seconds, struct snap_mask *ret, struct error *e)
{
    double retain = path->search->r->retain;
    int failed =
        retain > 0 ? solve_retain(path, retain, ret, e) : solve_seconds(path, seconds, ret, e);
    if (failed || !ret->mask)
        return failed;
    ret->retained = snap_retained(path->search->p, ret->mask);
    if (ret->retained == 0) {
        mask_destroy(ret->mask);
        ret->mask = NULL;
    }
    return 0;
}
