/* SPDX-License-Identifier: Apache-2.0 */
/* The engine against BERT in float64, and what must not change its answers: the other sequences of a
   batch, their order, the number of threads. Models are random, biases and norms too. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/heads.h"
#include "model/init.h"
#include "model/json.h"
#include "model/linear.h"
#include "model/mask.h"
#include "model/save.h"
#include "tests/model/plain_bert.h"
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

enum { VOCABULARY = 50, POSITIONS = 70 };

static char folder[] = "/tmp/maskbert-encoder-XXXXXX";

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

/* Adds -0.1 .. 0.1 to what a new model has as 0 or 1 throughout. */
static void shake(struct weights *w)
{
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct parameter *p = &w->tensor[k].parameter;
        float *value = w->tensor[k].own;
        for (uint64_t i = 0; i < p->count && p->first != VALUE_NORMAL_PAD; i++)
            if (p->first != VALUE_NORMAL)
                value[i] += ((float)draw(2001) - 1000) / 10000;
    }
}

static void write_model(uint32_t layers, uint32_t hidden, uint32_t heads, uint32_t types,
                        const char *act)
{
    struct model_config c = {0};
    struct weights w = {0};
    struct error e = {0};
    json_t *json = json_pack(
        "{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s}", "architectures",
        "BertForPreTraining", "model_type", "bert", "vocab_size", VOCABULARY, "hidden_size",
        (int)hidden, "num_hidden_layers", (int)layers, "num_attention_heads", (int)heads,
        "intermediate_size", (int)(2 * hidden + 4), "max_position_embeddings", POSITIONS,
        "type_vocab_size", (int)types, "hidden_act", act);
    if (config_parse(json, &c, &e) < 0)
        fail_msg("%s", e.text);
    json_decref(json);
    weights_begin(&c, config_parts(&c), &w);
    weights_initialise(&w, &c, 0.2, 3);
    shake(&w);
    if (model_save(folder, &c, &w, ELEMENT_F32, &e) < 0)
        fail_msg("%s", e.text);
    weights_finish(&w);
    config_finish(&c);
}

