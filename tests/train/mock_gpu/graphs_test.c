/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and buffers of training on the mock GPU (tests/model/fake_gpu.c). A captured launch keeps its arguments, so a stale
   argument gives other gradients: are they the same with and without graphs, whatever changes between passes? Does training
   go on without graphs if a recording fails? */
#include "runtime/device/cuda_driver.h"
#include "tests/support/test.h"
#include "tests/train/mock_gpu/mock_gpu.h"
#include <stdlib.h>
#include <string.h>

/* Segments of the encoder; of heads: the words, the labels forward and back. */
enum { LAYERS = 2, SEGMENTS = 2 + LAYERS, HEADS = 3 };

static struct training_use use_of(const struct train_subject *s)
{
    return train_state_use(s->state);
}

/* ---- passes that differ ---- */

/* Sequences first .. first + count of the batch, and what differs from the usual request. */
struct pass {
    uint32_t first, count;
    uint64_t seed;
    double hidden_dropout, attention_dropout;
    bool loss_only, shakes; /* shakes: the parameters change before it */
    bool words_only;
    enum recompute recompute;
    uint32_t added; /* to each token id */
    uint32_t words; /* the first so many are masked; 0: those of the batch */
    double weight;  /* of the words; 0: the usual one */
    uint32_t
        moved; /* tokens that the first sequence has, and the second one lacks: the longest is another */
};

/* The last passes have the keys of the first. Most memory is needed at the beginning: later growth would forget graphs. */
static const struct pass passes[] = {
    {0, 2, 1, .1, .1, .words = 20},
    {0, 2, 1, .1, .1, .words = 18, .weight = 0.3},
    {0, 2, 1, .1, .1},
    {0, 2, 1, .1, .1, .added = 1},
    {0, 2, 1, .1, .1, .added = 2, .shakes = true},
    {3, 2, 1, .1, .1},
    {3, 2, 1, .1, .1, .words_only = true},
    {3, 2, 1, .1, .1, .added = 1},
    {0, 2, 2, .1, .1},
    {0, 2, 2, .1, .1, .added = 1},
    {0, 2, 2, .1, .1},
    {0, 2, 3, .1, .1, .moved = 33},
    {0, 2, 3, .1, .1, .moved = 33},
    {0, 2, 3, .1, .1},
    {0, 2, 1, .2, .1},
    {0, 2, 1, .2, .1},
    {0, 2, 1, .1, 0},
    {0, 2, 1, .1, 0, .words_only = true},
    {0, 2, 1, .1, .1, .recompute = RECOMPUTE_LAYER},
    {0, 2, 1, .1, .1, .recompute = RECOMPUTE_LAYER, .added = 1},
    {0, 2, 1, .1, .1, .loss_only = true},
    {0, 2, 1, .1, .1, .loss_only = true, .added = 1},
    {0, 2, 1, .1, .1, .words = 3},
    {0, 2, 1, .1, .1, .shakes = true, .added = 2},
};
enum { PASSES = sizeof passes / sizeof *passes };

/* The pass's part of the batch in *part, whose sequences have the words of `ids`. */
struct part {
    struct train_batch batch;
    int32_t offsets[SEQUENCES + 1];
    uint32_t rows[ROWS], ids[SEQUENCES][POSITIONS], masked[MASKED];
    struct sequence list[SEQUENCES];
};

static void slice(struct train_subject *s, const struct pass *p, struct part *part)
{
    train_batch_slice(&s->batch, p->first, p->count, &part->batch, part->offsets, part->rows);
    part->offsets[1] += (int32_t)p->moved;
    for (uint32_t k = 0; k < p->count; k++) {
        const struct sequence *from = &part->batch.list[k];
        part->list[k] = *from;
        part->list[k].token_ids = part->ids[k];
        part->list[k].count = from->count + (k ? -p->moved : p->moved);
        for (uint32_t i = 0; i < part->list[k].count; i++) {
            const uint32_t id = from->token_ids[i % from->count] + p->added;
            part->ids[k][i] = id < VOCABULARY ? id : VOCABULARY - 1;
        }
    }
    part->batch.list = part->list;
    struct train_target *words = &part->batch.target[SUBJECT_WORDS];
    assert_true(p->words <= part->batch.tokens);
    for (uint32_t k = 0; k < p->words; k++)
        part->masked[k] = k;
    if (p->words) {
        words->count = p->words;
        words->row = part->masked;
    }
    if (p->words_only)
        part->batch.target[SUBJECT_NEXT].count = 0;
}

static int run_pass(struct train_subject *s, const struct pass *p, bool graphs,
                    struct batch_loss *loss, struct error *e)
{
    struct part part;
    struct gradients_request r = subject_request(s);
    slice(s, p, &part);
    r.batch = &part.batch;
    r.seed = p->seed;
    r.hidden_dropout = p->hidden_dropout;
    r.attention_dropout = p->attention_dropout;
    r.loss_only = p->loss_only;
    r.recompute = p->recompute;
    r.no_graphs = !graphs;
    if (p->weight > 0)
        r.weight[SUBJECT_WORDS] = p->weight;
    if (p->shakes) {
        state_shake(s->state);
        if (engine_repack(s->engine, e) < 0)
            return -1;
    }
    return train_state_clear(s->state, 1, e) < 0 ? -1
                                                 : gradients_compute(&r, s->workspace, loss, e);
}

