/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that meet by TCP and sum arrays by NCCL, as processes, with a mock of NCCL (fake_nccl.c). Are sums of two and four
   ranks those of the binary tree, bit for bit, and sums of three alike on all? Do arrays move? When a call fails on a rank:
   do all end in time, with one line that names it, and is nothing kept? */
#include "masks/base/memory.h"
#include "model/comm/nccl/nccl.h"
#include "tests/support/test.h"
#include "tests/train/ranks/nccl_processes.h"
#include "tests/train/ranks/nccl_work.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void must_be_fine(const struct subject *s)
{
    processes_run(s);
    for (uint32_t k = 0; k < s->ranks; k++) {
        if (processes_outcome[k].result < 0)
            fail_msg("rank %u of %u: %s", k, s->ranks, processes_outcome[k].error.text);
        assert_int_equal(processes_outcome[k].kept, 0);
    }
}

/* ---- sums ---- */

static void sums_are_those_of_the_tree(void **unused)
{
    (void)unused;
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++)
        must_be_fine(&(struct subject){.ranks = ranks, .run = sum_arrays, .seconds = 20});
}

static void numbers_are_summed_in_the_tree(void **unused)
{
    (void)unused;
    must_be_fine(&(struct subject){.ranks = 4, .run = sum_numbers, .seconds = 20});
}

static void arrays_move(void **unused)
{
    (void)unused;
    must_be_fine(&(struct subject){.ranks = 2, .run = move_arrays, .seconds = 20});
    must_be_fine(&(struct subject){.ranks = 4, .run = move_arrays, .seconds = 20});
}

/* ---- failures ---- */

/* All ranks return the same line, which names the odd one. */
static void must_have_failed(const struct subject *s, const char *says)
{
    char name[32];
    snprintf(name, sizeof name, "rank %u: NCCL: ", s->odd);
    for (uint32_t k = 0; k < s->ranks; k++) {
        const struct error *e = &processes_outcome[k].error;
        if (processes_outcome[k].result == 0 || strncmp(e->text, name, strlen(name)) != 0 ||
            !strstr(e->text, says) || strchr(e->text, '\n') || e->kind != ERROR_FALSE)
            fail_msg("rank %u, call %d, %s: %d '%s'", k, s->fail_at, says,
                     processes_outcome[k].result, e->text);
        if (processes_outcome[k].kept)
            fail_msg("rank %u keeps something after '%s'", k, e->text);
    }
}

/* Sums of three ranks are NCCL's own, those of two are made of messages: so every call is reached. The first call of a name
   fails, which is of the sum that connects the ranks, and one of the second of two sums that go on at the same time. */
static void a_failure_of_each_call_ends_all_ranks(void **unused)
{
    static const struct {
        const char *call;
        uint32_t ranks;
        int fail_at;
    } cases[] = {
        {"ncclCommInitRankConfig", 2, 1},
        {"ncclCommGetAsyncError", 2, 1},
        {"ncclCommGetAsyncError", 2, 6},
        {"ncclGroupStart", 2, 1},
        {"ncclGroupStart", 2, 6},
        {"ncclSend", 2, 1},
        {"ncclSend", 2, 3},
        {"ncclRecv", 2, 3},
        {"ncclGroupEnd", 2, 6},
        {"ncclBroadcast", 2, 5},
        {"ncclAllReduce", 3, 1},
        {"ncclAllReduce", 3, 3},
    };
    (void)unused;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct subject s = {.ranks = cases[k].ranks,
                                  .run = cases[k].ranks == 3 ? sum_arrays : sum_and_move,
                                  .seconds = 20,
                                  .odd = 1,
                                  .fail_at = cases[k].fail_at,
                                  .only = cases[k].call};
        assert_true(processes_run(&s) < 10);
        assert_string_equal(processes_outcome[1].failed, cases[k].call);
        must_have_failed(&s, cases[k].call);
    }
}

/* A rank whose own work fails begins only the first of two sums. The others wait for the second one. All know afterwards that
   sums have ended. */
static int sum_and_fail(const struct comm *c, struct error *e)
{
    struct error later = {0};
    float x[2] = {1, 1};
    int r = 0;
    c->begin_sum(c, x, 1);
    if (c->rank == 1)
        r = error_set(e, ERROR_INPUT, "of rank 1 alone");
    else
        c->begin_sum(c, x + 1, 1);
    r = c->end_sums(c, r, e);
    return c->end_sums(c, 0, &later) < 0 ? r : error_set(e, ERROR_FALSE, "no failure");
}

static void work_that_fails_between_sums_ends_all_ranks(void **unused)
{
    (void)unused;
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++) {
        const struct subject s = {.ranks = ranks, .run = sum_and_fail, .seconds = 20};
        assert_true(processes_run(&s) < 10);
        for (uint32_t k = 0; k < ranks; k++) {
            const struct outcome_of_rank *o = &processes_outcome[k];
            assert_int_equal(o->result, -1);
            assert_string_equal(o->error.text, "rank 1: of rank 1 alone");
            assert_int_equal(o->error.kind, ERROR_FALSE);
            assert_int_equal(o->kept, 0);
        }
    }
}

/* Nor does a rank wait for its device then. */
static int fail_beside_busy_devices(const struct comm *c, struct error *e)
{
    const int r = c->rank == 1 ? error_set(e, ERROR_FALSE, "of rank 1 alone") : 0;
    processes_busy = true;
    return c->end_sums(c, r, e);
}

