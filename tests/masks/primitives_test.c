/* SPDX-License-Identifier: Apache-2.0 */
/* Every primitive and operator against its one-line definition, by brute force over all (i, j). */
#include "tests/masks/help.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int lengths[] = {1, 2, 3, 7, 64, 65, 130};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

static int gap(int i, int j)
{
    return i > j ? i - j : j - i;
}

static int power_of_two(int d)
{
    return d == 0 || (d & (d - 1)) == 0;
}

static int cyclic(int i, int j, int n)
{
    return n >= 3 && i && j &&
           ((i - 1 + 1) % (n - 1) == j - 1 || (j - 1 + 1) % (n - 1) == i - 1);
}

static int block(int i, int n, int k)
{
    return i / ((n + k - 1) / k);
}

static int fairseq(int i, int j, int l, int c)
{
    int window = i && i % l == 0 ? i - l : i / l * l;
    int summary = j % l >= l - c || (j && j % l == 0);
    return (j >= window && j <= window + l) || summary;
}

/* text, smallest n, active where; written twice by the two uses below */
#define CASES(X)                                                                             \
    X(dense, "dense", 1, 1)                                                                  \
    X(none, "none", 1, 0)                                                                    \
    X(causal, "causal", 1, j <= i)                                                           \
    X(diagonal_0, "diagonal(0)", 1, i == j)                                                  \
    X(diagonal, "diagonal(-2, 5, 1..2)", 7,                                                  \
      j - i == -2 || j - i == 5 || j - i == 1 || j - i == 2)                                 \
    X(diagonal_range, "diagonal(-6..6)", 7, gap(i, j) <= 6)                                  \
    X(distance, "distance(0, 2, 4..6)", 7,                                                   \
      gap(i, j) == 0 || gap(i, j) == 2 || (gap(i, j) >= 4 && gap(i, j) <= 6))                \
    X(distance_overlap, "distance(3..5, 4, 1, 5..6)", 7,                                     \
      gap(i, j) == 1 || (gap(i, j) >= 3 && gap(i, j) <= 6))                                  \
    X(window, "window(3)", 1, gap(i, j) <= 3)                                                \
    X(window_0, "window(0)", 1, i == j)                                                      \
    X(window_wide, "window(1000000)", 1, 1)                                                  \
    X(window_endless, "window(9223372036854775807)", 1, 1)                                   \
    X(stride_endless, "stride(99999999999)", 1, i == j)                                      \
    X(local_endless, "local(3000000000)", 1, 1)                                              \
    X(stride, "stride(3)", 1, gap(i, j) % 3 == 0)                                            \
    X(stride_1, "stride(1)", 1, 1)                                                           \
    X(stride_long, "stride(2000000000)", 1, i == j)                                          \
    X(local, "local(5)", 1, i / 5 == j / 5)                                                  \
    X(local_wide, "local(500)", 1, 1)                                                        \
    X(summary, "summary(5, 2)", 1, j % 5 >= 3)                                               \
    X(summary_0, "summary(5, 0)", 1, 0)                                                      \
    X(summary_all, "summary(5, 5)", 1, 1)                                                    \
    X(summary_wide, "summary(100, 60)", 1, j % 100 >= 40)                                    \
    X(rows, "rows(0, -1)", 1, i == 0 || i == n - 1)                                          \
    X(rows_range, "rows(1..3, -3..-2)", 7, (i >= 1 && i <= 3) || (i >= n - 3 && i <= n - 2)) \
    X(columns, "columns(2, 4..5)", 7, j == 2 || j == 4 || j == 5)                            \
    X(columns_end, "columns(0..-1)", 1, 1)                                                   \
    X(global, "global(0, -1)", 1, !i || !j || i == n - 1 || j == n - 1)                      \
    X(global_inner, "global(3, 5..6)", 7,                                                    \
      i == 3 || j == 3 || (i >= 5 && i <= 6) || (j >= 5 && j <= 6))                          \
    X(first_global, "first_global(3)", 3, i < 3 || j < 3)                                    \
    X(first_global_0, "first_global(0)", 1, 0)                                               \
    X(sink, "sink(2, 3)", 1, j < 2 || (j <= i && j > i - 3))                                 \
    X(sink_0, "sink(0, 0)", 1, 0)                                                            \
    X(sink_wide, "sink(500, 1)", 1, 1)                                                       \
    X(blocks_1, "blocks(1)", 1, 1)                                                           \
    X(blocks, "blocks(3)", 3, block(i, n, 3) == block(j, n, 3))                              \
    X(blocks_shift, "blocks(3, shift=1)", 3, (block(i, n, 3) + 1) % 3 == block(j, n, 3))     \
    X(blocks_back, "blocks(3, shift=-5)", 3, (block(i, n, 3) + 1) % 3 == block(j, n, 3))     \
    X(blocks_perm, "blocks(3, perm=[3,1,2])", 3, (block(i, n, 3) + 2) % 3 == block(j, n, 3)) \
    X(blocks_many, "blocks(4, perm=[2,1,3,4])", 7,                                           \
      (block(i, n, 4) < 2 ? 1 - block(i, n, 4) : block(i, n, 4)) == block(j, n, 4))          \
    X(ring, "ring", 1, cyclic(i, j, n))                                                      \
    X(logsparse, "logsparse", 1, power_of_two(gap(i, j)))                                    \
    X(star, "star", 1, !i || !j || i == j || cyclic(i, j, n))                                \
    X(strided_4, "strided", 1, gap(i, j) <= 4 || gap(i, j) % 4 == 0)                         \
    X(strided_7, "strided(7)", 1, gap(i, j) <= 7 || gap(i, j) % 7 == 0)                      \
    X(fixed_4, "fixed", 1, i / 4 == j / 4 || j % 4 == 3)                                     \
    X(fixed_9, "fixed(9, c=2)", 1, i / 9 == j / 9 || j % 9 >= 7)                             \
    X(fairseq_16, "fairseq_fixed(16, 4)", 1, fairseq(i, j, 16, 4))                           \
    X(fairseq_4, "fairseq_fixed(4, 1)", 1, fairseq(i, j, 4, 1))                              \
    X(complement, "~window(2)", 1, gap(i, j) > 2)                                            \
    X(twice, "~~causal", 1, j <= i)                                                          \
    X(precedence, "causal | window(3) - stride(2) & rows(0..-1)", 1,                         \
      j <= i || (gap(i, j) <= 3 && gap(i, j) % 2))                                           \
    X(left, "dense - causal - diagonal(1)", 2, j > i + 1)                                    \
    X(brackets, "dense - (causal - diagonal(0))", 1, j >= i)                                 \
    X(both, "window(9) & ~causal & stride(2) & (local(20) | global(0))", 1,                  \
      gap(i, j) <= 9 && j > i && gap(i, j) % 2 == 0 && (i / 20 == j / 20 || !i || !j))       \
    X(lines, "window( # per side\n 1\n) | (diagonal(\n0)\n)", 1, gap(i, j) <= 1)

