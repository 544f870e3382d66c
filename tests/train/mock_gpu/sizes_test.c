/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of batches of training on the mock GPU (tests/model/fake_gpu.c): are they padded to few? Do batches that are padded alike
   share graphs, do all others have graphs of their own, and are gradients those of passes without graphs? */
#include "model/backend/gpu/train/train.h"
#include "tests/support/test.h"
#include "tests/train/mock_gpu/mock_gpu.h"
#include <stdlib.h>
#include <string.h>

/* ---- padding ---- */

static struct gradients_sizes random_sizes(uint32_t most, int32_t *offsets)
{
    struct gradients_sizes ret = {.sequences = 1 + random_draw(most)};
    const uint32_t longest = 1 + random_draw(POSITIONS);
    for (uint32_t k = 0; k < ret.sequences; k++) {
        const uint32_t count = 1 + random_draw(longest);
        offsets[k] = (int32_t)ret.tokens;
        ret.tokens += count;
        ret.longest = count > ret.longest ? count : ret.longest;
    }
    offsets[ret.sequences] = (int32_t)ret.tokens;
    return ret;
}

static void must_cover(const struct gradients_sizes *own, const struct gradients_sizes *padded,
                       int32_t *offsets)
{
    const struct train_batch b = {
        .sequences = own->sequences, .tokens = own->tokens, .offsets = offsets};
    int32_t *ret = calloc(padded->sequences + UINT64_C(1), sizeof *ret);
    gpu_train_padded_offsets(padded, &b, ret);
    assert_memory_equal(ret, offsets, (own->sequences + UINT64_C(1)) * sizeof *ret);
    for (uint32_t k = 0; k < padded->sequences; k++)
        assert_in_range(ret[k + 1] - ret[k], 0, padded->longest);
    assert_int_equal(ret[padded->sequences], padded->tokens);
    free(ret);
}

static void padding_is_small_and_in_sequences(void **unused)
{
    enum { MOST = 300, CASES = 2000 };
    const struct engine g = {.longest = POSITIONS};
    int32_t offsets[MOST + 1];
    (void)unused;
    random_restart();
    for (uint32_t k = 0; k < CASES; k++) {
        const struct gradients_sizes own = random_sizes(1 + k % MOST, offsets),
                                     padded = gpu_train_padded(&g, &own);
        assert_true(padded.tokens >= own.tokens && padded.tokens % 16 == 0 &&
                    padded.tokens <= own.tokens + (own.tokens < 256 ? 15 : own.tokens / 16));
        assert_in_range(padded.longest, own.longest, POSITIONS);
        must_cover(&own, &padded, offsets);
    }
}

/* ---- recordings ---- */

enum { MOST_LENGTHS = 4 };

/* Lengths of the sequences of a batch, up to a 0. */
struct batch_lengths {
    uint32_t each[MOST_LENGTHS];
};

struct own_batch {
    struct train_batch batch;
    struct sequence list[MOST_LENGTHS];
    int32_t offsets[MOST_LENGTHS + 1];
    uint32_t sample[MOST_LENGTHS], first[MOST_LENGTHS], next[MOST_LENGTHS];
    uint32_t row[MOST_LENGTHS], label[MOST_LENGTHS];
};

/* Each sequence has a masked word, its last one, and a label. */
static void make(struct train_subject *s, const struct batch_lengths *l, struct own_batch *b)
{
    uint32_t n = 0, tokens = 0;
    for (; n < MOST_LENGTHS && l->each[n]; n++) {
        const uint32_t count = l->each[n];
        for (uint32_t i = 0; i < count; i++)
            s->tokens.token_ids[n][i] = 1 + (i * 7 + n * 5 + count) % (VOCABULARY - 1);
        b->list[n] = (struct sequence){s->tokens.token_ids[n], count, count / 2};
        b->offsets[n] = (int32_t)tokens;
        b->sample[n] = 70 + n;
        b->first[n] = tokens;
        b->next[n] = n % 2;
        tokens += count;
        b->row[n] = tokens - 1;
        b->label[n] = 3 + n;
    }
    b->offsets[n] = (int32_t)tokens;
    b->batch = (struct train_batch){
        .sequences = n,
        .tokens = tokens,
        .list = b->list,
        .offsets = b->offsets,
        .sample = b->sample,
        .targets = 2,
        .target = {{TARGET_WORDS, n, b->row, b->label}, {TARGET_NEXT, n, b->first, b->next}}};
}

/* The gradients; the caller frees them. */
static float *run(struct train_subject *s, const struct batch_lengths *l, bool graphs,
                  bool loss_only)
{
    struct own_batch own;
    struct gradients_request r = subject_request(s);
    make(s, l, &own);
    r.batch = &own.batch;
    r.hidden_dropout = r.attention_dropout = 0.1;
    r.no_graphs = !graphs;
    r.loss_only = loss_only;
    subject_run(s, &r);
    return state_gradient(s->state);
}

