/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to masks: candidates of all row blocks, paths, the best. */
#include "gen/snap/snap.h"
#include "gen/snap/internal.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

const char *const snap_kind_names[SNAP_KINDS] = {"snap", "magnitude", "tiles", "window",
                                                 "distances"};

static double sum_pattern(const float *value, const struct pattern *p)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint64_t k = p->row[i]; k < p->row[i + 1]; k++)
            for (uint32_t j = p->run[k].begin; j < p->run[k].end; j++)
                sum += value[(size_t)i * p->n + j];
    return sum;
}

static double sum_values(const float *value, size_t count)
{
    double sum = 0;
    for (size_t k = 0; k < count; k++)
        sum += value[k];
    return sum;
}

static double sum_all(const struct importance *p)
{
    return sum_values(p->value, (size_t)p->layers * p->heads * p->n * p->n);
}

double snap_retained_head(const struct importance *p, const struct mask *m, uint32_t layer,
                          uint32_t head)
{
    const float *value = importance_head(p, layer, head);
    double all = sum_values(value, (size_t)p->n * p->n);
    double sum = sum_pattern(value, mask_pattern(m, layer, head));
    return all > 0 ? fmin(sum / all, 1) : 0;
}

double snap_retained(const struct importance *p, const struct mask *m)
{
    double sum = 0, all = sum_all(p);
    for (uint32_t l = 0; l < p->layers; l++)
        for (uint32_t h = 0; h < p->heads; h++)
            sum += sum_pattern(importance_head(p, l, h), mask_pattern(m, l, h));
    return sum < all ? sum / all : 1;
}

uint64_t search_blocks(const struct search *x)
{
    uint64_t each = (x->p->n + x->block_rows - 1) / x->block_rows;
    return each * x->p->layers * x->p->heads;
}

struct block search_block(const struct search *x, uint64_t which)
{
    uint32_t n = x->p->n, each = (n + x->block_rows - 1) / x->block_rows;
    uint32_t row0 = (uint32_t)(which % each) * x->block_rows;
    return (struct block){.value = x->p->value + which / each * n * n + (size_t)row0 * n,
                          .n = n,
                          .row0 = row0,
                          .rows = n - row0 < x->block_rows ? n - row0 : x->block_rows,
                          .stride = ((size_t)n + 63) / 64};
}

static double sum_layers(const struct search *x, const struct plan *p)
{
    const struct snap_request *r = x->r;
    uint32_t batch = r->batch ? r->batch : 1, threads = r->threads ? r->threads : 1;
    double sum = 0;
    for (uint32_t l = 0; l < p->layers; l++)
        for (int backward = 0; backward <= r->training; backward++)
            sum += plan_predict(p, backward, l, batch, threads);
    return sum;
}

double search_predict(const struct search *x, const struct mask *m, struct error *e)
{
    struct mask *more = x->repeat > 1 ? mask_repeat_heads(m, x->repeat, e) : NULL;
    if (x->repeat > 1 && !more)
        return -1;
    const struct plan_options plain = {.plain = true}; /* as row blocks are priced */
    struct plan *p =
        plan_build(more ? more : m, x->r->target, &x->kernel, x->r->machine, &plain, e);
    double seconds = p ? sum_layers(x, p) : -1;
    plan_destroy(p);
    mask_destroy(more);
    return seconds;
}

/* The mask with all entries or none. */
static struct mask *uniform_mask(const struct importance *p, bool on)
{
    struct pattern *all = pattern_new(p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        if (on)
            pattern_add(all, i, 0, p->n);
        pattern_row(all, i);
    }
    pattern_finish(all);
    size_t places = (size_t)p->layers * p->heads;
    struct pattern **given = memory_new(places, sizeof *given);
    for (size_t k = 0; k < places; k++)
        given[k] = all;
    struct mask *m = mask_new(p->layers, p->heads, given, on ? "dense" : "none");
    free(given);
    return m;
}

static double predict_uniform(const struct search *x, bool on, struct error *e)
{
    struct mask *m = uniform_mask(x->p, on);
    double seconds = search_predict(x, m, e);
    mask_destroy(m);
    return seconds;
}

static void tell(const struct snap_request *r, double done, const char *what)
{
    if (r->progress)
        r->progress(r->progress_context, done, what);
}

static struct price prices_of(const struct row_pricer *row, bool training)
{
    const struct price *p = row_pricer_prices(row);
    struct price sum = p[PASS_FORWARD];
    return training ? price_add(price_add(sum, p[PASS_DQ]), p[PASS_DKV]) : sum;
}

