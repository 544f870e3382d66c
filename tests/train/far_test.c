/* SPDX-License-Identifier: Apache-2.0 */
/* Does a run of pre-training on a device whose memory the host cannot read write the files of one on the CPU, byte for
   byte: AdamW and LAMB, learned masks, evaluation, states, --resume? On a device that cannot record launches: does a run say
   so in one line, and go on? */
#include "masks/base/file.h"
#include "masks/base/text.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/backend/gpu/driver.h"
#include "model/data/prepare.h"
#include "model/train/run/run.h"
#include "tests/model/random/random_bert.h"
#include "tests/support/test.h"
#include "tests/train/far_memory.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 6, PATH_BYTES = 256 };

static void path_of(char *ret, const char *name)
{
    snprintf(ret, PATH_BYTES, "%s/%s", random_folder, name);
}

/* ---- model and data ---- */

static struct tokenizer *make_tokenizer(void)
{
    struct text v = {0};
    struct error e = {0};
    char path[PATH_BYTES];
    text_add(&v, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for (int k = 5; k < VOCABULARY; k++)
        text_add(&v, "%c%c\n", 'a' + k / 10, 'a' + k % 10);
    path_of(path, "vocab.txt");
    struct tokenizer *t = tokenizer_new(text_get(&v), v.length, false, TOKENIZER_HF, &e);
    if (!t || file_write(path, text_get(&v), v.length, &e) < 0)
        fail_msg("%s", e.text);
    text_finish(&v);
    return t;
}

static void write_text(const char *path)
{
    struct text t = {0};
    struct error e = {0};
    for (uint32_t k = 0; k < 600; k++) {
        for (uint32_t word = 0; word < 8; word++) {
            const uint32_t w = 5 + random_draw(VOCABULARY - 5);
            text_add(&t, "%c%c ", 'a' + (int)w / 10, 'a' + (int)w % 10);
        }
        text_add(&t, k % 6 == 5 ? "\n\n" : "\n");
    }
    if (file_write(path, text_get(&t), t.length, &e) < 0)
        fail_msg("%s", e.text);
    text_finish(&t);
}

static void make_data(void)
{
    char text[PATH_BYTES], data[PATH_BYTES];
    struct tokenizer *t = make_tokenizer();
    struct error e = {0};
    struct prepare_stats stats;
    const char *const paths[] = {text};
    path_of(text, "text.txt");
    path_of(data, "data");
    write_text(text);
    const struct prepare_options o = {.path = paths,
                                      .n_paths = 1,
                                      .tokenizer = t,
                                      .folder = data,
                                      .length = 32,
                                      .dupe = 1,
                                      .threads = 2,
                                      .held_out = 0.2,
                                      .seed = 7};
    if (data_prepare(&o, &stats, &e) < 0)
        fail_msg("%s", e.text);
    tokenizer_destroy(t);
}

/* ---- runs ---- */

struct run_case {
    const char *name;
    enum optimizer_kind optimizer;
    enum element dtype;
    enum learn_kind learn;
    uint32_t accumulate;
    bool code, per_layer, two_levels;
    uint64_t settle;
};

/* clang-format off */
static const struct run_case cases[] = {
    {"AdamW",             OPTIMIZER_ADAMW, ELEMENT_F32,  LEARN_NOTHING,   1, .settle = 0},
    {"LAMB, bf16",        OPTIMIZER_LAMB,  ELEMENT_BF16, LEARN_NOTHING,   2, .settle = 0},
    {"P",                 OPTIMIZER_ADAMW, ELEMENT_F32,  LEARN_P,         1, .settle = 0},
    {"DAM_u, two levels", OPTIMIZER_LAMB,  ELEMENT_F32,  LEARN_ENTRIES,   1, .two_levels = true},
    {"DAM_s, settles",    OPTIMIZER_ADAMW, ELEMENT_BF16, LEARN_DISTANCES, 1, .per_layer = true, .settle = 2},
    {"DAM_s of the code", OPTIMIZER_ADAMW, ELEMENT_F32,  LEARN_DISTANCES, 1, .code = true},
};
/* clang-format on */

static uint32_t steps_left; /* until a run is asked to stop */

static bool stop(void)
{
    return steps_left-- == 0;
}

/* Where a run leaves its files. */
struct places {
    char model[PATH_BYTES], data[PATH_BYTES], run[PATH_BYTES], gradients[PATH_BYTES];
};

static struct places places_of(const struct run_case *c, const char *side)
{
    struct places p;
    char name[64];
    snprintf(p.model, sizeof p.model, "%s", random_folder);
    path_of(p.data, "data");
    snprintf(name, sizeof name, "run-%d-%s", (int)(c - cases), side);
    path_of(p.run, name);
    snprintf(name, sizeof name, "gradients-%d-%s", (int)(c - cases), side);
    path_of(p.gradients, name);
    return p;
}

static struct run_options options_of(const struct run_case *c, const struct places *p,
                                     const struct backend *b)
{
    return (struct run_options){.model = p->model,
                                .data = p->data,
                                .run = p->run,
                                .mask = c->learn == LEARN_NOTHING ? "longformer(5,2)" : NULL,
                                .learn = {.kind = c->learn,
                                          .code = c->code,
                                          .per_layer = c->per_layer,
                                          .two_levels = c->two_levels,
                                          .lambda = 1e-7,
                                          .tau = 1,
                                          .tau_end = 0.5,
                                          .scale = 10,
                                          .rate = 1e-2,
                                          .settle = c->settle},
                                .steps = STEPS,
                                .batch = 8,
                                .accumulate = c->accumulate,
                                .optimizer = {c->optimizer, 0.9, 0.999, 1e-6, 0.01, 1, true},
                                .rate = 1e-3,
                                .hidden_dropout = 0.1,
                                .attention_dropout = 0.1,
                                .data_options.mlm_probability = 0.15,
                                .dtype = c->dtype,
                                .seed = 3,
                                .threads = 2,
                                .save_every = 3,
                                .eval_every = 3,
                                .keep = 2,
                                .goes_on = true,
                                .save_gradients = p->gradients,
                                .backend = b};
}

/* Goes on with a run that was stopped, or begins it. */
static void run_steps(const struct run_options *o, uint32_t steps)
{
    static const struct run_watch watch = {.stop = stop, .progress = NULL};
    struct run_result result;
    struct error e = {0};
    steps_left = steps;
    if (run_train(o, &watch, &result, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(far_arrays(), 0);
}

/* A file that only one of two runs has is a difference. */
static bool same_file(const char *a, const char *b)
{
    struct file f, g;
    struct error e = {0};
    const bool has_a = file_open(a, &f, &e) == 0, has_b = file_open(b, &g, &e) == 0;
    bool ret = has_a == has_b;
    if (has_a && has_b)
        ret = f.size == g.size && !memcmp(f.bytes, g.bytes, f.size);
    if (has_a)
        file_close(&f);
    if (has_b)
        file_close(&g);
    return ret;
}

static void must_be_same(const struct run_case *c, const struct places *p,
                         const struct places *q)
{
    static const char *const files[] = {"model.safetensors", "alpha.safetensors", "config.json",
                                        "mask.mask", "mask.npy"};
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char a[2 * PATH_BYTES], b[2 * PATH_BYTES];
        snprintf(a, sizeof a, "%s/%s", p->run, files[k]);
        snprintf(b, sizeof b, "%s/%s", q->run, files[k]);
        assert_true(k > 0 || access(a, R_OK) == 0);
        if (!same_file(a, b))
            fail_msg("%s: %s differs", c->name, files[k]);
    }
    if (access(p->gradients, R_OK) != 0 || !same_file(p->gradients, q->gradients))
        fail_msg("%s: gradients differ", c->name);
}

static void writes_the_same(void **unused)
{
    (void)unused;
    for (const struct run_case *c = cases; c < cases + sizeof cases / sizeof *cases; c++) {
        const struct places cpu = places_of(c, "cpu"), far = places_of(c, "far");
        const struct run_options on_cpu = options_of(c, &cpu, NULL),
                                 on_far = options_of(c, &far, far_backend());
        run_steps(&on_cpu, UINT32_MAX);
        run_steps(&on_far, STEPS / 2);
        run_steps(&on_far, UINT32_MAX);
        must_be_same(c, &cpu, &far);
    }
}

/* Heads of 26 columns are padded, by way of the host. */
static void writes_the_same_padded(void **unused)
{
    static const struct run_case *const c = cases;
    struct places cpu = places_of(c, "padded-cpu"), far = places_of(c, "padded-far");
    (void)unused;
    random_model(1, 130, 5, 2, "gelu");
    const struct run_options on_cpu = options_of(c, &cpu, NULL),
                             on_far = options_of(c, &far, far_backend());
    run_steps(&on_cpu, UINT32_MAX);
    run_steps(&on_far, UINT32_MAX);
    must_be_same(c, &cpu, &far);
}

/* Otherwise the tests above would ask nothing. */
static void host_cannot_read(void **unused)
{
    const struct training_backend *does = far_backend()->training;
    float *array = does->array_new(NULL, 100, NULL), one = 1, read = 0;
    (void)unused;
    assert_null(does->array_host(NULL, array));
    assert_int_equal(does->array_write(NULL, array + 7, 1, &one, NULL), 0);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(((volatile float *)array)[7] == 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(does->array_read(NULL, array + 7, 1, &read, NULL), 0);
    assert_true(read == 1);
    does->array_destroy(NULL, array);
}

/* ---- a device that cannot record launches ---- */

static char said[256];
static uint32_t lines; /* about graphs */

static void say(const char *line)
{
    if (!strstr(line, "graphs"))
        return;
    lines++;
    snprintf(said, sizeof said, "%s", line);
}

static int refuse(const struct gpu *g, struct gpu_stream *s, struct error *e)
{
    (void)g, (void)s;
    return error_set(e, ERROR_UNAVAILABLE, "this device cannot record");
}

/* The same batch in each step would be recorded in the second one. */
static void goes_on_without_graphs(void **unused)
{
    static const struct run_watch watch = {.stop = stop, .say = say};
    struct gpu_driver driver = gpu_driver_emulated;
    struct backend b = backend_emulated;
    const struct places p = places_of(cases, "graphs");
    struct run_options o = options_of(cases, &p, &b);
    struct run_result result;
    struct error e = {0};
    (void)unused;
    driver.record = refuse;
    b.driver = &driver;
    o.overfit = true;
    o.save_gradients = NULL;
    steps_left = UINT32_MAX;
    random_model(1, 64, 4, 2, "gelu");
    if (run_train(&o, &watch, &result, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(result.step, STEPS);
    assert_string_equal(said, "goes on without CUDA graphs: this device cannot record");
    assert_int_equal(lines, 1);
}

static int setup(void **unused)
{
    (void)unused;
    if (!random_begin())
        return -1;
    random_model(2, 64, 4, 2, "gelu");
    make_data();
    return 0;
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_cannot_read),
        cmocka_unit_test(writes_the_same),
        cmocka_unit_test(writes_the_same_padded),
        cmocka_unit_test(goes_on_without_graphs),
    };
    return cmocka_run_group_tests_name("train/far", tests, setup, teardown);
}