/* Losses and gradients of all passes. */
static void run_passes(bool graphs, struct batch_loss loss[PASSES], float *gradient[PASSES])
{
    struct train_subject s;
    struct error e = {0};
    mock_gpu_subject(&s, LAYERS, ELEMENT_F32);
    device_fake->captures = device_fake->replays = 0;
    for (uint32_t k = 0; k < PASSES; k++) {
        if (run_pass(&s, &passes[k], graphs, &loss[k], &e) < 0)
            fail_msg("%s", e.text);
        gradient[k] = state_gradient(s.state);
    }
    assert_null(use_of(&s).no_graphs);
    subject_end(&s);
    assert_int_equal(device_fake->graphs, 0);
}

static void graphs_change_no_bit(void **unused)
{
    static struct batch_loss truth[PASSES], loss[PASSES];
    float *expected[PASSES], *got[PASSES];
    uint64_t count = 0;
    struct train_subject s;
    (void)unused;
    mock_gpu_subject(&s, LAYERS, ELEMENT_F32);
    count = s.state->count;
    subject_end(&s);
    run_passes(false, truth, expected);
    assert_int_equal(device_fake->captures + device_fake->replays, 0);
    run_passes(true, loss, got);
    /* Eight keys of the encoder are seen at least twice, one of them only forward. Heads have one key more for many words, and one
       less where both times of a key have other targets. Weights are packed twice. */
    assert_int_equal(device_fake->captures, 7 * SEGMENTS + 1 + 7 * HEADS + 2 + 1);
    for (uint32_t k = 0; k < PASSES; k++) {
        if (memcmp(expected[k], got[k], count * sizeof **got))
            fail_msg("pass %u has other gradients", k);
        assert_memory_equal(&truth[k], &loss[k], sizeof *loss);
        free(expected[k]);
        free(got[k]);
    }
}

/* ---- what is kept ---- */

static void old_passes_give_way(void **unused)
{
    struct train_subject s;
    struct error e = {0};
    struct batch_loss loss = {0};
    (void)unused;
    mock_gpu_subject(&s, LAYERS, ELEMENT_F32);
    device_idle = true;
    for (uint64_t seed = 1; seed <= 40; seed++)
        for (int twice = 0; twice < 2; twice++)
            if (run_pass(&s, &(struct pass){0, 3, seed}, true, &loss, &e) < 0)
                fail_msg("%s", e.text);
    assert_int_equal(device_fake->graphs, 32 * (SEGMENTS + HEADS));
    /* A larger batch moves all memory. */
    if (run_pass(&s, &(struct pass){0, SEQUENCES, 1}, true, &loss, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(device_fake->graphs, 0);
    device_idle = false;
    subject_end(&s);
}

/* ---- failures ---- */

/* `before`: calls of this name that succeed in the pass that is recorded. */
static void must_go_on(const char *call, int before, const float *truth)
{
    static const struct pass p = {0, 1, 1, .1, .1};
    struct train_subject s;
    struct error e = {0};
    struct batch_loss loss = {0};
    mock_gpu_subject(&s, LAYERS, ELEMENT_F32);
    if (run_pass(&s, &p, true, &loss, &e) < 0)
        fail_msg("%s", e.text);
    device_fake->fails_after = before;
    snprintf(device_fake->fails, sizeof device_fake->fails, "%s", call);
    for (int again = 0; again < 2; again++) {
        if (run_pass(&s, &p, true, &loss, &e) < 0)
            fail_msg("%s: %s", call, e.text);
        float *got = state_gradient(s.state);
        assert_memory_equal(truth, got, s.state->count * sizeof *got);
        free(got);
        const char *why = use_of(&s).no_graphs;
        if (!why || !why[0] || strchr(why, '\n'))
            fail_msg("%s: '%s'", call, why ? why : "");
    }
    device_fake->fails[0] = 0;
    subject_end(&s);
    if (!mock_gpu_holds_nothing())
        fail_msg("%s: something is kept", call);
}

static float *gradients_without_graphs(void)
{
    struct train_subject s;
    struct error e = {0};
    struct batch_loss loss = {0};
    mock_gpu_subject(&s, LAYERS, ELEMENT_F32);
    if (run_pass(&s, &(struct pass){0, 1, 1, .1, .1}, false, &loss, &e) < 0)
        fail_msg("%s", e.text);
    float *ret = state_gradient(s.state);
    subject_end(&s);
    return ret;
}

static void a_failed_recording_changes_no_bit(void **unused)
{
    /* In the forward pass, or in the way back through a layer, when sums of columns wait. */
    static const struct {
        const char *call;
        int before;
    } calls[] = {{"cuStreamBeginCapture_v2", 0}, {"cuStreamBeginCapture_v2", 2},
                 {"cuLaunchKernel", 0},          {"cuLaunchKernel", 43},
                 {"cublasLtMatmul", 0},          {"cublasLtMatmul", 19},
                 {"cuStreamEndCapture", 1},      {"cuGraphInstantiateWithFlags", 2}};
    float *truth = gradients_without_graphs();
    (void)unused;
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
        must_go_on(calls[k].call, calls[k].before, truth);
    /* A driver without graphs. */
    struct cuda_driver *d = (struct cuda_driver *)(uintptr_t)cuda_driver();
    int (*launch)(struct cu_graph_exec *, struct cu_stream *) = d->cuGraphLaunch;
    d->cuGraphLaunch = NULL;
    must_go_on("cuGraphLaunch", 0, truth);
    d->cuGraphLaunch = launch;
    free(truth);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_change_no_bit),
        cmocka_unit_test(old_passes_give_way),
        cmocka_unit_test(a_failed_recording_changes_no_bit),
    };
    const int begun = mock_gpu_begin(argc, argv);
    return begun ? begun
                 : mock_gpu_end(cmocka_run_group_tests_name("graphs of training on a mock GPU",
                                                            tests, NULL, NULL));
}
