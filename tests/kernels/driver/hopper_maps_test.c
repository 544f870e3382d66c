/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensor maps a pass of cuda_hopper receives, what they describe, and which steps go with them. */
#include "tests/kernels/driver/hopper_subject.h"
#include "tests/support/test.h"
#include <string.h>

/* ---- which maps a pass has ---- */

#define T(name) offsetof(struct abi_args, name)
#define M(name) offsetof(struct hopper_args, name)
enum { RUN = 0 }; /* boxes of a step */

static const struct expected {
    enum machine_pass pass;
    size_t map, tensor;
    uint32_t box_rows;
} expected[] = {
    {PASS_FORWARD, M(rows[0]), T(q), 64},
    {PASS_FORWARD, M(row[0]), T(q), 1},
    {PASS_FORWARD, M(columns[0].run), T(k), RUN},
    {PASS_FORWARD, M(columns[0].tile), T(k), 32},
    {PASS_FORWARD, M(columns[0].row), T(k), 1},
    {PASS_FORWARD, M(columns[1].run), T(v), RUN},
    {PASS_FORWARD, M(columns[1].tile), T(v), 32},
    {PASS_FORWARD, M(columns[1].row), T(v), 1},
    {PASS_FORWARD, M(out[0]), T(o), 64},
    {PASS_DQ, M(rows[0]), T(q), 64},
    {PASS_DQ, M(row[0]), T(q), 1},
    {PASS_DQ, M(rows[1]), T(d_o), 64},
    {PASS_DQ, M(row[1]), T(d_o), 1},
    {PASS_DQ, M(rows[2]), T(o), 64},
    {PASS_DQ, M(row[2]), T(o), 1},
    {PASS_DQ, M(columns[0].run), T(k), RUN},
    {PASS_DQ, M(columns[0].tile), T(k), 32},
    {PASS_DQ, M(columns[0].row), T(k), 1},
    {PASS_DQ, M(columns[1].run), T(v), RUN},
    {PASS_DQ, M(columns[1].tile), T(v), 32},
    {PASS_DQ, M(columns[1].row), T(v), 1},
    {PASS_DQ, M(out[0]), T(d_q), 64},
    {PASS_DKV, M(rows[0]), T(k), 64},
    {PASS_DKV, M(row[0]), T(k), 1},
    {PASS_DKV, M(rows[1]), T(v), 64},
    {PASS_DKV, M(row[1]), T(v), 1},
    {PASS_DKV, M(columns[0].run), T(q), RUN},
    {PASS_DKV, M(columns[0].tile), T(q), 32},
    {PASS_DKV, M(columns[0].row), T(q), 1},
    {PASS_DKV, M(columns[1].run), T(d_o), RUN},
    {PASS_DKV, M(columns[1].tile), T(d_o), 32},
    {PASS_DKV, M(columns[1].row), T(d_o), 1},
    {PASS_DKV, M(out[0]), T(d_k), 64},
    {PASS_DKV, M(out[1]), T(d_v), 64},
};

enum { EXPECTED = sizeof expected / sizeof *expected };

static void check_map(const struct subject *s, const struct hopper_args *args,
                      const struct expected *x)
{
    struct map_shape m =
        subject_shape((const struct tensor_map *)(const void *)((const char *)args + x->map));
    struct abi_tensor t;
    memcpy(&t, (const char *)&s->launch.args + x->tensor, sizeof t);
    const uint32_t rows = x->box_rows ? x->box_rows : subject_slots[x->pass] * 32;
    assert_ptr_equal(m.address, t.data);
    assert_int_equal(m.box[0], 64);
    assert_int_equal(m.box[1], 1);
    assert_int_equal(m.box[2], rows);
    assert_int_equal(m.box[3], 1);
    assert_int_equal(m.stride[0], 2);
    assert_int_equal(m.stride[1], 2 * t.head);
    assert_int_equal(m.stride[2], 2 * t.row);
    assert_int_equal(m.stride[3], 2 * t.batch);
}

static bool is_zero(const struct tensor_map *m)
{
    static const struct tensor_map zero;
    return !memcmp(m, &zero, sizeof zero);
}

/* Maps of the arguments that are there. */
static uint32_t count_maps(const struct hopper_args *args)
{
    const struct tensor_map *m = args->rows;
    const size_t maps = (offsetof(struct hopper_args, a) - M(rows)) / sizeof *m;
    uint32_t count = 0;
    for (size_t k = 0; k < maps; k++)
        count += !is_zero((const struct tensor_map *)(const void *)((const char *)args +
                                                                    M(rows) + k * sizeof *m));
    return count;
}

static void test_maps_of_each_pass(void **state)
{
    (void)state;
    struct subject s;
    subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
    for (enum machine_pass pass = PASS_FORWARD; pass < PASSES; pass++) {
        const struct hopper_args args = subject_fill(&s, pass);
        uint32_t count = 0;
        for (int k = 0; k < EXPECTED; k++)
            if (expected[k].pass == pass) {
                check_map(&s, &args, &expected[k]);
                count++;
            }
        assert_int_equal(count_maps(&args), count);
        assert_memory_equal(&args.a, &s.launch.args, sizeof args.a);
    }
    assert_int_equal(subject_encoded, EXPECTED);
    subject_finish(&s);
}