static struct engine *load(const char *mask, const char *transform, enum element dtype,
                           uint32_t threads, uint32_t parts)
{
    struct error e = {0};
    struct engine_options o = {.mask = mask,
                               .transform = transform,
                               .dtype = dtype,
                               .threads = threads,
                               .parts = parts};
    struct engine *g = engine_load(folder, &o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

/* ---- batches ---- */

enum { SEQUENCES = 9 };

struct batch {
    uint32_t number[SEQUENCES][POSITIONS];
    struct sequence list[SEQUENCES];
};

static void make_batch(struct batch *b)
{
    static const uint32_t length[SEQUENCES] = {5, POSITIONS,     1,  17, 16,
                                               2, POSITIONS - 1, 33, 64};
    for (uint32_t k = 0; k < SEQUENCES; k++) {
        for (uint32_t i = 0; i < length[k]; i++)
            b->number[k][i] = draw(VOCABULARY);
        uint32_t first = k % 2 ? length[k] : (length[k] + 1) / 2;
        b->list[k] = (struct sequence){b->number[k], length[k], first};
    }
}

static void encode(const struct engine *g, const struct sequence *list, uint32_t n,
                   struct engine_room *room)
{
    struct error e = {0};
    if (engine_encode(g, list, n, room, &e) < 0)
        fail_msg("%s", e.text);
}

/* All rows as f32; caller frees. */
static float *read_rows(const struct engine *g, const struct engine_room *room)
{
    float *ret = memory_new((size_t)room->tokens * g->config.hidden, sizeof *ret);
    for (uint32_t r = 0; r < room->tokens; r++)
        engine_row(g, room, r, ret + (size_t)r * g->config.hidden);
    return ret;
}

static float *encode_rows(const struct engine *g, const struct sequence *list, uint32_t n)
{
    struct engine_room room = {0};
    encode(g, list, n, &room);
    float *ret = read_rows(g, &room);
    engine_room_finish(&room);
    return ret;
}

/* ---- against float64 ---- */

/* clang-format off */
static const struct {
    const char *name;
    uint32_t layers, hidden, heads;
    const char *act, *mask, *transform;
    double lambda;
} cases[] = {
    {"dense",              2, 64, 4, "gelu",     "dense",           "softmax",     0},
    {"heads of 8",         2, 32, 4, "gelu_new", "window(3)",       "softmax",     0},
    {"heads of 26",        1, 130, 5, "relu",    "longformer(5,2)", "softmax",     0},
    {"queries that see nothing", 2, 48, 3, "silu", "window(9) - rows(3)", "softmax", 0},
    {"sparsegen",          2, 64, 4, "gelu",     "dense",           "sparsegen=-4", -4},
    {"sparsegen, sparse",  2, 64, 4, "gelu",     "strided(8)",      "sparsegen=-1", -1},
};
/* clang-format on */

static double *plain_rows(const struct engine *g, const char *mask, const char *transform,
                          double lambda, const struct batch *b)
{
    struct error e = {0};
    struct mask *m = model_mask(mask, &g->config, &e);
    struct plain_bert plain = {&g->config, &g->weights, m, strcmp(transform, "softmax") != 0,
                               lambda};
    uint32_t h = g->config.hidden, at = 0;
    double *ret = memory_new((size_t)SEQUENCES * POSITIONS * h, sizeof *ret);
    for (uint32_t k = 0; k < SEQUENCES; k++) {
        double *x = plain_hidden(&plain, &b->list[k]);
        memcpy(ret + (size_t)at * h, x, (size_t)b->list[k].count * h * sizeof *x);
        at += b->list[k].count;
        free(x);
    }
    mask_destroy(m);
    return ret;
}

static uint32_t tokens_of(const struct batch *b)
{
    uint32_t tokens = 0;
    for (uint32_t k = 0; k < SEQUENCES; k++)
        tokens += b->list[k].count;
    return tokens;
}

/* NaN fails both. */
static void compare(const char *name, const float *ours, const double *truth, size_t count,
                    double worst_allowed, double rms_allowed)
{
    double worst = 0, largest = 0, errors = 0, squares = 0;
    for (size_t k = 0; k < count; k++) {
        double error = fabs((double)ours[k] - truth[k]);
        worst = error <= worst ? worst : error;
        largest = fmax(largest, fabs(truth[k]));
        errors += error * error;
        squares += truth[k] * truth[k];
    }
    if (!(worst <= worst_allowed * largest))
        fail_msg("%s: off by %g of the largest value, at most %g", name, worst / largest,
                 worst_allowed);
    if (!(sqrt(errors) <= rms_allowed * sqrt(squares)))
        fail_msg("%s: rms error %g, at most %g", name, sqrt(errors / squares), rms_allowed);
}

static void equals_float64(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct batch b;
        make_batch(&b);
        write_model(cases[k].layers, cases[k].hidden, cases[k].heads, 2, cases[k].act);
        struct engine *f32 = load(cases[k].mask, cases[k].transform, ELEMENT_F32, 2, 0);
        double *truth = plain_rows(f32, cases[k].mask, cases[k].transform, cases[k].lambda, &b);
        size_t count = (size_t)tokens_of(&b) * cases[k].hidden;
        float *x = encode_rows(f32, b.list, SEQUENCES);
        compare(cases[k].name, x, truth, count, 1e-5, 1e-5);
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
    struct error e = {0};
    struct engine_options o = {.mask = "dense", .dtype = ELEMENT_BF16, .threads = 2};
    make_batch(&b);
    write_model(2, 64, 4, 2, "gelu");
    struct engine *g = engine_load(folder, &o, &e);
    if (!g && e.kind == ERROR_UNAVAILABLE) {
        print_message("[  SKIPPED ] bf16: %s\n", e.text);
        skip();
    }
    assert_non_null(g);
    double *truth = plain_rows(g, "dense", "softmax", 0, &b);
    float *x = encode_rows(g, b.list, SEQUENCES);
    compare("bf16", x, truth, (size_t)tokens_of(&b) * 64, 0.05, 0.02);
    free(x);
    free(truth);
    engine_destroy(g);
}

static void heads_equal_float64(void **unused)
{
    (void)unused;
    struct batch b;
    struct engine_room room = {0};
    struct error e = {0};
    uint32_t rows[] = {0, 7, 40};
    float pooled[SEQUENCES * 64], words[3 * VOCABULARY], next[2 * SEQUENCES];
    make_batch(&b);
    write_model(2, 64, 4, 2, "gelu");
    struct engine *g = load(NULL, NULL, ELEMENT_F32, 2, PART_POOLER | PART_MLM | PART_NSP);
    double *truth = plain_rows(g, "dense", "softmax", 0, &b);
    struct plain_bert plain = {&g->config, &g->weights};
    encode(g, b.list, SEQUENCES, &room);
    assert_int_equal(head_pool(g, &room, pooled, &e), 0);
    assert_int_equal(head_words(g, &room, rows, 3, words, &e), 0);
    assert_int_equal(head_next(g, &room, next, &e), 0);
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        double *y = plain_pooled(&plain, truth + (size_t)room.offsets[s] * 64);
        compare("pooled", pooled + (size_t)s * 64, y, 64, 1e-5, 1e-5);
        free(y);
    }
    for (uint32_t k = 0; k < 3; k++) {
        double *y = plain_words(&plain, truth + (size_t)rows[k] * 64);
        compare("words", words + (size_t)k * VOCABULARY, y, VOCABULARY, 1e-5, 1e-5);
        free(y);
    }
    assert_int_equal(head_span(g, &room, words, &e), -1);
    assert_string_equal(e.text, "the engine was loaded without this head");
    engine_room_finish(&room);
    engine_destroy(g);
    free(truth);
}

/* ---- what must not matter ---- */

static double worst_of(const float *a, const float *b, size_t count)
{
    double worst = 0;
    for (size_t k = 0; k < count; k++) {
        double error = fabs((double)a[k] - (double)b[k]);
        worst = error <= worst ? worst : error;
    }
    return worst;
}

/* Rounding of values around 1. */
static const double rounding = 1e-5;

static void company_does_not_matter(void **unused)
{
    (void)unused;
    struct batch b;
    struct sequence back[SEQUENCES];
    struct engine_room room = {0};
    make_batch(&b);
    write_model(2, 64, 4, 2, "gelu");
    struct engine *g = load("longformer(5,2)", NULL, ELEMENT_F32, 2, 0);
    float *all = encode_rows(g, b.list, SEQUENCES), *turned, *alone;
    size_t at = 0, end = (size_t)tokens_of(&b) * 64;
    for (uint32_t k = 0; k < SEQUENCES; k++)
        back[k] = b.list[SEQUENCES - 1 - k];
    turned = encode_rows(g, back, SEQUENCES);
    for (uint32_t k = 0; k < SEQUENCES; k++) {
        size_t count = (size_t)b.list[k].count * 64;
        encode(g, &b.list[k], 1, &room); /* one room for sequences of all lengths */
        alone = read_rows(g, &room);
        assert_true(worst_of(all + at, alone, count) <= rounding);
        free(alone);
        at += count;
        assert_true(worst_of(all + at - count, turned + (size_t)tokens_of(&b) * 64 - at,
                             count) <= rounding);
    }
    assert_int_equal(at, end);
    free(all);
    free(turned);
    engine_room_finish(&room);
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
    make_batch(&b);
    write_model(2, 64, 4, 2, "gelu");
    struct engine *g = load("window(5)", NULL, ELEMENT_F32, 3, 0);
    uint32_t before = count_threads();
    free(encode_rows(g, b.list, SEQUENCES));
    free(encode_rows(g, b.list, 1));
    assert_true(before <= 3);
    assert_true(count_threads() <= 3);
    engine_destroy(g);
}

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    struct batch b;
    make_batch(&b);
    write_model(2, 64, 4, 2, "gelu");
    size_t count = (size_t)tokens_of(&b) * 64;
    float *first = NULL;
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        struct engine *g = load("bigbird(1,2,2)", NULL, ELEMENT_F32, threads, 0);
        float *x = encode_rows(g, b.list, SEQUENCES),
              *again = encode_rows(g, b.list, SEQUENCES);
        assert_memory_equal(x, again, count * sizeof *x);
        assert_true(!first || worst_of(first, x, count) <= rounding);
        free(again);
        if (first)
            free(x);
        else
            first = x;
        engine_destroy(g);
    }
    free(first);
}