#define FUNCTION(name, text, least, condition) \
    static int is_##name(int i, int j, int n)  \
    {                                          \
        (void)i, (void)j, (void)n;             \
        return condition;                      \
    }
CASES(FUNCTION)

#define ROW(name, text, least, condition) {text, least, is_##name},
static const struct {
    const char *text;
    int least;
    int (*active)(int i, int j, int n);
} cases[] = {CASES(ROW)};

static void check(const char *text, int n, int (*active)(int, int, int))
{
    struct mask *m = load_text(text, (uint32_t)n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (pattern_test(m->pattern[0], (uint32_t)i, (uint32_t)j) != !!active(i, j, n))
                fail_msg("%s, n %d: entry %d, %d is wrong", text, n, i, j);
    mask_destroy(m);
}

static void words_are_their_definitions(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int x = 0; x < N_LENGTHS; x++)
            if (lengths[x] >= cases[k].least)
                check(cases[k].text, lengths[x], cases[k].active);
}

/* A random expression as text, and its value at all (i, j) from the values of its words. */
enum { N = 33, DEPTH = 4 };

static void build(uint64_t *state, int depth, struct text *out, bool value[N][N])
{
    uint64_t kind = depth ? next_random(state) % 5 : 4;
    if (kind == 4) {
        uint64_t leaf = next_random(state) % (sizeof cases / sizeof *cases);
        text_add(out, "(%s)", cases[leaf].text);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                value[i][j] = cases[leaf].active(i, j, N);
        return;
    }
    static const char *const signs[] = {"|", "&", "-", "~"};
    bool(*other)[N] = memory_new(N, sizeof *other);
    text_add(out, kind == 3 ? "~(" : "(");
    build(state, depth - 1, out, value);
    if (kind < 3) {
        text_add(out, " %s ", signs[kind]);
        build(state, depth - 1, out, other);
    }
    text_add(out, ")");
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            value[i][j] = kind == 0   ? value[i][j] || other[i][j]
                          : kind == 1 ? value[i][j] && other[i][j]
                          : kind == 2 ? value[i][j] && !other[i][j]
                                      : !value[i][j];
    free(other);
}

static void random_expressions_are_set_algebra(void **unused)
{
    (void)unused;
    uint64_t state = 7;
    bool value[N][N];
    for (int round = 0; round < 300; round++) {
        struct text text = {0};
        build(&state, DEPTH, &text, value);
        struct mask *m = load_text(text.bytes, N);
        for (uint32_t i = 0; i < N; i++)
            for (uint32_t j = 0; j < N; j++)
                if (pattern_test(m->pattern[0], i, j) != value[i][j])
                    fail_msg("%s: entry %u, %u is wrong", text.bytes, i, j);
        mask_destroy(m);
        text_finish(&text);
    }
}