static void no_rank_waits_for_sums_that_another_does_not_begin(void **unused)
{
    const struct subject s = {.ranks = 2, .run = fail_beside_busy_devices, .seconds = 20};
    (void)unused;
    assert_true(processes_run(&s) < 10);
    for (uint32_t k = 0; k < s.ranks; k++)
        assert_string_equal(processes_outcome[k].error.text, "rank 1: of rank 1 alone");
}

static void rank_0_fails_alone(void **unused)
{
    struct subject s = {.ranks = 2, .run = sum_and_move, .seconds = 20, .fail_at = 1};
    (void)unused;
    processes_run(&s);
    for (uint32_t k = 0; k < s.ranks; k++) {
        assert_int_equal(processes_outcome[k].result, -1);
        assert_string_equal(processes_outcome[k].error.text,
                            "rank 0: NCCL: ncclGetUniqueId: unhandled system error");
        assert_int_equal(processes_outcome[k].kept, 0);
    }
    s.run = sum_arrays;
    s.ranks = 3;
    s.fail_at = 12; /* in the second half of the first sums: whichever call it is */
    processes_run(&s);
    assert_int_equal(processes_outcome[0].result, -1);
    must_have_failed(&s, "nccl");
}

static void an_error_of_the_others_is_reported(void **unused)
{
    const struct subject s = {.ranks = 2,
                              .run = sum_and_move,
                              .seconds = 20,
                              .odd = 1,
                              .fail_at = 2,
                              .state_fails = true};
    (void)unused;
    processes_run(&s);
    must_have_failed(&s, "remote process exited");
}

/* No rank has an error: all wait, and all end. */
static void what_hangs_ends(void **unused)
{
    const struct subject s = {
        .ranks = 2, .run = sum_and_move, .seconds = 1, .odd = 1, .hangs = true};
    (void)unused;
    const double seconds = processes_run(&s);
    for (uint32_t k = 0; k < s.ranks; k++) {
        assert_int_equal(processes_outcome[k].result, -1);
        assert_non_null(strstr(processes_outcome[k].error.text, "did not end within 1 s"));
        assert_int_equal(processes_outcome[k].kept, 0);
    }
    assert_true(seconds > 1 && seconds < 10);
}

/* Rank 1 is late by more than `seconds` when ranks begin, in their first sums (of 400 bytes at a time), or in later ones of many
   bytes; and then without time for them. */
static void only_later_operations_must_be_quick(void **unused)
{
    static const struct {
        int delayed_at;
        double slowest;
        bool fails;
    } cases[] = {{1, 0, false}, {4, 0, false}, {7, 400, false}, {7, 0, true}};
    (void)unused;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct subject s = {.ranks = 2,
                                  .run = sum_twice,
                                  .begin = 20,
                                  .seconds = 0.1,
                                  .slowest = cases[k].slowest,
                                  .odd = 1,
                                  .delayed_at = cases[k].delayed_at};
        assert_true(processes_run(&s) < 10);
        for (uint32_t r = 0; r < s.ranks; r++)
            if ((processes_outcome[r].result < 0) != cases[k].fails)
                fail_msg("case %zu: %s", k, processes_outcome[r].error.text);
    }
}

/* Rank 1 ends without the others, or is in another sum of as many bytes; the others ask twice. */
static int part_at(const struct comm *c, bool leaves, struct error *e)
{
    uint64_t x[3] = {1, 1, 1};
    struct error again = {0};
    if (c->rank == 1 && leaves)
        return error_set(e, ERROR_FALSE, "of rank 1 alone");
    int r = c->rank == 1 ? c->sum_f64(c, (double *)(void *)x, 3, e) : c->sum_u64(c, x, 3, e);
    if (r == 0 || c->sum_u64(c, x, 1, &again) == 0 || strcmp(e->text, again.text) != 0)
        error_set(e, ERROR_FALSE, "no error, or another one: %s", again.text);
    return r;
}

static int leave_alone(const struct comm *c, struct error *e)
{
    return part_at(c, true, e);
}

static int sum_otherwise(const struct comm *c, struct error *e)
{
    return part_at(c, false, e);
}

static void a_rank_that_leaves_ends_all(void **unused)
{
    const struct subject leaves = {.ranks = 3, .run = leave_alone, .seconds = 20},
                         differs = {.ranks = 3, .run = sum_otherwise, .seconds = 20};
    (void)unused;
    assert_true(processes_run(&leaves) < 20);
    assert_string_equal(processes_outcome[0].error.text, "rank 1 has left");
    assert_string_equal(processes_outcome[1].error.text, "of rank 1 alone");
    assert_string_equal(processes_outcome[2].error.text, "rank 0 has left");
    assert_true(processes_run(&differs) < 20);
    assert_string_equal(processes_outcome[0].error.text, "rank 1 has left");
    assert_string_equal(processes_outcome[1].error.text, "rank 0 has left");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_tree),
        cmocka_unit_test(numbers_are_summed_in_the_tree),
        cmocka_unit_test(arrays_move),
        cmocka_unit_test(a_failure_of_each_call_ends_all_ranks),
        cmocka_unit_test(work_that_fails_between_sums_ends_all_ranks),
        cmocka_unit_test(no_rank_waits_for_sums_that_another_does_not_begin),
        cmocka_unit_test(rank_0_fails_alone),
        cmocka_unit_test(an_error_of_the_others_is_reported),
        cmocka_unit_test(what_hangs_ends),
        cmocka_unit_test(only_later_operations_must_be_quick),
        cmocka_unit_test(a_rank_that_leaves_ends_all),
    };
    if (argc != 2 || processes_begin(argv[1]) < 0)
        return 1;
    const int failed = cmocka_run_group_tests_name("ranks by NCCL", tests, NULL, NULL);
    processes_end();
    return failed;
}
