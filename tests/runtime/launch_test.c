/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch hands to a device, seen by a device that only writes it down: defaults, strides,
   workspace, slices; and every argument that must be refused. */
#include "masks/base/memory.h"
#include "runtime/kernel.h"
#include "tests/runtime/fixture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- a device that writes down ---- */

enum { MOST_LAUNCHES = 64 };

struct device_code {
    struct device_launch seen[MOST_LAUNCHES];
    uint32_t count;
};

static uint32_t workers(const struct device_code *c, uint32_t threads)
{
    (void)c;
    return threads ? threads : 2;
}

static void tables(const struct device_code *c, bool transposed, uint32_t layer,
                   struct abi_plan *ret)
{
    (void)c;
    *ret = (struct abi_plan){.works = transposed ? 100 + layer : layer};
}

static int write_down(const struct device_code *c, const struct device_launch *l,
                      struct error *e)
{
    (void)e;
    struct device_code *mine = (struct device_code *)c;
    assert_true(mine->count < MOST_LAUNCHES);
    mine->seen[mine->count++] = *l;
    return 0;
}

static const struct device device_paper = {
    .name = "paper",
    .tables = tables,
    .workers = workers,
    .slices = true,
    .host_memory = true,
    .launch = write_down,
};

/* ---- a kernel and a launch that is right ---- */

enum { N = 40, HEADS = 3, D = 64, BATCH = 2 };

struct bench {
    struct fixture *file;
    struct device_code code;
    struct maskc_kernel kernel;
    struct maskc_launch launch;
    uint8_t *room; /* stands for every tensor; the paper device never touches it */
};

static struct bench *new_bench(bool backward)
{
    struct bench *b = memory_new(1, sizeof *b);
    b->file = fixture_new("window(3)|global(0)", N, HEADS, backward);
    b->kernel = (struct maskc_kernel){.artifact = &b->file->artifact,
                                      .target = &b->file->artifact.target[0],
                                      .device = &device_paper,
                                      .code = &b->code};
    b->room = memory_aligned(1 << 20, 1);
    struct maskc_tensor t = {.data = b->room};
    b->launch = (struct maskc_launch){.pass = backward ? MASKC_BACKWARD : MASKC_FORWARD,
                                      .batch = BATCH,
                                      .query = t,
                                      .key = t,
                                      .value = t,
                                      .out = t,
                                      .grad_out = t,
                                      .grad_query = t,
                                      .grad_key = t,
                                      .grad_value = t,
                                      .lse = (float *)(void *)b->room,
                                      .workspace = b->room};
    b->launch.workspace_bytes = maskc_workspace_bytes(&b->kernel, &b->launch);
    return b;
}

static void free_bench(struct bench *b)
{
    fixture_free(b->file);
    free(b->room);
    free(b);
}

static void run(struct bench *b)
{
    struct maskc_error error;
    if (maskc_run(&b->kernel, &b->launch, &error))
        fail_msg("%s", error.text);
}

