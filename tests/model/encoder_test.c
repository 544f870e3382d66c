/* SPDX-License-Identifier: Apache-2.0 */
/* The engine against BERT in float64, and what must not change its answers: the other sequences of a
   batch, their order, the number of threads. Models are random, biases and norms too. */
#include "masks/base/memory.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/engine/heads.h"
#include "tests/model/random/random_bert.h"
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct engine *load(const char *mask, const char *transform, enum element dtype,
                           uint32_t threads, uint32_t parts)
{
    struct error e = {0};
    struct engine_options o = {.mask = mask,
                               .transform = transform,
                               .dtype = dtype,
                               .threads = threads,
                               .parts = parts};
    struct engine *g = engine_load(random_folder, &o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

/* ---- against float64 ---- */

static void equals_float64(void **unused)
{
    (void)unused;
    for (const struct bert_case *c = bert_cases; c->name; c++) {
        struct batch b;
        batch_make(&b);
        random_model_of(c);
        struct engine *f32 = load(c->mask, c->transform, ELEMENT_F32, 2, 0);
        batch_suit(&b, &f32->config);
        double *truth = plain_rows(f32, c->mask, c->transform, c->lambda, &b);
        size_t count = (size_t)batch_tokens(&b) * c->hidden;
        float *x = batch_rows(f32, b.list, SEQUENCES);
        must_be_close(c->name, x, truth, count, 1e-5, 1e-5);
        free(x);
        engine_destroy(f32);
        free(truth);
    }
}

/* bf16 rounds to 8 bits: 0.4 % a value, and a few of them add up. */
static void bf16_is_close(void **unused)
{
    (void)unused;
    struct batch b;
    batch_make(&b);
    random_model(2, 64, 4, 2, "gelu");
    struct engine *g = load("dense", NULL, ELEMENT_BF16, 2, 0);
    double *truth = plain_rows(g, "dense", "softmax", 0, &b);
    float *x = batch_rows(g, b.list, SEQUENCES);
    must_be_close("bf16", x, truth, (size_t)batch_tokens(&b) * 64, 0.05, 0.02);
    free(x);
    engine_destroy(g);
    static const uint32_t sharing[] = {2, 3, 5}; /* a small batch */
    for (size_t k = 0; k < sizeof sharing / sizeof *sharing; k++) {
        g = load("dense", NULL, ELEMENT_BF16, sharing[k], 0);
        x = batch_rows(g, b.list, 1);
        must_be_close("bf16, shared", x, truth, (size_t)b.list->count * 64, 0.05, 0.02);
        free(x);
        engine_destroy(g);
    }
    free(truth);
}

static void heads_equal_float64(void **unused)
{
    (void)unused;
    struct batch b;
    struct engine_workspace workspace = {0};
    struct error e = {0};
    uint32_t rows[] = {0, 7, 40};
    float pooled[SEQUENCES * 64], words[3 * VOCABULARY], next[2 * SEQUENCES];
    batch_make(&b);
    random_model(2, 64, 4, 2, "gelu");
    struct engine *g = load(NULL, NULL, ELEMENT_F32, 2, PART_POOLER | PART_MLM | PART_NSP);
    double *truth = plain_rows(g, "dense", "softmax", 0, &b);
    struct plain_bert plain = {&g->config, &g->weights};
    batch_encode(g, b.list, SEQUENCES, &workspace);
    assert_int_equal(head_pool(g, &workspace, pooled, &e), 0);
    assert_int_equal(head_words(g, &workspace, rows, 3, words, &e), 0);
    assert_int_equal(head_next(g, &workspace, next, &e), 0);
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        double *y = plain_pooled(&plain, truth + (size_t)workspace.offsets[s] * 64);
        must_be_close("pooled", pooled + (size_t)s * 64, y, 64, 1e-5, 1e-5);
        free(y);
    }
    for (uint32_t k = 0; k < 3; k++) {
        double *y = plain_words(&plain, truth + (size_t)rows[k] * 64);
        must_be_close("words", words + (size_t)k * VOCABULARY, y, VOCABULARY, 1e-5, 1e-5);
        free(y);
    }
    assert_int_equal(head_span(g, &workspace, words, &e), -1);
    assert_string_equal(e.text, "the engine was loaded without this head");
    engine_workspace_finish(&workspace);
    engine_destroy(g);
    free(truth);
}

/* ---- what must not matter ---- */

/* Rounding of values around 1. */
static const double rounding = 1e-5;

static void company_does_not_matter(void **unused)
{
    (void)unused;
    struct batch b;
    struct sequence back[SEQUENCES];
    struct engine_workspace workspace = {0};
    batch_make(&b);
    random_model(2, 64, 4, 2, "gelu");
    struct engine *g = load("longformer(5,2)", NULL, ELEMENT_F32, 2, 0);
    float *all = batch_rows(g, b.list, SEQUENCES), *reversed, *alone;
    size_t at = 0, end = (size_t)batch_tokens(&b) * 64;
    for (uint32_t k = 0; k < SEQUENCES; k++)
        back[k] = b.list[SEQUENCES - 1 - k];
    reversed = batch_rows(g, back, SEQUENCES);
    for (uint32_t k = 0; k < SEQUENCES; k++) {
        size_t count = (size_t)b.list[k].count * 64;
        batch_encode(g, &b.list[k], 1,
                     &workspace); /* one workspace for sequences of all lengths */
        alone = workspace_rows(g, &workspace);
        assert_true(worst_of(all + at, alone, count) <= rounding);
        free(alone);
        at += count;
        assert_true(worst_of(all + at - count, reversed + (size_t)batch_tokens(&b) * 64 - at,
                             count) <= rounding);
    }
    assert_int_equal(at, end);
    free(all);
    free(reversed);
    engine_workspace_finish(&workspace);
    engine_destroy(g);
}

static uint32_t count_threads(void)
{
    uint32_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *d; tasks && (d = readdir(tasks));)
        count += d->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

/* Runs first: the pool of OpenMP never shrinks. */
static void threads_are_bounded(void **unused)
{
    (void)unused;
    struct batch b;
    batch_make(&b);
    random_model(2, 64, 4, 2, "gelu");
    struct engine *g = load("window(5)", NULL, ELEMENT_F32, 3, 0);
    uint32_t before = count_threads();
    free(batch_rows(g, b.list, SEQUENCES));
    free(batch_rows(g, b.list, 1));
    assert_true(before <= 3);
    assert_true(count_threads() <= 3);
    engine_destroy(g);
}

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    struct batch b;
    batch_make(&b);
    random_model(2, 64, 4, 2, "gelu");
    size_t count = (size_t)batch_tokens(&b) * 64;
    float *first = NULL, *alone = NULL; /* a small batch is shared another way */
    const size_t few = (size_t)b.list->count * 64;
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        struct engine *g = load("bigbird(1,2,2)", NULL, ELEMENT_F32, threads, 0);
        float *x = batch_rows(g, b.list, SEQUENCES), *again = batch_rows(g, b.list, SEQUENCES);
        assert_memory_equal(x, again, count * sizeof *x);
        assert_true(!first || worst_of(first, x, count) <= rounding);
        free(again);
        float *y = batch_rows(g, b.list, 1), *same = batch_rows(g, b.list, 1);
        assert_memory_equal(y, same, few * sizeof *y);
        assert_true(worst_of(y, alone ? alone : x, few) <= rounding);
        free(same);
        if (first) {
            free(x);
            free(y);
        } else {
            first = x;
            alone = y;
        }
        engine_destroy(g);
    }
    free(first);
    free(alone);
}