/* ---- what they describe ---- */

static void check_extents(const struct tensor_map *m, uint64_t d, uint64_t heads, uint64_t rows,
                          uint64_t batch)
{
    const struct map_shape s = subject_shape(m);
    assert_int_equal(s.extent[0], d);
    assert_int_equal(s.extent[1], heads);
    assert_int_equal(s.extent[2], rows);
    assert_int_equal(s.extent[3], batch);
}

static void test_padded(void **state)
{
    (void)state;
    struct subject s;
    subject_init(&s, (struct kernel_request){.dtype = ABI_F16, .head_dim = 40});
    s.launch.args.n = s.launch.args.queries = s.launch.args.keys = 150; /* of 200 rows */
    const struct hopper_args args = subject_fill(&s, PASS_FORWARD);
    check_extents(&args.rows[0], 40, HEADS, 150, BATCH);
    check_extents(&args.columns[1].tile, 40, HEADS, 150, BATCH);
    assert_int_equal(subject_shape(&args.rows[0]).dtype, ABI_F16);
    assert_int_equal(subject_shape(&args.rows[0]).box[0], 64);
    subject_finish(&s);
}

/* A slice has the maps of the whole batch, and places of its own sequences. */
static void test_slices_and_layers(void **state)
{
    (void)state;
    struct subject s;
    subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
    s.launch.args.first_batch = 1;
    s.launch.args.slice_batch = 2;
    const struct hopper_args first = subject_fill(&s, PASS_DKV);
    check_extents(&first.columns[0].run, DIM, HEADS, ROWS, BATCH);
    assert_ptr_equal(first.steps.work, subject_work);
    assert_int_equal(first.steps.works, 5);
    assert_int_equal(hopper_indices(&first), 10);
    s.launch.layer = 1;
    const struct hopper_args second = subject_fill(&s, PASS_DKV);
    assert_ptr_equal(second.steps.work, subject_work + 5);
    assert_int_equal(second.steps.works, 2);
    assert_int_equal(hopper_indices(&second), 4);
    subject_finish(&s);
}

/* One sequence of all tokens; the batch has no stride then. */
static void test_packed(void **state)
{
    (void)state;
    static const i32 offsets[BATCH + 1];
    struct subject s;
    subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
    s.launch.args.offsets = offsets;
    s.launch.args.lse_head = 431;
    s.launch.args.q.batch = s.launch.args.k.batch = 0;
    const struct hopper_args args = subject_fill(&s, PASS_FORWARD);
    check_extents(&args.rows[0], DIM, HEADS, 431, 1);
    check_extents(&args.columns[0].row, DIM, HEADS, 431, 1);
    assert_int_equal(subject_shape(&args.rows[0]).stride[3], 16);
    s.launch.args.lse_head = 0; /* every sequence is empty */
    const struct hopper_args empty = subject_fill(&s, PASS_FORWARD);
    check_extents(&empty.rows[0], DIM, HEADS, 1, 1);
    subject_finish(&s);
}

/* dK and dV of query heads are scratch. */
static void test_grouped(void **state)
{
    (void)state;
    struct subject s;
    subject_init(&s,
                 (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM, .kv_heads = 2});
    const struct hopper_args forward = subject_fill(&s, PASS_FORWARD),
                             dkv = subject_fill(&s, PASS_DKV);
    check_extents(&forward.rows[0], DIM, HEADS, ROWS, BATCH);
    check_extents(&forward.columns[0].run, DIM, 2, ROWS, BATCH);
    check_extents(&dkv.rows[1], DIM, 2, ROWS, BATCH);
    check_extents(&dkv.columns[0].run, DIM, HEADS, ROWS, BATCH);
    assert_true(is_zero(&dkv.out[0]) && is_zero(&dkv.out[1]));
    assert_int_equal(count_maps(&dkv), 10);
    subject_finish(&s);
}

static void test_rectangular(void **state)
{
    (void)state;
    struct subject s;
    subject_init(&s, (struct kernel_request){
                         .dtype = ABI_BF16, .head_dim = DIM, .queries = 70, .keys = ROWS});
    s.launch.args.queries = 70;
    const struct hopper_args dq = subject_fill(&s, PASS_DQ), dkv = subject_fill(&s, PASS_DKV);
    for (int k = 0; k < 3; k++)
        check_extents(&dq.rows[k], DIM, HEADS, 70, BATCH);
    check_extents(&dq.out[0], DIM, HEADS, 70, BATCH);
    for (int k = 0; k < 2; k++) {
        check_extents(&dq.columns[k].run, DIM, HEADS, ROWS, BATCH);
        check_extents(&dkv.rows[k], DIM, HEADS, ROWS, BATCH);
        check_extents(&dkv.out[k], DIM, HEADS, ROWS, BATCH);
        check_extents(&dkv.columns[k].run, DIM, HEADS, 70, BATCH);
    }
    subject_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_of_each_pass), cmocka_unit_test(test_padded),
        cmocka_unit_test(test_slices_and_layers), cmocka_unit_test(test_packed),
        cmocka_unit_test(test_grouped),           cmocka_unit_test(test_rectangular),
    };
    return cmocka_run_group_tests_name("tensor maps of cuda_hopper", tests, NULL, NULL);
}