static uint64_t round64(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* After the kernel's features have changed. */
static void more_workspace(struct bench *b)
{
    b->launch.workspace_bytes = maskc_workspace_bytes(&b->kernel, &b->launch);
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    struct bench *b = new_bench(false);
    run(b);
    assert_int_equal(b->code.count, 1);
    const struct abi_args *a = &b->code.seen[0].args;
    assert_int_equal(b->code.seen[0].n_phases, 2);
    assert_string_equal(b->code.seen[0].phases[1].entry, "attention_forward");
    assert_int_equal(a->n, N);
    assert_int_equal(a->heads, HEADS);
    assert_int_equal(a->batch, BATCH);
    assert_int_equal(a->slice_batch, BATCH);
    assert_int_equal(a->q.head, D);
    assert_int_equal(a->q.row, D * HEADS);
    assert_int_equal(a->q.batch, D * HEADS * N);
    assert_int_equal(a->lse_head, N);
    assert_int_equal(a->lse_batch, N * HEADS);
    assert_true(fabsf(a->scale - 0.125f) < 1e-7f);
    assert_int_equal(a->keep_below, 0);
    assert_true(a->keep_scale == 1);
    assert_null(a->d_q.data);
    free_bench(b);
}

static void the_workspace_is_what_the_record_says(void **state)
{
    (void)state;
    for (int backward = 0; backward < 2; backward++) {
        struct bench *b = new_bench(backward);
        const struct artifact_plan *p = &b->file->artifact.plan[0];
        uint32_t cols = p->forward.max_cols;
        if (backward && p->transposed.max_cols > cols)
            cols = p->transposed.max_cols;
        const uint64_t rows = 64 + 32; /* 40, rounded up to 32, plus 32 */
        uint64_t state_bytes = backward ? round64(4 * BATCH * HEADS * rows) : 0;
        uint64_t pack_bytes = round64(512 * BATCH * HEADS * rows);
        uint64_t each = round64(1000 + 128 * (uint64_t)cols);
        assert_int_equal(b->launch.workspace_bytes, state_bytes + pack_bytes + 2 * each);
        run(b);
        const struct device_launch *l = &b->code.seen[0];
        assert_int_equal(l->workers, 2);
        assert_int_equal(l->scratch_bytes, 2 * each);
        assert_int_equal(l->args.scratch_stride, each);
        assert_int_equal(l->args.pack_stride, 512 * rows);
        assert_int_equal(l->args.state_rows, rows);
        assert_ptr_equal(l->args.pack, b->room + state_bytes);
        assert_ptr_equal(l->args.scratch, b->room + state_bytes + pack_bytes);
        if (backward)
            assert_ptr_equal(l->args.state, b->room);
        else
            assert_null(l->args.state);
        free_bench(b);
    }
}

/* 512 bytes a row, 96 rows, 3 heads: 227 sequences are packed in 32 MiB. */
static void large_batches_go_in_slices(void **state)
{
    (void)state;
    struct bench *b = new_bench(true);
    const uint32_t slice = 2 * (512u << 10) / (512 * 96 * 3); /* two workers */
    uint32_t next = 0;
    b->launch.batch = 100;
    b->launch.workspace_bytes = maskc_workspace_bytes(&b->kernel, &b->launch);
    run(b);
    assert_int_equal(b->code.count, (100 + slice - 1) / slice);
    for (uint32_t k = 0; k < b->code.count; k++) {
        const struct abi_args *a = &b->code.seen[k].args;
        assert_int_equal(a->first_batch, next);
        assert_int_equal(a->batch, 100);
        assert_in_range(a->slice_batch, 1, slice);
        next += a->slice_batch;
    }
    assert_int_equal(next, 100);
    free_bench(b);
}

static void packed_batches_have_no_batch_stride(void **state)
{
    (void)state;
    struct bench *b = new_bench(false);
    const int32_t offsets[] = {0, 30, 41};
    b->launch.offsets = offsets;
    b->launch.tokens = 41;
    run(b);
    const struct abi_args *a = &b->code.seen[0].args;
    assert_int_equal(a->q.batch, 0);
    assert_int_equal(a->q.row, D * HEADS);
    assert_int_equal(a->lse_head, 41);
    assert_int_equal(a->lse_batch, 0);
    assert_ptr_equal(a->offsets, offsets);
    free_bench(b);
}

static void dropout_is_a_sixteen_bit_threshold(void **state)
{
    (void)state;
    struct bench *b = new_bench(false);
    b->launch.dropout = 0.1f;
    b->launch.seed = 77;
    run(b);
    assert_int_equal(b->code.seen[0].args.keep_below, 6554); /* round(6553.6) */
    assert_true(b->code.seen[0].args.keep_scale == 65536.0f / (65536 - 6554));
    assert_int_equal(b->code.seen[0].args.seed, 77);
    free_bench(b);
}

/* ---- refused ---- */

static const int32_t negative[] = {3, -1}, too_long[] = {3, N + 1},
                     good_offsets[] = {0, 30, 41}, backwards[] = {0, 30, 20},
                     from_one[] = {1, 30, 41}, wide[] = {0, 41, 41};

/* clang-format off */
#define BREAK(name, ...) static void name(struct bench *b) { struct maskc_launch *l = &b->launch; (void)l; __VA_ARGS__; }
BREAK(bad_pass,        l->pass = (enum maskc_pass)7)
BREAK(longer,          l->length = N + 1)
BREAK(no_layer,        l->layer = 1)
BREAK(huge_batch,      l->batch = UINT32_MAX)
BREAK(nan_scale,       l->scale = NAN)
BREAK(inf_scale,       l->scale = INFINITY)
BREAK(nan_dropout,     l->dropout = NAN)
BREAK(minus_dropout,   l->dropout = -0.1f)
BREAK(full_dropout,    l->dropout = 1)
BREAK(nearly_full,     l->dropout = 0.999999f)
BREAK(no_dropout,      b->file->artifact.features.dropout = false, l->dropout = 0.1f)
BREAK(no_query,        l->query.data = NULL)
BREAK(no_out,          l->out.data = NULL)
BREAK(no_lse,          l->lse = NULL)
BREAK(odd_lse,         l->lse = (float *)(void *)(b->room + 2))
BREAK(odd_query,       l->query.data = b->room + 8)
BREAK(odd_row,         l->key.row = 66, l->key.head = 64)
BREAK(odd_head,        l->key.row = 256, l->key.head = 66)
BREAK(odd_batch,       l->key.row = 192, l->key.head = 64, l->key.batch = 3)
BREAK(huge_row,        l->key.row = INT64_MAX / 16 * 16, l->key.head = 64)
BREAK(minus_row,       l->key.row = INT64_MIN, l->key.head = 64)
BREAK(overlap_head,    l->out.row = 192, l->out.head = 16, l->out.batch = 192 * N)
BREAK(overlap_row,     l->out.head = 64)
BREAK(needless_soft,   l->soft = (float *)(void *)b->room)
BREAK(needless_dsoft,  l->grad_soft_diagonals = (float *)(void *)b->room)
BREAK(no_soft,         b->file->artifact.features.soft = ABI_SOFT_BIAS, more_workspace(b))
BREAK(odd_soft,        b->file->artifact.features.soft = ABI_SOFT_SCALE, more_workspace(b), l->soft = (float *)(void *)(b->room + 2))
BREAK(no_workspace,    l->workspace = NULL)
BREAK(odd_workspace,   l->workspace = b->room + 32)
BREAK(small_workspace, l->workspace_bytes--)
BREAK(only_tokens,     l->tokens = 10)
BREAK(both,            l->lengths = good_offsets, l->offsets = good_offsets, l->tokens = 41)
BREAK(many_tokens,     l->offsets = good_offsets, l->tokens = 2 * N + 1)
BREAK(other_tokens,    l->offsets = good_offsets, l->tokens = 40)
BREAK(falling,         l->offsets = backwards, l->tokens = 20)
BREAK(starts_late,     l->offsets = from_one, l->tokens = 41)
BREAK(wide_sequence,   l->offsets = wide, l->tokens = 41)
BREAK(minus_length,    l->lengths = negative)
BREAK(long_length,     l->lengths = too_long)
BREAK(forward_only,    b->file->artifact.features.backward = false)
BREAK(no_grad,         l->grad_value.data = NULL)
BREAK(overlap_grad,    l->grad_key.head = 64)
/* clang-format on */

/* X goes to both passes, its gradient and the room for its sums to the backward one. */
static void soft_masks_are_handed_on(void **state)
{
    (void)state;
    for (int backward = 0; backward < 2; backward++) {
        struct bench *b = new_bench(backward);
        uint64_t without = b->launch.workspace_bytes;
        float *x = (float *)(void *)b->room;
        b->file->artifact.features.soft = ABI_SOFT_BIAS;
        more_workspace(b);
        b->launch.soft = x;
        b->launch.grad_soft = x + 1;
        b->launch.grad_soft_diagonals = x + 2;
        run(b);
        const struct abi_args *a = &b->code.seen[0].args;
        uint64_t works = b->file->artifact.plan[0].forward.layer_work[0][1];
        uint64_t part = backward ? round64(works * (N + 32) * 4) : 0;
        assert_int_equal(b->launch.workspace_bytes, without + part);
        assert_ptr_equal(a->soft, x);
        assert_ptr_equal(a->d_soft, backward ? x + 1 : NULL);
        assert_ptr_equal(a->d_diagonal, backward ? x + 2 : NULL);
        if (backward)
            assert_ptr_equal(a->pack, (uint8_t *)a->soft_part + part);
        free_bench(b);
    }
}

enum { FORWARD = 1, BACKWARD = 2, BOTH = 3 };

#define NAMED(name) #name, name
static const struct {
    const char *name;
    void (*change)(struct bench *b);
    int passes;
    const char *text;
} broken[] = {
    {NAMED(bad_pass), BOTH, "pass"},
    {NAMED(longer), BOTH, "length 41 is larger than the mask's 40"},
    {NAMED(no_layer), BOTH, "layer 1 is out of range"},
    {NAMED(huge_batch), BOTH, "batch"},
    {NAMED(nan_scale), BOTH, "scale"},
    {NAMED(inf_scale), BOTH, "scale"},
    {NAMED(nan_dropout), BOTH, "dropout"},
    {NAMED(minus_dropout), BOTH, "dropout"},
    {NAMED(full_dropout), BOTH, "dropout"},
    {NAMED(nearly_full), BOTH, "drop everything"},
    {NAMED(no_dropout), BOTH, "compiled without"},
    {NAMED(no_query), BOTH, "query is null"},
    {NAMED(no_out), BOTH, "out is null"},
    {NAMED(no_lse), BOTH, "lse"},
    {NAMED(odd_lse), BOTH, "lse"},
    {NAMED(odd_query), BOTH, "query is not aligned"},
    {NAMED(odd_row), BOTH, "key has strides"},
    {NAMED(odd_head), BOTH, "key has strides"},
    {NAMED(odd_batch), BOTH, "key has strides"},
    {NAMED(huge_row), BOTH, "key has strides"},
    {NAMED(minus_row), BOTH, "key has strides"},
    {NAMED(overlap_head), FORWARD, "out has strides"},
    {NAMED(overlap_row), FORWARD, "out has strides"},
    {NAMED(needless_soft), BOTH, "compiled without one"},
    {NAMED(needless_dsoft), BOTH, "compiled without one"},
    {NAMED(no_soft), BOTH, "soft is null"},
    {NAMED(odd_soft), BOTH, "aligned to 4 bytes"},
    {NAMED(no_workspace), BOTH, "workspace is null"},
    {NAMED(odd_workspace), BOTH, "workspace"},
    {NAMED(small_workspace), BOTH, "workspace_bytes"},
    {NAMED(only_tokens), BOTH, "offsets is null"},
    {NAMED(both), BOTH, "exclude"},
    {NAMED(many_tokens), BOTH, "tokens"},
    {NAMED(other_tokens), BOTH, "tokens"},
    {NAMED(falling), BOTH, "offsets[1..2] = 30, 20"},
    {NAMED(starts_late), BOTH, "offsets"},
    {NAMED(wide_sequence), BOTH, "offsets[0..1] = 0, 41"},
    {NAMED(minus_length), BOTH, "lengths[1] = -1 is not in 0..40"},
    {NAMED(long_length), BOTH, "lengths[1] = 41"},
    {NAMED(forward_only), BACKWARD, "forward only"},
    {NAMED(no_grad), BACKWARD, "grad_value is null"},
    {NAMED(overlap_grad), BACKWARD, "grad_key has strides"},
};

static void refuse(size_t k, bool backward)
{
    struct maskc_error error = {0};
    struct bench *b = new_bench(backward);
    broken[k].change(b);
    int code = maskc_run(&b->kernel, &b->launch, &error);
    if (code != MASKC_BAD_INPUT || error.code != code)
        fail_msg("%s: code %d", broken[k].name, code);
    if (!strstr(error.text, broken[k].text) || strchr(error.text, '\n'))
        fail_msg("%s: '%s' does not say '%s'", broken[k].name, error.text, broken[k].text);
    assert_int_equal(b->code.count, 0);
    assert_int_equal(maskc_run(&b->kernel, &b->launch, NULL), MASKC_BAD_INPUT);
    free_bench(b);
}

static void wrong_arguments_are_refused_before_the_device_sees_them(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
        if (broken[k].passes & FORWARD)
            refuse(k, false);
        if (broken[k].passes & BACKWARD)
            refuse(k, true);
    }
    assert_int_equal(maskc_run(NULL, NULL, NULL), MASKC_BAD_INPUT);
}

