/* SPDX-License-Identifier: Apache-2.0 */
/* When tensor maps of cuda_hopper are encoded again, and what is refused. */
#include "tests/kernels/driver/hopper_subject.h"
#include "tests/support/test.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { KEPT = 128 }; /* launches, as hopper_args.c keeps them */

/* ---- when they are encoded ---- */

static uint32_t encoded_by(struct subject *s, enum machine_pass pass)
{
    const uint32_t before = subject_encoded;
    subject_fill(s, pass);
    return subject_encoded - before;
}

static void test_kept(void **state)
{
    (void)state;
    struct subject s;
    subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
    struct abi_args *a = &s.launch.args;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 9);
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 0);
    assert_int_equal(encoded_by(&s, PASS_DQ), 13);
    a->seed = 7; /* nothing of a map */
    a->lse = (float *)0x77700;
    a->d_q.data = (void *)0x99990; /* no operand of the forward pass */
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 0);
    assert_int_equal(encoded_by(&s, PASS_DQ), 13);
    const struct abi_args same = *a;
    a->k.data = (void *)0x88880;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 9);
    *a = same;
    a->v.row += 8;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 9);
    *a = same;
    a->batch = 2;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 9);
    *a = same;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 0);
    subject_finish(&s);
}

/* As many as fit; then the oldest goes. */
static void test_oldest_goes(void **state)
{
    (void)state;
    struct subject s;
    subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
    for (uintptr_t k = 0; k <= KEPT; k++) {
        s.launch.args.q.data = (void *)(0x1000000 + 64 * k);
        assert_int_equal(encoded_by(&s, PASS_FORWARD), 9);
    }
    s.launch.args.q.data = (void *)(0x1000000 + 64);
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 0);
    s.launch.args.q.data = (void *)0x1000000;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 9);
    subject_finish(&s);
}

/* Launches of several threads, with more tensors than are kept. */
static void *launch_often(void *subject)
{
    struct subject own = *(const struct subject *)subject;
    for (uintptr_t k = 0; k < 1000; k++) {
        own.launch.args.q.data = (void *)(0x1000000 + 64 * (k * 7 % (2 * KEPT)));
        const struct hopper_args args = subject_fill(&own, PASS_FORWARD);
        assert_ptr_equal(subject_shape(&args.rows[0]).address, own.launch.args.q.data);
        assert_ptr_equal(subject_shape(&args.row[0]).address, own.launch.args.q.data);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct subject s;
    pthread_t thread[4];
    subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
    for (int k = 0; k < 4; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, launch_often, &s), 0);
    for (int k = 0; k < 4; k++)
        pthread_join(thread[k], NULL);
    subject_finish(&s);
}

/* ---- what is refused ---- */

static void test_refused_strides(void **state)
{
    (void)state;
    static const struct {
        i64 batch, row, head;
        const char *between; /* null: taken */
    } cases[] = {
        {HEADS * ROWS * DIM, -DIM, ROWS * DIM, "-128 bytes between rows"},
        {INT64_C(1) << 40, DIM, ROWS * DIM, "2199023255552 bytes between sequences"},
        {INT64_C(1) << 39, DIM, ROWS * DIM, "1099511627776 bytes between sequences"},
        {(INT64_C(1) << 39) - 8, DIM, ROWS * DIM, NULL},
        {HEADS * ROWS * DIM, DIM, 4, "8 bytes between heads"},
        {HEADS * ROWS * DIM, DIM, 0, NULL}, /* all heads have one K */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct subject s;
        struct error e = {0};
        struct hopper_args args;
        char text[320];
        subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
        s.launch.args.k = (struct abi_tensor){s.launch.args.k.data, cases[k].batch,
                                              cases[k].row, cases[k].head};
        int r = hopper_fill(s.maps, &subject_phases[0], &s.launch, s.steps, &args, &e);
        assert_int_equal(r, cases[k].between ? -1 : 0);
        if (r < 0) {
            snprintf(text, sizeof text,
                     "launch: key has a stride of %s, which the tensor maps of this kernel "
                     "cannot hold: expected a multiple of 16 in 0..2^40 - 16; change the "
                     "layout, or compile with --family cuda_tiled",
                     cases[k].between);
            assert_int_equal(e.kind, ERROR_INPUT);
            assert_string_equal(e.text, text);
        }
        subject_finish(&s);
    }
}

/* A dimension of one element may have any stride. */
static void test_strides_of_one(void **state)
{
    (void)state;
    struct subject s;
    subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
    s.launch.args.batch = s.launch.args.slice_batch = 1;
    s.launch.args.q.batch = -3;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 9);
    s.launch.args.q.batch = 17;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 0);
    subject_finish(&s);
}

/* Maps that could not be encoded are not kept. */
static void test_refused_by_the_driver(void **state)
{
    (void)state;
    struct subject s;
    struct error e = {0};
    struct hopper_args args;
    subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
    subject_refused = s.launch.args.v.data;
    for (int time = 0; time < 2; time++)
        assert_int_equal(hopper_fill(s.maps, &subject_phases[0], &s.launch, s.steps, &args, &e),
                         -1);
    assert_string_equal(e.text, "launch: tensor map of value: no such map");
    subject_refused = NULL;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 9);
    subject_finish(&s);
}

/* The oldest maps are gone where those in their place could not be encoded. */
static void test_refused_in_place_of_others(void **state)
{
    (void)state;
    struct subject s;
    struct error e = {0};
    struct hopper_args args;
    subject_init(&s, (struct kernel_request){.dtype = ABI_BF16, .head_dim = DIM});
    for (uintptr_t k = 0; k < KEPT; k++) {
        s.launch.args.q.data = (void *)(0x1000000 + 64 * k);
        subject_fill(&s, PASS_FORWARD);
    }
    s.launch.args.q.data = (void *)0x2000000;
    subject_refused = s.launch.args.v.data;
    assert_int_equal(hopper_fill(s.maps, &subject_phases[0], &s.launch, s.steps, &args, &e),
                     -1);
    subject_refused = NULL;
    s.launch.args.q.data = (void *)0x1000000;
    assert_int_equal(encoded_by(&s, PASS_FORWARD), 9);
    subject_finish(&s);
}

static void test_needed(void **state)
{
    (void)state;
    struct launch_record l = {.n_forward = 1, .n_backward = 2};
    assert_false(hopper_needed(&l));
    l.backward[1].arguments = PHASE_HOPPER_DKV;
    assert_true(hopper_needed(&l));
    l.backward[1].arguments = PHASE_ARGS;
    l.forward[0].arguments = PHASE_HOPPER_FORWARD;
    assert_true(hopper_needed(&l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_oldest_goes),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refused_strides),
        cmocka_unit_test(test_strides_of_one),
        cmocka_unit_test(test_refused_by_the_driver),
        cmocka_unit_test(test_refused_in_place_of_others),
        cmocka_unit_test(test_needed),
    };
    return cmocka_run_group_tests_name("kept tensor maps of cuda_hopper", tests, NULL, NULL);
}
