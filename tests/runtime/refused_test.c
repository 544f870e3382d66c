/* SPDX-License-Identifier: Apache-2.0 */
/* Every argument of a launch that must be refused, before the device sees any of it. */
#include "tests/runtime/paper.h"
#include <math.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int32_t negative[] = {3, -1}, too_long[] = {3, N + 1},
                     good_offsets[] = {0, 30, 41}, backwards[] = {0, 30, 20},
                     from_one[] = {1, 30, 41}, wide[] = {0, 41, 41};

/* clang-format off */
#define BREAK(name, ...) static void name(struct paper *b) { struct maskc_launch *l = &b->launch; (void)l; __VA_ARGS__; }
BREAK(bad_pass,        l->pass = (enum maskc_pass)7)
BREAK(longer,          l->length = N + 1)
BREAK(no_layer,        l->layer = 1)
BREAK(huge_batch,      l->batch = UINT32_MAX)
BREAK(nan_scale,       l->scale = NAN)
BREAK(inf_scale,       l->scale = INFINITY)
BREAK(unknown_flag,    l->flags = MASKC_SCALE_GIVEN << 1)
BREAK(nan_dropout,     l->dropout = NAN)
BREAK(minus_dropout,   l->dropout = -0.1f)
BREAK(full_dropout,    l->dropout = 1)
BREAK(nearly_full,     l->dropout = 0.999999f)
BREAK(no_dropout,      b->file->artifact.request.dropout = false, l->dropout = 0.1f)
BREAK(no_query,        l->query.data = NULL)
BREAK(no_out,          l->out.data = NULL)
BREAK(no_lse,          l->lse = NULL)
BREAK(odd_lse,         l->lse = (float *)(void *)(b->storage + 2))
BREAK(odd_query,       l->query.data = b->storage + 8)
BREAK(odd_row,         l->key.row = 66, l->key.head = 64)
BREAK(odd_head,        l->key.row = 256, l->key.head = 66)
BREAK(odd_batch,       l->key.row = 192, l->key.head = 64, l->key.batch = 3)
BREAK(huge_row,        l->key.row = INT64_MAX / 16 * 16, l->key.head = 64)
BREAK(minus_row,       l->key.row = INT64_MIN, l->key.head = 64)
BREAK(overlap_head,    l->out.row = 192, l->out.head = 16, l->out.batch = 192 * N)
BREAK(overlap_row,     l->out.head = 64)
BREAK(needless_bias,   l->soft = (float *)(void *)b->storage)
BREAK(needless_dsoft,  l->grad_soft_diagonals = (float *)(void *)b->storage)
BREAK(no_bias,         b->file->artifact.request.bias = ABI_BIAS_ADD, paper_more_workspace(b))
BREAK(odd_bias,        b->file->artifact.request.bias = ABI_BIAS_SCALE, paper_more_workspace(b), l->soft = (float *)(void *)(b->storage + 2))
BREAK(no_workspace,    l->workspace = NULL)
BREAK(odd_workspace,   l->workspace = b->storage + 32)
BREAK(small_workspace, l->workspace_bytes--)
BREAK(only_tokens,     l->tokens = 10)
BREAK(both,            l->lengths = good_offsets, l->offsets = good_offsets, l->tokens = 41)
BREAK(many_tokens,     l->offsets = good_offsets, l->tokens = 2 * N + 1)
BREAK(other_tokens,    l->offsets = good_offsets, l->tokens = 40)
BREAK(falling,         l->offsets = backwards, l->tokens = 20)
BREAK(starts_beyond,     l->offsets = from_one, l->tokens = 41)
BREAK(wide_sequence,   l->offsets = wide, l->tokens = 41)
BREAK(minus_length,    l->lengths = negative)
BREAK(long_length,     l->lengths = too_long)
BREAK(forward_only,    b->file->artifact.request.backward = false)
BREAK(no_grad,         l->grad_value.data = NULL)
BREAK(overlap_grad,    l->grad_key.head = 64)
/* clang-format on */

enum { FORWARD = 1, BACKWARD = 2, BOTH = 3 };

