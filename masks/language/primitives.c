/* SPDX-License-Identifier: Apache-2.0 */
/* The table of words. A row function gives the active keys of query i inside the clip, in ascending
   order; its cost is its runs inside the clip, plus the arguments that were written. To add a
   primitive: a row function, a row in the table, its line in masks/README.md, its definition in
   tests/masks/primitives_test.c. */
#include "masks/base/memory.h"
#include "masks/language/primitive.h"
#include <stdlib.h>

static void row_dense(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    (void)i;
    runs_add(ret, clip, 0, c->n);
}

static void row_none(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    (void)c, (void)i, (void)clip, (void)ret;
}

static void row_causal(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    (void)c;
    runs_add(ret, clip, 0, (int64_t)i + 1);
}

static void row_diagonal(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    for (uint32_t k = 0; k < c->n_spans; k++)
        runs_add(ret, clip, i + c->span[k].first, i + c->span[k].last + 1);
}

static void row_distance(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    for (uint32_t k = c->n_spans; k-- > 0;)
        runs_add(ret, clip, i - c->span[k].last, i - c->span[k].first + 1);
    row_diagonal(c, i, clip, ret);
}

static void row_window(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    runs_add(ret, clip, i - c->whole[0], i + c->whole[0] + 1);
}

static void row_stride(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    int64_t s = c->whole[0];
    if (s == 1) {
        row_dense(c, i, clip, ret);
        return;
    }
    int64_t behind = ((int64_t)i - clip.begin) % s;
    for (int64_t j = clip.begin + (behind < 0 ? behind + s : behind); j < clip.end; j += s)
        runs_add(ret, clip, j, j + 1);
}

static void row_local(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    int64_t begin = i / c->whole[0] * c->whole[0];
    runs_add(ret, clip, begin, begin + c->whole[0]);
}

static void row_summary(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    int64_t b = c->whole[0], n_keys = c->whole[1];
    if (n_keys == b) {
        row_dense(c, i, clip, ret);
        return;
    }
    for (int64_t block = clip.begin / b * b; n_keys && block < clip.end; block += b)
        runs_add(ret, clip, block + b - n_keys, block + b);
}

static int prepare_summary(struct call *c, const struct prepare_context *x, struct error *e)
{
    if (c->whole[1] <= c->whole[0])
        return 0;
    return script_error(x->script, c->given[1]->at, e,
                        "%s: %lld is out of range, 0..%lld is expected", x->node->word,
                        (long long)c->whole[1], (long long)c->whole[0]);
}

static bool in_spans(const struct call *c, int64_t value)
{
    uint32_t low = 0, high = c->n_spans;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->span[middle].last < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->n_spans && c->span[low].first <= value;
}

static void row_rows(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    if (in_spans(c, i))
        row_dense(c, i, clip, ret);
}

static void row_columns(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    (void)i;
    for (uint32_t k = 0; k < c->n_spans; k++)
        runs_add(ret, clip, c->span[k].first, c->span[k].last + 1);
}

static void row_global(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    (in_spans(c, i) ? row_dense : row_columns)(c, i, clip, ret);
}

static void row_first_global(const struct call *c, uint32_t i, struct clip clip,
                             struct runs *ret)
{
    runs_add(ret, clip, 0, i < c->whole[0] ? c->n : c->whole[0]);
}

static int64_t block_size(const struct call *c)
{
    return (c->n + c->whole[0] - 1) / c->whole[0];
}

static void blocks_row(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    int64_t size = block_size(c), block = i / size;
    int64_t to = c->target ? c->target[block] : (block + c->whole[1]) % c->whole[0];
    runs_add(ret, clip, to * size, (to + 1) * size);
}

enum { BLOCKS_SHIFT = 1, BLOCKS_PERM = 2 };

static int prepare_blocks(struct call *c, const struct prepare_context *x, struct error *e)
{
    int64_t k = c->whole[0];
    const struct argument *perm = c->given[BLOCKS_PERM];
    c->whole[BLOCKS_SHIFT] %= k;
    c->whole[BLOCKS_SHIFT] += c->whole[BLOCKS_SHIFT] < 0 ? k : 0;
    if (!perm)
        return 0;
    if (c->given[BLOCKS_SHIFT])
        return script_error(x->script, perm->at, e,
                            "blocks: shift or perm is expected, not both");
    if (perm->n_list != k)
        return script_error(x->script, perm->at, e,
                            "blocks: perm has %u numbers, %lld are expected", perm->n_list,
                            (long long)k);
    c->target = memory_new((size_t)k, sizeof *c->target);
    bool *seen = memory_new((size_t)k, sizeof *seen);
    int r = 0;
    for (uint32_t b = 0; b < perm->n_list && r == 0; b++) {
        int64_t to = perm->list[b];
        if (to < 1 || to > k || seen[to - 1])
            r = script_error(x->script, perm->at, e,
                             "blocks: perm is no permutation of 1..%lld: %lld %s", (long long)k,
                             (long long)to,
                             to < 1 || to > k ? "is out of range" : "stands twice");
        else
            seen[to - 1] = true, c->target[b] = (uint32_t)to - 1;
    }
    free(seen);
    return r;
}

static void row_ring(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    if (i == 0 || c->n < 3)
        return;
    int64_t before = i == 1 ? c->n - 1 : i - 1, after = i + 1 == c->n ? 1 : i + 1;
    int64_t low = before < after ? before : after, high = before < after ? after : before;
    runs_add(ret, clip, low, low + 1);
    runs_add(ret, clip, high, high + 1);
}