/* Hulls of all row blocks. */
struct hulls {
    struct points *any, *lines;
    bool has_lines; /* in every row block */
    uint64_t blocks;
};

static struct hulls find_hulls(const struct search *x, struct row_pricer *row)
{
    const struct pricer pricer = {row, prices_of(row, x->r->training), x->r->training,
                                  x->r->keep_rows};
    struct hulls h = {.blocks = search_blocks(x), .has_lines = true};
    h.any = memory_new(h.blocks, sizeof *h.any);
    h.lines = memory_new(h.blocks, sizeof *h.lines);
    for (uint64_t k = 0; k < h.blocks; k++) {
        struct block b = search_block(x, k);
        struct candidates c = {{0}};
        candidates_list(&pricer, &b, &c);
        points_hull(&c.any);
        points_hull(&c.lines);
        h.any[k] = c.any;
        h.lines[k] = c.lines;
        h.has_lines = h.has_lines && c.lines.count;
        tell(x->r, .6 * (double)(k + 1) / (double)h.blocks, "row blocks");
    }
    return h;
}

static void hulls_finish(struct hulls *h)
{
    for (uint64_t k = 0; k < h->blocks; k++) {
        points_finish(&h->any[k]);
        points_finish(&h->lines[k]);
    }
    free(h->any);
    free(h->lines);
}

static int check(const struct importance *p, const struct snap_request *r, struct error *e)
{
    int given = (r->share > 0) + (r->seconds > 0) + (r->retain > 0);
    if (r->share != 0 && !(r->share > 0 && r->share <= 1))
        return error_set(e, ERROR_INPUT,
                         "snap: a share of %g, above 0 and at most 1 is expected", r->share);
    if (r->retain != 0 && !(r->retain > 0 && r->retain <= 1))
        return error_set(e, ERROR_INPUT,
                         "snap: %g of the importance, above 0 and at most 1 is expected",
                         r->retain);
    if (r->seconds != 0 && !(r->seconds > 0 && r->seconds < INFINITY))
        return error_set(e, ERROR_INPUT, "snap: %g seconds, a time above 0 is expected",
                         r->seconds);
    if (given != 1)
        return error_set(e, ERROR_INPUT,
                         "snap: one of a share, a time and what to retain is expected");
    if (r->training && !r->kernel.backward)
        return error_set(e, ERROR_INPUT, "snap: training needs a kernel with a backward pass");
    return importance_check(p, "snap", e);
}

/* Finds the best mask of one kind. */
static int solve_kind(const struct search *x, const struct path *path, enum snap_kind kind,
                      double seconds, struct snap_result *ret, struct error *e)
{
    tell(x->r, .6 + .4 * kind / SNAP_KINDS, snap_kind_names[kind]);
    ret->kind[kind].kind = kind;
    return path_solve(path, seconds, &ret->kind[kind], e);
}

static int solve_rivals(const struct search *x, double seconds, struct snap_result *ret,
                        struct error *e)
{
    int failed = 0;
    for (int k = SNAP_ROW_BLOCKS + 1; k < SNAP_KINDS && !failed; k++) {
        struct path path;
        rival_begin(x, (enum snap_kind)k, &path);
        failed = solve_kind(x, &path, (enum snap_kind)k, seconds, ret, e);
        rival_finish(&path);
    }
    return failed;
}

/* Seconds that are left for row blocks: without launches, with all workers busy. */
static double row_block_seconds(const struct search *x, double seconds)
{
    uint32_t threads = x->r->threads ? x->r->threads : 1, batch = x->r->batch ? x->r->batch : 1;
    bool cpu = x->r->machine->kind == TARGET_CPU;
    double workers = cpu ? threads : x->r->machine->workers ? x->r->machine->workers : 1;
    double launches = x->p->layers * x->r->machine->launch * (x->r->training ? 3 : 1);
    return (seconds - launches) * workers / batch / x->repeat;
}

/* True if a keeps more in the time, or as much in less time. */
static bool is_better(const struct snap_request *r, const struct snap_mask *a,
                      const struct snap_mask *b)
{
    if (!a->mask || !b->mask)
        return a->mask != NULL;
    if (r->retain > 0)
        return a->predicted < b->predicted;
    return a->retained > b->retained ||
           (a->retained == b->retained && a->predicted < b->predicted);
}