#define NAMED(name) #name, name
static const struct {
    const char *name;
    void (*change)(struct paper *b);
    int passes;
    const char *text;
} broken[] = {
    {NAMED(bad_pass), BOTH, "pass"},
    {NAMED(longer), BOTH, "length 41 is larger than the mask's 40"},
    {NAMED(no_layer), BOTH, "layer 1 is out of range"},
    {NAMED(huge_batch), BOTH, "batch"},
    {NAMED(nan_scale), BOTH, "scale"},
    {NAMED(inf_scale), BOTH, "scale"},
    {NAMED(unknown_flag), BOTH, "flags"},
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
    {NAMED(needless_bias), BOTH, "compiled without one"},
    {NAMED(needless_dsoft), BOTH, "compiled without one"},
    {NAMED(no_bias), BOTH, "soft is null"},
    {NAMED(odd_bias), BOTH, "aligned to 4 bytes"},
    {NAMED(no_workspace), BOTH, "workspace is null"},
    {NAMED(odd_workspace), BOTH, "workspace"},
    {NAMED(small_workspace), BOTH, "workspace_bytes"},
    {NAMED(only_tokens), BOTH, "offsets is null"},
    {NAMED(both), BOTH, "exclude"},
    {NAMED(many_tokens), BOTH, "tokens"},
    {NAMED(other_tokens), BOTH, "tokens"},
    {NAMED(falling), BOTH, "offsets[1..2] = 30, 20"},
    {NAMED(starts_beyond), BOTH, "offsets"},
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
    struct paper *b = paper_new(backward);
    broken[k].change(b);
    int code = maskc_run(&b->kernel, &b->launch, &error);
    if (code != MASKC_BAD_INPUT || error.code != code)
        fail_msg("%s: code %d", broken[k].name, code);
    if (!strstr(error.text, broken[k].text) || strchr(error.text, '\n'))
        fail_msg("%s: '%s' does not say '%s'", broken[k].name, error.text, broken[k].text);
    assert_int_equal(b->code.count, 0);
    assert_int_equal(maskc_run(&b->kernel, &b->launch, NULL), MASKC_BAD_INPUT);
    paper_free(b);
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

/* A size that does not fit in 64 bits does not wrap around. */
static void huge_workspaces_saturate(void **state)
{
    (void)state;
    struct paper *b = paper_new(true);
    b->launch.batch = UINT32_MAX;
    b->file->artifact.target[0].launch.delta_row = UINT64_C(1) << 60;
    assert_int_equal(maskc_workspace_bytes(&b->kernel, &b->launch), UINT64_MAX);
    b->launch.batch = INT32_MAX;
    b->launch.workspace_bytes = UINT64_MAX;
    assert_int_equal(maskc_run(&b->kernel, &b->launch, NULL), MASKC_BAD_INPUT);
    paper_free(b);
}

/* The number of the largest of three counts, of which a kernel has one for each sequence. */
static uint64_t count_most(struct artifact *a, uint32_t which, uint64_t count)
{
    a->plan[0].forward.layer_work[0][1] = which == 0 ? count : 1;
    a->plan[0].transposed.layer_work[0][1] = which == 1 ? count : 1;
    return which == 2 ? a->mask->heads : count;
}

/* Kernels count items (of either plan) and heads of all sequences in 32 bits: the largest batch that
   does not pass INT32_MAX is taken, one more is refused, however large a workspace is offered. */
static void more_items_than_kernels_count_are_refused(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < 3; which++) {
        struct maskc_error error = {0};
        struct paper *b = paper_new(true);
        const uint64_t most = count_most(&b->file->artifact, which, 1000);
        b->launch.batch = (uint32_t)(INT32_MAX / most);
        assert_true(maskc_workspace_bytes(&b->kernel, &b->launch) < UINT64_MAX);
        b->launch.batch++;
        assert_true(maskc_workspace_bytes(&b->kernel, &b->launch) == UINT64_MAX);
        b->launch.workspace_bytes = UINT64_MAX;
        assert_int_equal(maskc_run(&b->kernel, &b->launch, &error), MASKC_BAD_INPUT);
        if (!strstr(error.text, "the batch is too large"))
            fail_msg("'%s'", error.text);
        assert_int_equal(b->code.count, 0);
        paper_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_arguments_are_refused_before_the_device_sees_them),
        cmocka_unit_test(more_items_than_kernels_count_are_refused),
        cmocka_unit_test(huge_workspaces_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
