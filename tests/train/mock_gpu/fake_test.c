/* SPDX-License-Identifier: Apache-2.0 */
/* Does training through the driver API and cuBLASLt, on a mock GPU (tests/model/fake_gpu.c), give the gradients of the
   emulated device? Is a pass right that is submitted while the pass before still runs? Do sums by a mock of NCCL begin during the backward pass, on a stream that waits for the gradients? When a
   call fails: is there one line, and is nothing kept? */
#include "masks/base/memory.h"
#include "model/comm/nccl/nccl.h"
#include "model/train/optimizer.h"
#include "tests/support/test.h"
#include "tests/train/mock_gpu/mock_gpu.h"
#include "tests/train/ranks/fake_nccl.h"
#include "tests/train/subject.h"
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 32 };

/* ret_loss: of the words, which the host reads after it has submitted the pass. */
static float *run(const char *device, enum element dtype, struct train_subject *s,
                  double *ret_loss)
{
    random_restart();
    random_model(1, HIDDEN, 2, 2, "gelu_new");
    subjects_are_on(device);
    subject_begin(s, &(struct subject_options){"longformer(5,2)", "softmax", dtype, 2});
    if (!strcmp(device, "cuda"))
        device_use_attention(s->engine);
    struct gradients_request r = subject_request(s);
    r.hidden_dropout = r.attention_dropout = 0.1;
    *ret_loss = subject_run(s, &r).target[SUBJECT_WORDS].sum;
    return state_gradient(s->state);
}

/* Products are summed in another order, after which bf16 rounds some the other way. */
static void gradients_are_those_of_the_emulated_device(void **unused)
{
    (void)unused;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const enum element dtype = bf16 ? ELEMENT_BF16 : ELEMENT_F32;
        struct train_subject emulated, cuda;
        double d = 0, all = 0, true_loss, loss;
        device_use_ops(dtype, HIDDEN, true);
        float *truth = run("emulated", dtype, &emulated, &true_loss);
        float *got = run("cuda", dtype, &cuda, &loss);
        for (uint64_t k = 0; k < cuda.state->count; k++) {
            d += pow((double)got[k] - (double)truth[k], 2);
            all += pow((double)truth[k], 2);
        }
        if (!(sqrt(d) <= (bf16 ? 2e-2 : 1e-6) * sqrt(all)) || !(all > 0))
            fail_msg("off by %g of %g", sqrt(d), sqrt(all));
        if (!(fabs(loss - true_loss) <= (bf16 ? 1e-2 : 1e-6) * true_loss))
            fail_msg("the loss is %.9g instead of %.9g", loss, true_loss);
        free(truth);
        free(got);
        subject_end(&emulated);
        subject_end(&cuda);
    }
}

/* ---- passes, one after another ---- */

enum { PASSES = 4 };

static int all_launches(void)
{
    return device_fake->launches + device_fake->products;
}

/* Launches of a pass that have run when the work on the gradients of its layer is submitted. Copies may be among those that have
   not. */
struct progress {
    int before, ran;
};

static int note_progress(void *context, uint32_t layer, struct error *e)
{
    struct progress *p = context;
    (void)layer, (void)e;
    p->ran = all_launches() - p->before - device_fake->left();
    return 0;
}

/* Each pass has a part of the batch. The second one has no targets, so that nothing waits for the first one before the third,
   which has the same stage. The third has only words. */
static void run_pass(struct train_subject *s, uint32_t k)
{
    struct progress progress = {all_launches(), 0};
    const struct gradients_watch watch = {note_progress, &progress};
    int32_t offsets[SEQUENCES + 1];
    uint32_t rows[ROWS];
    struct train_batch part;
    struct gradients_request r = subject_request(s);
    struct batch_loss loss = {0};
    struct error e = {0};
    train_batch_slice(&s->batch, 2 * k, 2, &part, offsets, rows);
    for (uint32_t t = 0; t < part.targets && k == 1; t++)
        part.target[t].count = 0;
    if (k == 2)
        part.target[SUBJECT_NEXT].count = 0;
    r.batch = &part;
    r.watch = &watch;
    if (gradients_compute(&r, s->workspace, &loss, &e) < 0)
        fail_msg("%s", e.text);
    /* Those before the logits of few labels, which the host waits for; losses of words are read at the end. */
    assert_true(progress.ran <= (part.target[SUBJECT_NEXT].count ? 15 : 0));
}