static const struct batch_lengths lengths[] = {
    {{40, 24}},     /* 64 rows, 48 of the longest, 2 sequences */
    {{40, 40}},     /* 80 rows */
    {{40, 12, 12}}, /* 3 sequences */
    {{60, 4}},      /* 64 of the longest */
    {{38, 20}},     /* padded to 64 rows in 3 sequences, with two labels */
    {{33, 17, 14}}, /* so is this, with three */
};
enum { LAYERS = 1, HEADS = 3, SEGMENTS = 2 + LAYERS + HEADS };
enum { CASES = sizeof lengths / sizeof *lengths, KEYS = 4 };

static void sizes_have_their_own_recordings(void **unused)
{
    struct train_subject s;
    float *truth[CASES];
    (void)unused;
    mock_gpu_subject(&s, LAYERS, ELEMENT_F32);
    for (uint32_t k = 0; k < CASES; k++)
        truth[k] = run(&s, &lengths[k], false, false);
    device_fake->captures = device_fake->replays = 0;
    for (uint32_t turn = 0; turn < 3; turn++)
        for (uint32_t k = 0; k < (turn < 2 ? KEYS : CASES); k++) {
            float *got = run(&s, &lengths[k], true, false);
            if (memcmp(got, truth[k], s.state->count * sizeof *got))
                fail_msg("turn %u, case %u: other gradients", turn, k);
            free(got);
        }
    assert_int_equal(device_fake->captures, KEYS * SEGMENTS);
    assert_int_equal(device_fake->replays, (KEYS + CASES) * SEGMENTS - HEADS);
    for (uint32_t k = 0; k < CASES; k++)
        free(truth[k]);
    subject_end(&s);
}

/* An evaluation of more rows needs less memory for arrays than training, and more for words. */
static void larger_stages_forget_recordings(void **unused)
{
    struct train_subject s;
    (void)unused;
    mock_gpu_subject(&s, LAYERS, ELEMENT_F32);
    float *truth = run(&s, &lengths[0], false, false);
    for (int turn = 0; turn < 4; turn++) {
        float *got = run(&s, &lengths[0], true, false);
        assert_memory_equal(got, truth, s.state->count * sizeof *got);
        free(got);
        if (turn != 1)
            continue;
        assert_int_equal(device_fake->graphs, SEGMENTS);
        free(run(&s, &(struct batch_lengths){{40, 40, 16}}, true, true));
        assert_int_equal(device_fake->graphs, 0);
    }
    free(truth);
    subject_end(&s);
}

/* ---- results ---- */

/* More results are copied while a copy from their memory, of gradients of few labels, has not run. */
static void results_grow_behind_their_copies(void **unused)
{
    enum { MOST = 4096 };
    struct train_subject s;
    struct result r = {0};
    struct error e = {0};
    (void)unused;
    mock_gpu_subject(&s, LAYERS, ELEMENT_F32);
    struct backend_state *state = s.state->device.state;
    const struct op_batch p = {.state = state};
    float *x = s.state->device.does->array_new(state, MOST, &e);
    assert_non_null(x);
    device_fake->lazy_copies = 1;
    if (gpu_train_read(&p, &r, x, sizeof *x, &e) < 0 || gpu_train_reach(&p, &r, &e) < 0 ||
        state->driver->send(state->gpu, &state->stream, x, r.host, sizeof *x, &e) < 0 ||
        gpu_train_read(&p, &r, x, MOST * sizeof *x, &e) < 0)
        fail_msg("%s", e.text);
    device_fake->lazy_copies = 0;
    assert_int_equal(device_fake->early, 0);
    s.state->device.does->array_destroy(state, x);
    gpu_train_result_finish(state, &r);
    assert_int_equal(device_fake->early, 0);
    subject_end(&s);
}

/* An array is freed only after the work that a library left on the second stream has ended. */
static void arrays_wait_for_the_second_stream(void **unused)
{
    struct train_subject s;
    struct error e = {0};
    void *stream;
    (void)unused;
    mock_gpu_subject(&s, LAYERS, ELEMENT_F32);
    struct backend_state *state = s.state->device.state;
    const struct training_backend *does = s.state->device.does;
    float *x = does->array_new(state, 1, &e),
          *from = state->driver->allocate_pinned(state->gpu, sizeof *from, &e);
    if (!x || !from || does->enter(state, &stream, &e) < 0)
        fail_msg("%s", e.text);
    does->leave(state);
    device_fake->lazy_copies = 1;
    if (state->driver->send(state->gpu, &state->beside, x, from, sizeof *x, &e) < 0)
        fail_msg("%s", e.text);
    device_fake->lazy_copies = 0;
    does->array_destroy(state, x);
    state->driver->release_pinned(state->gpu, from);
    assert_int_equal(device_fake->early, 0);
    subject_end(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_is_small_and_in_sequences),
        cmocka_unit_test(sizes_have_their_own_recordings),
        cmocka_unit_test(larger_stages_forget_recordings),
        cmocka_unit_test(results_grow_behind_their_copies),
        cmocka_unit_test(arrays_wait_for_the_second_stream),
    };
    const int begun = mock_gpu_begin(argc, argv);
    return begun ? begun
                 : mock_gpu_end(cmocka_run_group_tests_name("sizes of training on a mock GPU",
                                                            tests, NULL, NULL));
}