/* ---- refusals ---- */

static void refuse(const struct engine *g, struct sequence s, const char *text)
{
    struct engine_workspace workspace = {0};
    struct error e = {0};
    assert_int_equal(engine_encode(g, &s, 1, &workspace, &e), -1);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_string_equal(e.text, text);
    engine_workspace_finish(&workspace);
}

static void bad_sequences_are_refused(void **unused)
{
    (void)unused;
    uint32_t token_ids[POSITIONS + 1] = {0}, wrong[] = {1, VOCABULARY};
    random_model(1, 32, 2, 1, "gelu");
    struct engine *g = load(NULL, NULL, ELEMENT_F32, 1, 0);
    refuse(g, (struct sequence){token_ids, 0, 0},
           "sequence 0 has 0 tokens; 1..70 are expected");
    refuse(g, (struct sequence){token_ids, 71, 71},
           "sequence 0 has 71 tokens; 1..70 are expected");
    refuse(g, (struct sequence){wrong, 2, 2}, "sequence 0: token 50 of 50");
    refuse(g, (struct sequence){token_ids, 4, 2},
           "sequence 0 is a pair; the model has one type");
    engine_destroy(g);
}

static const struct {
    struct engine_options o;
    uint32_t hidden, heads;
    const char *error; /* how its text ends */
} loads[] = {
    {{.parts = PART_SPAN}, 32, 2, ": the model has no span head"},
    {{.mask = "blockbert-2"},
     32,
     2,
     "the mask has 12 heads, the model 2; 1 or as many are expected"},
    {{.transform = "sparsegen=2"}, 32, 2, "sparsegen needs a finite lambda below 1, not 2"},
    {{.dtype = ELEMENT_F16}, 32, 2, "dtype: f32 or bf16 is expected"},
    {{0}, 264, 1, "heads of 264: at most 256 are supported"},
};

static void what_cannot_be_loaded_is_refused(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof loads / sizeof *loads; k++) {
        struct error e = {0};
        random_model(1, loads[k].hidden, loads[k].heads, 2, "gelu");
        assert_null(engine_load(random_folder, &loads[k].o, &e));
        size_t length = strlen(e.text), end = strlen(loads[k].error);
        assert_int_equal(e.kind, ERROR_INPUT);
        if (length < end || strcmp(e.text + length - end, loads[k].error))
            fail_msg("'%s' does not end in '%s'", e.text, loads[k].error);
    }
}

static bool is_built_without(void)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        print_message("skipped: %s\n", e.text);
    matmul_destroy(m);
    return !m;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_bounded),
        cmocka_unit_test(equals_float64),
        cmocka_unit_test(bf16_is_close),
        cmocka_unit_test(heads_equal_float64),
        cmocka_unit_test(company_does_not_matter),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(bad_sequences_are_refused),
        cmocka_unit_test(what_cannot_be_loaded_is_refused),
    };
    if (is_built_without())
        return 77;
    if (!random_begin())
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return random_end() || failed;
}