/* Distances 0 and the powers of two. */
static int prepare_logsparse(struct call *c, const struct prepare_context *x, struct error *e)
{
    (void)x, (void)e;
    enum { MOST = 33 };
    free(c->span);
    c->span = memory_new(MOST, sizeof *c->span);
    c->span[c->n_spans++] = (struct span){0, c->n < 3 ? c->n - 1 : 2};
    for (int64_t d = 4; d < c->n; d *= 2)
        c->span[c->n_spans++] = (struct span){d, d};
    return 0;
}

/* The mask as fairseq's SparseMultiheadAttention has it when it is bidirectional: windows are the
   closed range l*k .. l*(k+1), a query at a multiple of l belongs to the window that ends there,
   and the summary at a window's end is c + 1 keys wide. */
static void row_fairseq(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    int64_t l = c->whole[0], own = i && i % l == 0 ? i - l : i / l * l;
    int64_t block = clip.begin / l * l;
    for (block -= block ? l : 0; block < clip.end; block += l)
        runs_add(ret, clip, block == own ? block : block + l - c->whole[1], block + l + 1);
}

static void row_file(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    const struct pattern *p = c->file;
    for (uint64_t r = p->row[i]; r < p->row[i + 1] && p->run[r].begin < clip.end; r++)
        runs_add(ret, clip, p->run[r].begin, p->run[r].end);
}

/* clang-format off */
#define ENDLESS(x)   AT_LEAST(x), .endless = true
#define AT_LEAST(x)  .kind = PARAMETER_WHOLE, .least = {0, x}, .most = {0, MAX_LIMIT}
#define SPANS        .kind = PARAMETER_SPANS
#define SEED(x)      {"seed", PARAMETER_WHOLE, {0, 0}, {0, INT64_MAX}, .optional = true, .otherwise = x}
#define POSITIONS    SPANS, .least = {-1, 0}, .most = {1, -1}, .from_end = true
#define UP_TO_N(x)   .kind = PARAMETER_WHOLE, .least = {0, x}, .most = {1, 0}
#define SIZES        PARAMETER_SIZES, {0, 1}, {1, 0}
#define WHOLE(x)     .kind = PARAMETER_WHOLE, .otherwise = x

const struct primitive primitives[] = {
    {"dense",    {{0}},                             NULL, row_dense},
    {"none",     {{0}},                             NULL, row_none},
    {"causal",   {{0}},                             NULL, row_causal},
    {"diagonal", {{"o", SPANS, {-1, 1}, {1, -1}}},  NULL, row_diagonal},
    {"distance", {{"d", SPANS, {0, 0}, {1, -1}}},   NULL, row_distance},
    {"window",   {{"w", ENDLESS(0)}},               NULL, row_window},
    {"stride",   {{"s", ENDLESS(1)}},               NULL, row_stride},
    {"local",    {{"b", ENDLESS(1)}},               NULL, row_local},
    {"summary",  {{"b", AT_LEAST(1)}, {"c", AT_LEAST(0)}}, prepare_summary, row_summary},
    {"rows",     {{"i", POSITIONS}},                NULL, row_rows},
    {"columns",  {{"j", POSITIONS}},                NULL, row_columns},
    {"global",   {{"i", POSITIONS}},                NULL, row_global},
    {"blocks",   {{"k", UP_TO_N(1)},
                  {"shift", PARAMETER_WHOLE, {0, -MAX_LIMIT}, {0, MAX_LIMIT}, .optional = true},
                  {"perm", PARAMETER_LIST, .optional = true}}, prepare_blocks, blocks_row},
    {"random",        {{"p", PARAMETER_REAL}, SEED(1)}, prepare_random, row_random},
    {"random_keys",   {{"k", UP_TO_N(0)}, SEED(1)},     prepare_random_keys, row_random_keys},
    {"random_global", {{"k", UP_TO_N(0)}, SEED(1)},     prepare_random_global, row_global},
    {"first_global",  {{"g", UP_TO_N(0)}},           NULL, row_first_global},
    {"ring",          {{0}},                         NULL, row_ring},
    {"file",     {{"name", PARAMETER_STRING},
                  {"threshold", PARAMETER_REAL, .optional = true},
                  {"head", PARAMETER_WHOLE, {0, 0}, {0, MAX_LIMIT}, .optional = true}},
                                                    prepare_file, row_file},
    {"neighborhood", {{"sizes", SIZES}, {"dilation", PARAMETER_LIST, .optional = true},
                      {"causal", PARAMETER_LIST, .optional = true}},
                                                    prepare_neighborhood, row_neighborhood},
    {"documents",    {{"length", SIZES}},           prepare_documents, row_documents},
    {"sink",         {{"s", ENDLESS(0), .otherwise = 4}, {"w", ENDLESS(0), .otherwise = 28}},
                                                    NULL, row_sink},
    {"logsparse",     {{0}},                        prepare_logsparse, row_distance},
    {"fairseq_fixed", {{"l", AT_LEAST(1)}, {"c", AT_LEAST(0)}}, prepare_summary, row_fairseq},

    {"star",       {{0}},                           .definition = "global(0) | diagonal(0) | ring"},
    {"strided",    {{"l", WHOLE(4)}},               .definition = "window(l) | stride(l)"},
    {"fixed",      {{"l", WHOLE(4)}, {"c", WHOLE(1)}},
                                                    .definition = "local(l) | summary(l, c)"},
    {"longformer", {{"w", WHOLE(5)}, {"g", WHOLE(2)}, SEED(1)},
                   .definition = "window(w) | random_global(g, seed=seed)"},
    {"longformer_cls", {{"w", WHOLE(5)}, {"g", WHOLE(2)}}, .definition = "window(w) | first_global(g)"},
    {"bigbird",    {{"w", WHOLE(1)}, {"g", WHOLE(2)}, {"r", WHOLE(2)}, SEED(2)},
                   .definition = "window(w) | random_global(g, seed=seed) | random_keys(r, seed=seed)"},
    {0},
};
