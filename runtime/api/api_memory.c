/* SPDX-License-Identifier: Apache-2.0 */
/* Masks that callers have in memory: an array of bytes, or runs of active keys. */
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include "masks/mask.h"
#include "runtime/api/api.h"
#include <stdlib.h>

static const char source_name[] = "mask in memory"; /* in messages and plans */

/* An array in memory, as maskc_compile_dense has it. */
struct dense {
    const uint8_t *bits;
    uint32_t layers, heads, n;
};

static int check_sizes(const char *what, uint32_t layers, uint32_t heads, uint32_t n,
                       struct error *e)
{
    if (layers >= 1 && layers <= MASK_MAX_LAYERS && heads >= 1 && heads <= MASK_MAX_HEADS &&
        layers * heads <= MASK_MAX_PLACES && n >= 1 && n <= PATTERN_MAX_N)
        return 0;
    return error_set(e, ERROR_INPUT,
                     "%s, 1..%d layers, 1..%d heads, at most %d in all, and a length of 1..%d",
                     what, MASK_MAX_LAYERS, MASK_MAX_HEADS, MASK_MAX_PLACES, PATTERN_MAX_N);
}

static struct mask *mask_from_dense(const struct dense *d, struct error *e)
{
    if (check_sizes("a dense mask needs bits", d->bits ? d->layers : 0, d->heads, d->n, e) < 0)
        return NULL;
    size_t places = (size_t)d->layers * d->heads;
    struct pattern **given = memory_new(places, sizeof *given);
    for (size_t k = 0; k < places; k++)
        given[k] = pattern_from_bytes(d->bits + k * d->n * d->n, d->n, d->n);
    struct mask *m = mask_new(d->layers, d->heads, given, source_name);
    free(given);
    return m;
}

/* Takes the mask, which may be null with *e set. */
static int compile_own(struct mask *m, const struct maskc_options *o, struct maskc_bytes *ret,
                       struct error *e)
{
    const struct mask_request request = api_mask_request(o, m ? m->source : "");
    return api_compile_mask(mask_shape(m, &request, e), o, ret, e);
}

int maskc_compile_dense(const uint8_t *bits, uint32_t layers, uint32_t heads, uint32_t n,
                        const struct maskc_options *options, struct maskc_bytes *ret,
                        struct maskc_error *error)
{
    const struct dense d = {bits, layers, heads, n};
    struct maskc_options o;
    struct error e = {0};
    int r = api_take_options(options, &o, &e);
    return api_answer(r < 0 ? r : compile_own(mask_from_dense(&d, &e), &o, ret, &e), &e, error);
}

/* ---- runs ---- */

struct runs {
    const uint64_t *rows;
    const int32_t *runs;
    uint32_t layers, heads, n;
};

/* Where row r of all rows is. */
static int refuse_row(const struct runs *x, uint64_t r, const char *what, struct error *e)
{
    const uint64_t h = r / x->n;
    return error_set(e, ERROR_INPUT, "runs: layer %llu, head %llu, query %llu: %s",
                     (unsigned long long)(h / x->heads), (unsigned long long)(h % x->heads),
                     (unsigned long long)(r % x->n), what);
}

/* Row r, whose offsets ascend. */
static int check_row(const struct runs *x, uint64_t r, struct error *e)
{
    int64_t before = 0;
    for (uint64_t k = x->rows[r]; k < x->rows[r + 1]; k++) {
        const int64_t begin = x->runs[2 * k], end = x->runs[2 * k + 1];
        if (begin < 0 || end > x->n)
            return refuse_row(x, r, "a run is outside of the keys 0..n - 1", e);
        if (begin >= end)
            return refuse_row(x, r, "a run ends where it begins, or before", e);
        if (begin < before)
            return refuse_row(x, r, "runs overlap or do not ascend", e);
        before = end;
    }
    return 0;
}

static int check_runs(const struct runs *x, struct error *e)
{
    if (check_sizes("runs need arrays of rows and runs", x->rows ? x->layers : 0, x->heads,
                    x->n, e) < 0)
        return -1;
    const uint64_t rows = (uint64_t)x->layers * x->heads * x->n;
    if (x->rows[0] != 0)
        return error_set(e, ERROR_INPUT, "runs: rows[0] is not 0");
    for (uint64_t r = 0; r < rows; r++) {
        if (x->rows[r + 1] < x->rows[r] || x->rows[r + 1] - x->rows[r] > x->n)
            return refuse_row(x, r,
                              "its offset in rows is below the one before, or has more runs "
                              "than there are keys",
                              e);
        if (x->rows[r + 1] > x->rows[r] && !x->runs)
            return error_set(e, ERROR_INPUT, "runs: rows names runs, but there is no array");
        if (check_row(x, r, e) < 0)
            return -1;
    }
    return 0;
}

/* Pattern of one head; null if it has too many runs. */
static struct pattern *pattern_from_runs(const struct runs *x, uint64_t head, struct error *e)
{
    struct pattern *p = pattern_new(x->n);
    const uint64_t *row = x->rows + head * x->n;
    for (uint32_t i = 0; i < x->n; i++) {
        for (uint64_t k = row[i]; k < row[i + 1]; k++)
            if (!pattern_add(p, i, (uint32_t)x->runs[2 * k], (uint32_t)x->runs[2 * k + 1])) {
                pattern_destroy(p);
                error_set(e, ERROR_INPUT, "runs: a head has more than %llu",
                          (unsigned long long)PATTERN_MAX_RUNS);
                return NULL;
            }
        pattern_row(p, i);
    }
    return pattern_finish(p);
}

static struct mask *mask_from_runs(const struct runs *x, struct error *e)
{
    struct mask *m = NULL;
    if (check_runs(x, e) < 0)
        return NULL;
    const size_t places = (size_t)x->layers * x->heads;
    struct pattern **given = memory_new(places, sizeof *given);
    size_t k = 0;
    while (k < places && (given[k] = pattern_from_runs(x, k, e)))
        k++;
    if (k == places)
        m = mask_new(x->layers, x->heads, given, source_name);
    for (size_t i = 0; i < k && !m; i++)
        pattern_destroy(given[i]);
    free(given);
    return m;
}

int maskc_compile_runs(const uint64_t *rows, const int32_t *runs, uint32_t layers,
                       uint32_t heads, uint32_t n, const struct maskc_options *options,
                       struct maskc_bytes *ret, struct maskc_error *error)
{
    const struct runs x = {rows, runs, layers, heads, n};
    struct maskc_options o;
    struct error e = {0};
    int r = api_take_options(options, &o, &e);
    return api_answer(r < 0 ? r : compile_own(mask_from_runs(&x, &e), &o, ret, &e), &e, error);
}