/* What a caller may do: views with their own strides, broadcast inputs, strides of single ones. */
static void unusual_arguments_are_taken(void **state)
{
    (void)state;
    struct bench *b = new_bench(false);
    b->launch.query = (struct maskc_tensor){b->room, 3 * N * 192, 3 * 192, 64}; /* fused QKV */
    b->launch.key = (struct maskc_tensor){b->room, 0, 192, 64}; /* one for all */
    b->launch.out =
        (struct maskc_tensor){b->room, HEADS * N * 64, 64, N * 64}; /* heads first */
    b->launch.lse = (float *)(void *)(b->room + 4);
    b->launch.scale = -1;
    run(b);
    assert_int_equal(b->code.seen[0].args.q.row, 3 * 192);
    assert_int_equal(b->code.seen[0].args.k.batch, 0);
    assert_true(b->code.seen[0].args.scale == -1);
    b->launch.batch = 0; /* one sequence */
    run(b);
    assert_int_equal(b->code.seen[1].args.batch, 1);
    b->launch.length = 7;
    run(b);
    assert_int_equal(b->code.seen[2].args.n, 7);
    free_bench(b);
}

/* A size that does not fit in 64 bits does not wrap around. */
static void huge_workspaces_saturate(void **state)
{
    (void)state;
    struct bench *b = new_bench(true);
    b->launch.batch = UINT32_MAX;
    b->file->artifact.target[0].launch.state_row = UINT64_C(1) << 60;
    assert_int_equal(maskc_workspace_bytes(&b->kernel, &b->launch), UINT64_MAX);
    b->launch.batch = INT32_MAX;
    b->launch.workspace_bytes = UINT64_MAX;
    assert_int_equal(maskc_run(&b->kernel, &b->launch, NULL), MASKC_BAD_INPUT);
    free_bench(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(the_workspace_is_what_the_record_says),
        cmocka_unit_test(large_batches_go_in_slices),
        cmocka_unit_test(packed_batches_have_no_batch_stride),
        cmocka_unit_test(dropout_is_a_sixteen_bit_threshold),
        cmocka_unit_test(soft_masks_are_handed_on),
        cmocka_unit_test(wrong_arguments_are_refused_before_the_device_sees_them),
        cmocka_unit_test(unusual_arguments_are_taken),
        cmocka_unit_test(huge_workspaces_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
