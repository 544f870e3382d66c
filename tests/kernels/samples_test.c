/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout by samples: sequences that change places and batches, padded or packed, keep the bits of their outputs and
   gradients, on every CPU target that runs here and emulated; and what is drawn is the reference's. */
#include "masks/base/memory.h"
#include "tests/support/subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_TARGETS = 8, N = 140, DIM = 16, HEADS = 2, BATCH = 4 };

static const uint32_t samples[BATCH] = {9, 0xffffffff, 3, 70000};
static const int32_t lengths[BATCH] = {N, N - 37, 5, N - 1};

/* Some of the sequences in another order. */
struct group {
    uint32_t batch, place[BATCH];
    bool packed;
};

static const struct group groups[] = {
    {2, {2, 0}, false}, {3, {3, 1, 0}, true}, {1, {1}, false}};

/* clang-format off */
static const struct kernel_request requests[] = {
    {.dtype = ABI_F32, .head_dim = DIM, .dropout = true, .backward = true},
    {.dtype = ABI_BF16, .head_dim = DIM, .dropout = true, .backward = true},
    {.dtype = ABI_BF16, .head_dim = DIM, .dropout = true, .backward = true,
     .transform = ABI_SPARSEGEN, .lambda = -4},
};
/* clang-format on */

static struct problem whole_problem(const struct mask *m, const struct kernel_request *r)
{
    return (struct problem){.mask = m,
                            .batch = BATCH,
                            .length = N,
                            .head_dim = DIM,
                            .lengths = lengths,
                            .dtype = r->dtype,
                            .transform = r->transform,
                            .lambda = (double)r->lambda,
                            .dropout = 0.2,
                            .seed = 77,
                            .samples = samples,
                            .random_seed = 5};
}

static void run(const struct maskc_kernel *k, const struct problem *p, struct problem_data *d)
{
    struct error e = {0};
    reference_plain(p, d, true); /* O and LSE that a backward pass reads */
    if (kernel_run_problem(k, p, d, true, 2, &e))
        fail_msg("%s", e.text);
}

static void take(const double *from, uint32_t place, double *to, uint32_t b)
{
    const uint64_t size = (uint64_t)N * HEADS * DIM;
    memcpy(to + b * size, from + place * size, size * sizeof *to);
}

static bool equal(const double *all, uint32_t place, const double *some, uint32_t b)
{
    const uint64_t size = (uint64_t)N * HEADS * DIM;
    const uint64_t used = (uint64_t)lengths[place] * HEADS * DIM;
    return !memcmp(all + place * size, some + b * size, used * sizeof *all);
}

/* Whether the group's results are those that its sequences have in the whole batch. */
static bool group_agrees(const struct maskc_kernel *k, const struct problem *whole,
                         const struct problem_data *all, const struct group *g)
{
    int32_t length[BATCH];
    uint32_t sample[BATCH];
    struct problem p = *whole;
    p.batch = g->batch;
    p.packed = g->packed;
    p.lengths = length;
    p.samples = whole->samples ? sample : NULL;
    struct problem_data *d = problem_inputs(&p);
    for (uint32_t b = 0; b < g->batch; b++) {
        length[b] = lengths[g->place[b]];
        sample[b] = samples[g->place[b]];
        take(all->q, g->place[b], d->q, b);
        take(all->k, g->place[b], d->k, b);
        take(all->v, g->place[b], d->v, b);
        take(all->d_o, g->place[b], d->d_o, b);
    }
    run(k, &p, d);
    bool same = true;
    for (uint32_t b = 0; b < g->batch; b++)
        same = same && equal(all->o, g->place[b], d->o, b) &&
               equal(all->d_q, g->place[b], d->d_q, b) &&
               equal(all->d_k, g->place[b], d->d_k, b) &&
               equal(all->d_v, g->place[b], d->d_v, b);
    problem_data_destroy(d);
    return same;
}

static void check_kernel(const struct maskc_kernel *k, const struct kernel_request *r)
{
    struct problem p = whole_problem(k->artifact->mask, r);
    assert_int_equal(subject_check(k, &p, true, "samples"), 0);
    for (int named = 1; named >= 0; named--) {
        struct problem_data *all = problem_inputs(&p);
        run(k, &p, all);
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            assert_true(group_agrees(k, &p, all, &groups[g]) == named);
        problem_data_destroy(all);
        p.samples = NULL; /* then places decide, which the groups change */
    }
}

static void test_samples(void **state)
{
    (void)state;
    static const char *const names[] = {"longformer(16,2) | columns(70)"};
    const struct target *target[MAX_TARGETS];
    struct cache *cache = subject_start();
    const uint32_t count = subject_targets(target, MAX_TARGETS);
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        struct mask *one = subject_mask(names[m], N);
        struct error e = {0};
        struct mask *mask = mask_repeat_heads(one, HEADS, &e);
        mask_destroy(one);
        for (uint32_t t = 0; t < count; t++)
            for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
                if (subject_repeats(target[t], &requests[r]))
                    continue;
                struct maskc_kernel *k = subject_load(mask, target[t], &requests[r], cache);
                check_kernel(k, &requests[r]);
                maskc_kernel_destroy(k);
            }
        mask_destroy(mask);
    }
    subject_finish(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples)};
    return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
