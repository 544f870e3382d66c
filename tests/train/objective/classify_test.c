/* SPDX-License-Identifier: Apache-2.0 */
/* The objective "classify", over a file that a test writes: does a model learn it, are broken rows refused where they
   are? */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/checkpoint/json.h"
#include "model/train/pretrain/pretrainer.h"
#include "tests/model/random/random_bert.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 96, WORDS = VOCABULARY - 5, STEPS = 60, BATCH = 16 };

static struct tokenizer *make_tokenizer(void)
{
    struct text t = {0};
    struct error e = {0};
    text_add(&t, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for (int k = 0; k < WORDS; k++)
        text_add(&t, "w%c%c\n", 'a' + k / 26, 'a' + k % 26);
    struct tokenizer *ret = tokenizer_new(text_get(&t), t.length, false, TOKENIZER_HF, &e);
    if (!ret)
        fail_msg("%s", e.text);
    text_finish(&t);
    return ret;
}

static char *write_file(const char *name, const char *bytes, size_t size)
{
    struct error e = {0};
    char *path = path_join(random_folder, name);
    if (file_write(path, bytes, size, &e) < 0)
        fail_msg("%s", e.text);
    return path;
}

static struct objective_data *open_data(const char *path, const struct tokenizer *t,
                                        const struct objective_data *like, struct error *e)
{
    return objective_find("classify")
        ->open(
            &(struct objective_source){
                .path = path, .tokenizer = t, .longest = POSITIONS, .like = like},
            e);
}

/* A text's label is that of its first word; labels are not in the order of their first rows. */
static char *write_texts(void)
{
    static const char *const label[LABELS] = {"sport", "arts", "wool", "law", "7"};
    struct text t = {0};
    for (int k = 0; k < ROWS; k++) {
        const uint32_t drawn = random_draw(LABELS), length = 3 + random_draw(9),
                       c = k < LABELS ? (uint32_t)k : drawn;
        text_add(&t, "%s\tw%c%c", label[c], 'a', 'a' + (int)c);
        for (uint32_t i = 0; i < length; i++)
            text_add(&t, " w%c%c", 'a', (char)('f' + random_draw(20)));
        text_add(&t, k % 2 ? "\n" : "\r\n");
    }
    char *path = write_file("texts.tsv", text_get(&t), t.length);
    text_finish(&t);
    return path;
}

static struct pretrainer make_trainer(const struct run_options *o,
                                      const struct objective_data *data)
{
    struct error e = {0};
    struct pretrainer t = {.objective = objective_find("classify"), .data = data, .options = o};
    const struct engine_options options = {
        .dtype = ELEMENT_F32, .threads = 2, .parts = t.objective->parts, .trains = true};
    t.engine = engine_load(random_folder, &options, &e);
    if (!t.engine || train_state_new(t.engine, &t.state, &e) < 0 ||
        engine_repack(t.engine, &e) < 0)
        fail_msg("%s", e.text);
    if (t.objective->check(data, "texts.tsv", &t.engine->config, &e) < 0)
        fail_msg("%s", e.text);
    pretrainer_begin(&t);
    return t;
}

static double accuracy_of(struct pretrainer *t)
{
    struct error e = {0};
    struct evaluation v;
    struct metric m[METRICS_MOST];
    if (pretrainer_evaluate(t, t->data, &t->options->data_options, &v, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(v.losses.target[0].count, ROWS);
    assert_int_equal(t->objective->metrics(&v.losses, m), 1);
    assert_string_equal(m[0].name, "accuracy");
    return m[0].value;
}

static void learns(void **unused)
{
    (void)unused;
    random_restart();
    random_classifier(2, 64, 4, "gelu");
    struct tokenizer *k = make_tokenizer();
    char *path = write_texts();
    struct error e = {0};
    struct objective_data *data = open_data(path, k, NULL, &e);
    if (!data)
        fail_msg("%s", e.text);
    assert_int_equal(data->count, ROWS);
    assert_int_equal(data->labels, LABELS);
    assert_string_equal(data->label[0], "7"); /* sorted */
    assert_string_equal(data->label[LABELS - 1], "wool");
    const struct run_options o = {
        .batch = BATCH,
        .accumulate = 2,
        .seed = 1,
        .optimizer = {OPTIMIZER_ADAMW, 0.9, 0.999, 1e-8, 0.01, 1, true}};
    struct pretrainer t = make_trainer(&o, data);
    const double before = accuracy_of(&t);
    for (uint64_t step = 1; step <= STEPS; step++) {
        struct step_result s;
        if (pretrainer_step(&t, &(struct step_request){.step = step, .rate = 1e-3}, &s, &e) < 0)
            fail_msg("%s", e.text);
        assert_true(s.finite);
    }
    const double after = accuracy_of(&t);
    if (!(before < 0.5 && after > 0.9))
        fail_msg("accuracy %g before, %g after", before, after);
    pretrainer_finish(&t);
    train_state_destroy(t.state);
    engine_destroy(t.engine);
    t.objective->close(data);
    tokenizer_destroy(k);
    free(path);
}

static void must_refuse(const struct tokenizer *t, const char *text,
                        const struct objective_data *like, const char *says)
{
    struct error e = {0};
    char *path = write_file("broken.tsv", text, strlen(text));
    struct objective_data *d = open_data(path, t, like, &e);
    assert_null(d);
    if (!strstr(e.text, says))
        fail_msg("'%s', and not '%s'", e.text, says);
    free(path);
}

static void refuses_broken_rows(void **unused)
{
    (void)unused;
    struct error e = {0};
    struct tokenizer *t = make_tokenizer();
    char *path = write_file("whole.tsv", "a\twaa\nb\twab\n", 12);
    struct objective_data *whole = open_data(path, t, NULL, &e);
    assert_non_null(whole);
    must_refuse(t, "a\twaa\nb wab\n", NULL, "broken.tsv:2:6: no tab");
    must_refuse(t, "a\twaa\n\nb\twab\n", NULL, "broken.tsv:2:1: an empty line");
    must_refuse(t, "a\twaa\n\twab\n", NULL, "broken.tsv:2:1: an empty label");
    must_refuse(t, "a\twaa\nb\t\n", NULL, "broken.tsv:2:3: an empty text");
    must_refuse(t, "a\twaa\nb\twab\twac\n", NULL, "broken.tsv:2:6: a second tab");
    must_refuse(t, "a\twaa\nc\twab\n", whole, "broken.tsv:2:1: a label that the training data");
    must_refuse(t, "a\twaa\na\twab\n", NULL, "1 different labels");
    must_refuse(t, "", NULL, "broken.tsv: ");
    must_refuse(NULL, "a\twaa\nb\twab\n", NULL, "no tokenizer");
    objective_find("classify")->close(whole);
    tokenizer_destroy(t);
    free(path);
}

static int setup(void **unused)
{
    (void)unused;
    return random_begin() ? 0 : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    return random_end();
}

int main(void)
{
    struct error e = {0};
    struct matmul *m = matmul_new(&e);
    if (!m)
        return 77;
    matmul_destroy(m);
    const struct CMUnitTest tests[] = {cmocka_unit_test(learns),
                                       cmocka_unit_test(refuses_broken_rows)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