static float *run_passes(struct train_subject *s, bool waits)
{
    struct error e = {0};
    device_fake->copies = device_fake->beside = 0;
    if (train_state_clear(s->state, 1, &e) < 0)
        fail_msg("%s", e.text);
    for (uint32_t k = 0; k < PASSES; k++) {
        run_pass(s, k);
        if (waits)
            free(state_gradient(s->state));
    }
    /* Gradients of labels are copied in two passes, too. */
    assert_int_equal(device_fake->copies, PASSES + 2);
    assert_true(waits || device_fake->beside == PASSES);
    return state_gradient(s->state);
}

static void passes_do_not_wait_for_each_other(void **unused)
{
    struct train_subject s;
    (void)unused;
    device_use_ops(ELEMENT_F32, HIDDEN, true);
    random_restart();
    random_model(1, HIDDEN, 2, 2, "gelu");
    subjects_are_on("cuda");
    subject_begin(&s, &(struct subject_options){"dense", "softmax", ELEMENT_F32, 2});
    device_use_attention(s.engine);
    float *truth = run_passes(&s, true);
    for (int lazy = 0; lazy < 2; lazy++) {
        device_fake->lazy_copies = lazy;
        float *got = run_passes(&s, false);
        assert_memory_equal(truth, got, s.state->count * sizeof *got);
        free(got);
    }
    device_fake->lazy_copies = 0;
    free(truth);
    subject_end(&s);
}

/* ---- sums of one rank ---- */

struct sums {
    const struct comm *comm;
    const struct train_state *state;
    uint64_t begun; /* from this element on */
};

static int begin_from(struct sums *s, uint64_t first)
{
    s->comm->begin_sum(s->comm, s->state->gradient + first, s->begun - first);
    s->begun = first;
    return 0;
}

static int left_layer(void *context, uint32_t layer, struct error *e)
{
    struct sums *s = context;
    (void)e;
    return begin_from(s, train_state_final(s->state, layer));
}

/* Gradients of a batch, and their sums by a mock of NCCL, in the GPU's context. */
static int sum_gradients(const struct gradients_request *of, const struct comm *c,
                         struct gradients_workspace *w, struct error *e)
{
    struct sums s = {c, of->state, of->state->count};
    const struct gradients_watch watch = {left_layer, &s};
    struct gradients_request r = *of;
    struct batch_loss loss = {0};
    r.watch = &watch;
    const int result = gradients_compute(&r, w, &loss, e);
    if (result == 0)
        begin_from(&s, 0);
    return c->end_sums(c, result, e);
}

static int begun_at[8], sums_begun;
static const void *stream_of_sums;

/* The stream waits for all work that arrays have been given. */
static void note_sum(const char *call, const void *at, void *stream)
{
    (void)at;
    assert_string_equal(call, "ncclAllReduce");
    assert_int_equal(device_fake->unseen(stream), 0);
    begun_at[sums_begun++ & 7] = all_launches();
    stream_of_sums = stream;
}

static void sums_begin_during_the_backward_pass(void **unused)
{
    void *library = dlopen(getenv("MASKC_NCCL"), RTLD_NOW);
    struct fake_nccl *nccl = dlsym(library, "fake_nccl");
    struct train_subject s;
    struct error e = {0};
    (void)unused;
    device_use_ops(ELEMENT_F32, HIDDEN, true);
    random_restart();
    random_model(2, HIDDEN, 2, 2, "gelu");
    subjects_are_on("cuda");
    subject_begin(&s, &(struct subject_options){"dense", "softmax", ELEMENT_F32, 2});
    device_use_attention(s.engine);
    const struct comm *c = comm_nccl(&comm_alone, &s.state->device, &nccl_limits, &e);
    if (!c)
        fail_msg("%s", e.text);
    const struct gradients_request r = subject_request(&s);
    nccl->moves = note_sum;
    if (sum_gradients(&r, c, s.workspace, &e) < 0)
        fail_msg("%s", e.text);
    nccl->moves = NULL;
    assert_int_equal(sums_begun, 3);
    assert_ptr_equal(device_fake->asked, stream_of_sums);
    assert_true(begun_at[0] + 10 < begun_at[1] && begun_at[1] + 5 < begun_at[2]);
    assert_int_equal(begun_at[2], all_launches());
    /* The wait for sums is not one for work that came after them. */
    const struct training_device *d = &s.state->device;
    assert_int_equal(d->does->array_clear(d->state, s.state->gradient, 1, 1, &e), 0);
    assert_int_equal(c->end_sums(c, 0, &e), 0);
    assert_int_equal(device_fake->unseen(stream_of_sums), 1);
    c->close(c);
    subject_end(&s);
    dlclose(library);
}

/* ---- failures ---- */