/* Replaces snap's own mask by that of these hulls if it is better. */
static int solve_hulls(const struct search *x, const struct path *path, double seconds,
                       struct snap_result *ret, struct error *e)
{
    struct snap_mask before = ret->kind[SNAP_ROW_BLOCKS];
    ret->kind[SNAP_ROW_BLOCKS].mask = NULL;
    int failed = solve_kind(x, path, SNAP_ROW_BLOCKS, seconds, ret, e);
    bool better = is_better(x->r, &ret->kind[SNAP_ROW_BLOCKS], &before);
    mask_destroy(better ? before.mask : ret->kind[SNAP_ROW_BLOCKS].mask);
    if (!better)
        ret->kind[SNAP_ROW_BLOCKS] = before;
    return failed;
}

static void choose_best(const struct search *x, struct snap_result *ret)
{
    ret->best = ret->kind[SNAP_ROW_BLOCKS];
    for (int k = 1; k < SNAP_KINDS && !x->r->uniform; k++)
        if (is_better(x->r, &ret->kind[k], &ret->best))
            ret->best = ret->kind[k];
}

/* Finds masks of all kinds. `pack`: seconds of packing one head's operands, which all heads need. */
static int solve(const struct search *x, const struct hulls *h, double pack, double seconds,
                 struct snap_result *ret, struct error *e)
{
    struct path any, lines;
    choose_begin(x, h->any, &any);
    int failed = solve_hulls(x, &any, seconds, ret, e);
    if (h->has_lines)
        choose_begin(x, h->lines, &lines);
    if (h->has_lines && !failed)
        failed = solve_hulls(x, &lines, seconds, ret, e);
    if (!failed)
        failed = solve_rivals(x, seconds, ret, e);
    choose_best(x, ret);
    double left = row_block_seconds(x, x->r->retain > 0 ? ret->best.predicted : seconds);
    ret->bound = choose_bound(&any, left - pack * x->p->layers * x->p->heads);
    ret->bound = fmax(ret->bound, h->has_lines ? choose_bound(&lines, left) : 0);
    ret->bound = fmax(ret->bound, ret->best.retained);
    choose_finish(&any);
    if (h->has_lines)
        choose_finish(&lines);
    return failed;
}

/* The fastest mask of all kinds that retains anything is named, rounded up. */
static int refuse_time(const struct search *x, const struct hulls *h, double pack,
                       struct error *e)
{
    struct snap_request anything = *x->r;
    struct search y = *x;
    struct snap_result s = {0};
    anything.share = anything.seconds = 0;
    anything.retain = 2e-9; /* above the rounding of sums */
    anything.progress = NULL;
    y.r = &anything;
    if (solve(&y, h, pack, 0, &s, e) == 0)
        error_set(
            e, ERROR_FALSE,
            "no mask is within that time: the least that can be reached is %.4g of dense's",
            ceil(s.best.share * 1e4) / 1e4);
    snap_result_finish(&s);
    return -1;
}

int snap_solve(const struct importance *p, const struct snap_request *r,
               struct snap_result *ret, struct error *e)
{
    struct search x = {
        .p = p, .r = r, .kernel = r->kernel, .repeat = r->repeat ? r->repeat : 1};
    struct snap_result s = {0};
    if (check(p, r, e) < 0)
        return -1;
    x.kernel.length = p->n;
    struct row_pricer *row =
        row_pricer_new(p->heads * x.repeat, r->target, &x.kernel, r->machine, e);
    if (!row)
        return -1;
    x.block_rows = row_pricer_block_rows(row);
    x.total = sum_all(p);
    double least = predict_uniform(&x, false, e);
    x.dense = least < 0 ? -1 : predict_uniform(&x, true, e);
    s.dense_predicted = x.dense;
    s.least_share = least / x.dense;
    if (x.dense < 0) {
        row_pricer_destroy(row);
        return -1;
    }
    struct hulls hulls = find_hulls(&x, row);
    double pack = row_pricer_pack(row, r->training);
    int failed = solve(&x, &hulls, pack, r->share > 0 ? r->share * x.dense : r->seconds, &s, e);
    if (!failed && !s.best.mask)
        failed = refuse_time(&x, &hulls, pack, e);
    hulls_finish(&hulls);
    row_pricer_destroy(row);
    if (failed)
        snap_result_finish(&s);
    else
        *ret = s;
    return failed;
}

void snap_result_finish(struct snap_result *s)
{
    for (int k = 0; k < SNAP_KINDS; k++)
        mask_destroy(s->kind[k].mask);
    *s = (struct snap_result){0};
}
