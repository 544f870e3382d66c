/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a launch, recorded by a mock device: defaults, strides, workspace,
   slices, biass. refused_test.c has what must not get there. */
#include "tests/runtime/paper.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t round64(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    struct paper *b = paper_new(false);
    paper_run(b);
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
    paper_free(b);
}

static void the_workspace_is_what_the_record_says(void **state)
{
    (void)state;
    for (int backward = 0; backward < 2; backward++) {
        struct paper *b = paper_new(backward);
        const struct artifact_plan *p = &b->file->artifact.plan[0];
        uint32_t cols = p->forward.max_cols;
        if (backward && p->transposed.max_cols > cols)
            cols = p->transposed.max_cols;
        const uint64_t rows = 64 + 32; /* 40, rounded up to 32, plus 32 */
        uint64_t state_bytes = backward ? round64(4 * BATCH * HEADS * rows) : 0;
        uint64_t pack_bytes = round64(512 * BATCH * HEADS * rows);
        uint64_t each = round64(1000 + 128 * (uint64_t)cols);
        assert_int_equal(b->launch.workspace_bytes, state_bytes + pack_bytes + 2 * each);
        paper_run(b);
        const struct device_launch *l = &b->code.seen[0];
        assert_int_equal(l->workers, 2);
        assert_int_equal(l->scratch_bytes, 2 * each);
        assert_int_equal(l->args.scratch_stride, each);
        assert_int_equal(l->args.pack_stride, 512 * rows);
        assert_int_equal(l->args.delta_rows, rows);
        assert_ptr_equal(l->args.pack, b->storage + state_bytes);
        assert_ptr_equal(l->args.scratch, b->storage + state_bytes + pack_bytes);
        if (backward)
            assert_ptr_equal(l->args.delta, b->storage);
        else
            assert_null(l->args.delta);
        paper_free(b);
    }
}

/* 512 bytes a row, 96 rows, 3 heads: two workers pack 7 sequences at once. */
static void large_batches_go_in_slices(void **state)
{
    (void)state;
    struct paper *b = paper_new(true);
    const uint32_t slice = 2 * (512u << 10) / (512 * 96 * 3); /* two workers */
    uint32_t next = 0;
    b->launch.batch = 100;
    b->launch.workspace_bytes = maskc_workspace_bytes(&b->kernel, &b->launch);
    paper_run(b);
    assert_int_equal(b->code.count, (100 + slice - 1) / slice);
    for (uint32_t k = 0; k < b->code.count; k++) {
        const struct abi_args *a = &b->code.seen[k].args;
        assert_int_equal(a->first_batch, next);
        assert_int_equal(a->batch, 100);
        assert_in_range(a->slice_batch, 1, slice);
        next += a->slice_batch;
    }
    assert_int_equal(next, 100);
    paper_free(b);
}

static void packed_batches_have_no_batch_stride(void **state)
{
    (void)state;
    struct paper *b = paper_new(false);
    const int32_t offsets[] = {0, 30, 41};
    b->launch.offsets = offsets;
    b->launch.tokens = 41;
    paper_run(b);
    const struct abi_args *a = &b->code.seen[0].args;
    assert_int_equal(a->q.batch, 0);
    assert_int_equal(a->q.row, D * HEADS);
    assert_int_equal(a->lse_head, 41);
    assert_int_equal(a->lse_batch, 0);
    assert_ptr_equal(a->offsets, offsets);
    paper_free(b);
}

static void dropout_is_a_sixteen_bit_threshold(void **state)
{
    (void)state;
    struct paper *b = paper_new(false);
    b->launch.dropout = 0.1f;
    b->launch.seed = 77;
    paper_run(b);
    assert_int_equal(b->code.seen[0].args.keep_below, 6554); /* round(6553.6) */
    assert_true(b->code.seen[0].args.keep_scale == 65536.0f / (65536 - 6554));
    assert_int_equal(b->code.seen[0].args.seed, 77);
    paper_free(b);
}

/* X goes to both passes, its gradient and the array for its sums to the backward one. */
static void bias_masks_are_handed_on(void **state)
{
    (void)state;
    for (int backward = 0; backward < 2; backward++) {
        struct paper *b = paper_new(backward);
        uint64_t without = b->launch.workspace_bytes;
        float *x = (float *)(void *)b->storage;
        b->file->artifact.request.bias = ABI_BIAS_ADD;
        paper_more_workspace(b);
        b->launch.soft = x;
        b->launch.grad_soft = x + 1;
        b->launch.grad_soft_diagonals = x + 2;
        paper_run(b);
        const struct abi_args *a = &b->code.seen[0].args;
        uint64_t works = b->file->artifact.plan[0].forward.layer_work[0][1];
        uint64_t part = backward ? round64(works * (N + 32) * 4) : 0;
        assert_int_equal(b->launch.workspace_bytes, without + part);
        assert_ptr_equal(a->bias, x);
        assert_ptr_equal(a->d_bias, backward ? x + 1 : NULL);
        assert_ptr_equal(a->d_diagonal, backward ? x + 2 : NULL);
        if (backward)
            assert_ptr_equal(a->pack, (uint8_t *)a->bias_part + part);
        paper_free(b);
    }
}

/* Valid unusual arguments: views with their own strides, broadcast inputs, strides of dimensions of size 1. */
static void unusual_arguments_are_taken(void **state)
{
    (void)state;
    struct paper *b = paper_new(false);
    b->launch.query =
        (struct maskc_tensor){b->storage, 3 * N * 192, 3 * 192, 64}; /* fused QKV */
    b->launch.key = (struct maskc_tensor){b->storage, 0, 192, 64};   /* one for all */
    b->launch.out =
        (struct maskc_tensor){b->storage, HEADS * N * 64, 64, N * 64}; /* heads first */
    b->launch.lse = (float *)(void *)(b->storage + 4);
    b->launch.scale = -1;
    paper_run(b);
    assert_int_equal(b->code.seen[0].args.q.row, 3 * 192);
    assert_int_equal(b->code.seen[0].args.k.batch, 0);
    assert_true(b->code.seen[0].args.scale == -1);
    b->launch.batch = 0; /* one sequence */
    paper_run(b);
    assert_int_equal(b->code.seen[1].args.batch, 1);
    b->launch.length = 7;
    paper_run(b);
    assert_int_equal(b->code.seen[2].args.n, 7);
    paper_free(b);
}

/* With MASKC_SCALE_GIVEN 0 is a scale; kernels of 16-bit tensors get the smallest that they compute with. */
static void a_scale_of_zero_is_given_or_the_default(void **state)
{
    (void)state;
    struct paper *b = paper_new(false);
    b->launch.flags = MASKC_SCALE_GIVEN;
    for (int k = 0; k < 2; k++) {
        b->file->artifact.request.dtype = k ? ABI_BF16 : ABI_F32;
        paper_run(b);
    }
    assert_true(b->code.seen[0].args.scale == 0);
    assert_true(b->code.seen[1].args.scale > 0 && b->code.seen[1].args.scale <= 0x1p-100f);
    b->launch.flags = 0;
    paper_run(b);
    assert_true(b->code.seen[2].args.scale == 0.125f);
    paper_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(a_scale_of_zero_is_given_or_the_default),
        cmocka_unit_test(the_workspace_is_what_the_record_says),
        cmocka_unit_test(large_batches_go_in_slices),
        cmocka_unit_test(packed_batches_have_no_batch_stride),
        cmocka_unit_test(dropout_is_a_sixteen_bit_threshold),
        cmocka_unit_test(bias_masks_are_handed_on),
        cmocka_unit_test(unusual_arguments_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