/* ---- refusals ---- */

static void refuse(const struct engine *g, struct sequence s, const char *text)
{
    struct engine_room room = {0};
    struct error e = {0};
    assert_int_equal(engine_encode(g, &s, 1, &room, &e), -1);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_string_equal(e.text, text);
    engine_room_finish(&room);
}

static void bad_sequences_are_refused(void **unused)
{
    (void)unused;
    uint32_t number[POSITIONS + 1] = {0}, wrong[] = {1, VOCABULARY};
    write_model(1, 32, 2, 1, "gelu");
    struct engine *g = load(NULL, NULL, ELEMENT_F32, 1, 0);
    refuse(g, (struct sequence){number, 0, 0}, "sequence 0 has 0 tokens; 1..70 are expected");
    refuse(g, (struct sequence){number, 71, 71},
           "sequence 0 has 71 tokens; 1..70 are expected");
    refuse(g, (struct sequence){wrong, 2, 2}, "sequence 0: token 50 of 50");
    refuse(g, (struct sequence){number, 4, 2}, "sequence 0 is a pair; the model has one type");
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
        write_model(1, loads[k].hidden, loads[k].heads, 2, "gelu");
        assert_null(engine_load(folder, &loads[k].o, &e));
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
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char line[100];
    snprintf(line, sizeof line, "rm -r %s", folder);
    return system(line) || failed;
}