static void long_masks_stay_structured(void **unused)
{
    (void)unused;
    struct mask *m = load_text("window(256) | global(0, -1)", 1 << 20);
    assert_int_equal(m->pattern[0]->n_runs, 3145210);
    mask_destroy(m);
    m = load_text("stride(3) & window(10)", 1 << 20);
    assert_int_equal(m->pattern[0]->n_runs, 7 * (1 << 20) - 2 * (3 + 2 + 1) * 3);
    mask_destroy(m);
    refuse(
        (struct mask_request){.name = "stride(3)", .n = 1 << 20},
        "MASK:1:1: the mask has about 3.7e+11 runs of active keys, at most 2^31 (2.1e+09) are "
        "held; a smaller -n is needed");
    refuse(
        (struct mask_request){.name = "window(3) | random(0.01)", .n = 1 << 20},
        "MASK:1:11: the mask has about 1.1e+10 runs of active keys, at most 2^31 (2.1e+09) are "
        "held; a smaller -n is needed");
}

static double physical_memory(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* Runs that a mask of this machine may have; where its memory holds more than 2^31, their number is what binds. */
static double most_runs(void)
{
    double most = physical_memory() / (3 * sizeof(struct run));
    return most < (double)PATTERN_MAX_RUNS ? most : (double)PATTERN_MAX_RUNS;
}

/* The mask has about n * n / 2 runs, and the message begins with `what`, ends with `remedy`. */
static void refuse_runs(struct mask_request r, const char *what, const char *remedy)
{
    struct error e = {0};
    double runs = (double)r.n * r.n / 2, memory = physical_memory(), found = 0, need = 0,
           has = 0;
    bool holds_all = most_runs() == (double)PATTERN_MAX_RUNS;
    r.layer = -1;
    assert_null(mask_load(&r, NULL, &e));
    assert_int_equal(e.kind, holds_all ? ERROR_INPUT : ERROR_UNAVAILABLE);
    if (strncmp(e.text, what, strlen(what)) || !strstr(e.text, remedy))
        fail_msg("'%s' instead of '%s..%s'", e.text, what, remedy);
    const char *numbers = e.text + strlen(what);
    if (holds_all) {
        assert_int_equal(
            sscanf(numbers, " about %lf runs of active keys, at most 2^31", &found), 1);
    } else {
        assert_int_equal(sscanf(numbers,
                                " about %lf runs of active keys, which need about %lf GB; this "
                                "machine has %lf GB",
                                &found, &need, &has),
                         3);
        assert_true(fabs(need * 1e9 / (runs * 3 * sizeof(struct run)) - 1) < 0.02);
        assert_true(fabs(has * 1e9 / memory - 1) < 0.05);
    }
    assert_true(fabs(found / runs - 1) < 0.06);
}

/* An even length at which n * n / 2 runs are just too many. */
static uint32_t long_length(void)
{
    return (uint32_t)(1.05 * sqrt(2 * most_runs())) / 2 * 2;
}

static void masks_that_fill_the_memory_are_refused(void **unused)
{
    (void)unused;
    uint32_t n = long_length();
    refuse_runs((struct mask_request){.name = "stride(2)", .n = n}, "MASK:1:1: the mask has",
                "; a smaller -n is needed"); /* n is even: every row has n / 2 runs */
    /* As long, but with few runs. */
    struct mask *m = load_text("causal", n);
    assert_int_equal(m->pattern[0]->n_runs, n);
    mask_destroy(m);
}

/* Each token sees the next n / 2 of a ring: one or two runs, but n / 2 where the halves of the ring are interleaved. */
static void hops_and_orders_that_fill_the_memory_are_refused(void **unused)
{
    (void)unused;
    uint32_t n = long_length(), *order = memory_new(n, sizeof *order);
    struct text ring = {0}, half = {0}, hops = {0}, what = {0};
    for (uint32_t p = 0; p < n; p++)
        order[p] = p / 2 + p % 2 * (n / 2);
    text_add(&ring, "diagonal(1, %d)", 1 - (int)n);
    text_add(&half, "diagonal(0..%u, %d..-%u)", n / 2 - 1, 1 - (int)n, n / 2 + 1);
    text_add(&hops, "%s: --hops %u gives", text_get(&ring), n / 2 - 1);
    struct mask_request r = {.name = text_get(&half), .n = n, .tokens = order, .n_tokens = n};
    text_add(&what, "%s: in this order the mask has", text_get(&half));
    refuse_runs(r, text_get(&what),
                "; an order in which neighbours are close together is needed");
    r.name = text_get(&ring);
    r.has_hops = true;
    r.hops = n / 2 - 1;
    refuse_runs(r, text_get(&hops), "; fewer hops are needed, or an order");
    r.hops = 1;
    struct mask *m = load(r);
    assert_true(m->pattern[0]->active == 2 * (uint64_t)n);
    mask_destroy(m);
    free(order);
    text_finish(&ring);
    text_finish(&half);
    text_finish(&hops);
    text_finish(&what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_their_definitions),
        cmocka_unit_test(random_expressions_are_set_algebra),
        cmocka_unit_test(long_masks_stay_structured),
        cmocka_unit_test(masks_that_fill_the_memory_are_refused),
        cmocka_unit_test(hops_and_orders_that_fill_the_memory_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