/* One step of training; kernels do nothing. */
static int step(const struct gradients_request *r, const struct comm *c,
                struct gradients_workspace *w, uint64_t number, struct error *e)
{
    const struct optimizer lamb = {OPTIMIZER_LAMB, 0.9, 0.999, 1e-6, 0.01, 1, true};
    double of;
    if (train_state_clear(r->state, 1, e) < 0 || sum_gradients(r, c, w, e) < 0 ||
        optimizer_step(&lamb, r->state, &(struct optimizer_step){number, 1e-3, 1}, &of, e) < 0)
        return -1;
    return engine_repack(r->engine, e);
}

/* Three steps alike, beginning to end: as they are, recorded, replayed. */
static int steps(const struct engine *g, struct train_state *s, const struct comm *c,
                 struct error *e)
{
    static const uint32_t token_ids[] = {3, 1, 2}, sample[] = {7}, row[] = {1}, label[] = {4},
                          first[] = {0}, next[] = {1};
    static const int32_t offsets[] = {0, 3};
    struct sequence list = {token_ids, 3, 2};
    struct train_batch b = {
        .sequences = 1,
        .tokens = 3,
        .list = &list,
        .offsets = (int32_t *)(uintptr_t)offsets,
        .sample = (uint32_t *)(uintptr_t)sample,
        .targets = 2,
        .target = {{TARGET_WORDS, 1, row, label}, {TARGET_NEXT, 1, first, next}}};
    const struct gradients_request r = {
        .engine = (struct engine *)(uintptr_t)g, .state = s, .batch = &b, .weight = {1, 1}};
    struct gradients_workspace *w = gradients_workspace_new(g);
    int result = 0;
    for (uint64_t k = 1; k <= 3 && result == 0; k++)
        result = step(&r, c, w, k, e);
    gradients_workspace_destroy(w);
    return result;
}

static int steps_of_one_rank(const struct engine *g, struct train_state *s, struct error *e)
{
    const struct comm *c = comm_nccl(&comm_alone, &s->device, &nccl_limits, e);
    if (!c)
        return -1;
    const int r = steps(g, s, c, e);
    comm_nccl_close(c, r < 0);
    return r;
}

/* *noticed: graphs were given up, for a reason of one line. */
static bool live(bool *noticed, struct error *e)
{
    const struct engine_options o = {.mask = "dense",
                                     .threads = 1,
                                     .device = "cuda",
                                     .parts = PART_POOLER | PART_NSP | PART_MLM,
                                     .trains = true};
    struct engine *g = engine_load(random_folder, &o, e);
    struct train_state *s = NULL;
    const bool ok = g && train_state_new(g, &s, e) == 0 && steps_of_one_rank(g, s, e) == 0;
    const char *why = s ? train_state_use(s).no_graphs : NULL;
    *noticed = why && why[0] && !strchr(why, '\n');
    train_state_destroy(s);
    engine_destroy(g);
    return ok;
}

/* Every call in turn, but for one in `stride` of the many alike. */
static void a_failure_leaves_nothing(void **unused)
{
    enum { STRIDE = 7 };
    struct error e = {0};
    bool noticed;
    int told = 0, tried = 0;
    (void)unused;
    random_restart();
    random_model(1, HIDDEN, 2, 2, "gelu");
    device_idle = true;
    device_fake->calls = 0;
    device_fake->captures = device_fake->replays = 0;
    if (!live(&noticed, &e) || noticed)
        fail_msg("%s", e.text);
    /* Four segments of the encoder and the words, two of labels, and the packs; in two steps each. */
    assert_int_equal(device_fake->captures, 7);
    assert_int_equal(device_fake->replays, 14);
    const int calls = device_fake->calls;
    assert_true(calls > 200 && mock_gpu_holds_nothing());
    for (int k = 1; k <= calls; k += STRIDE, tried++) {
        e = (struct error){0};
        device_fake->calls = 0;
        device_fake->fail_at = k;
        const bool ok = live(&noticed, &e);
        device_fake->fail_at = 0;
        told += !ok || noticed;
        if (!ok && (e.kind != ERROR_UNAVAILABLE || strchr(e.text, '\n') || !e.text[0]))
            fail_msg("call %d, %s: %d '%s'", k, device_fake->failed, (int)e.kind, e.text);
        if (!mock_gpu_holds_nothing())
            fail_msg("call %d, %s: something is kept after '%s'", k, device_fake->failed,
                     e.text);
    }
    assert_true(told > tried * 3 / 4);
    device_idle = false;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_emulated_device),
        cmocka_unit_test(passes_do_not_wait_for_each_other),
        cmocka_unit_test(sums_begin_during_the_backward_pass),
        cmocka_unit_test(a_failure_leaves_nothing),
    };
    const int begun = mock_gpu_begin(argc, argv);
    return begun ? begun
                 : mock_gpu_end(cmocka_run_group_tests_name("training on a mock GPU", tests,
                                                            NULL, NULL));
}
