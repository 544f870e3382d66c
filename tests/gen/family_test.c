/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernel families: which is taken for what, and that a row is whole. */
#include "gen/emit/emit.h"
#include "gen/family/family.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *target;
    struct kernel_request request;
    const char *forward, *backward;
} row[] = {
    {"x86-64-v3", {.head_dim = 64}, "cpu_vector", "cpu_vector"},
    {"x86-64-v4", {.dtype = ABI_BF16, .head_dim = 64}, "cpu_vector", "cpu_vector"},
    {"x86-64-amx", {.dtype = ABI_BF16, .head_dim = 64}, "cpu_matrix", "cpu_matrix"},
    {"x86-64-bf16", {.dtype = ABI_BF16, .head_dim = 64}, "cpu_matrix", "cpu_matrix"},
    {"x86-64-amx", {.dtype = ABI_F16, .head_dim = 64}, "cpu_vector", "cpu_vector"},
    {"x86-64-amx",
     {.dtype = ABI_BF16, .transform = ABI_SPARSEGEN, .head_dim = 64},
     "cpu_matrix",
     "cpu_matrix"},
    {"x86-64-bf16",
     {.dtype = ABI_BF16, .transform = ABI_SPARSEGEN, .bias = ABI_BIAS_SCALE, .head_dim = 64},
     "cpu_matrix",
     "cpu_matrix"},
    {"x86-64-v4",
     {.dtype = ABI_BF16, .transform = ABI_SPARSEGEN, .head_dim = 64},
     "cpu_vector",
     "cpu_vector"},
    {"sm_80", {.head_dim = 64, .length = 128}, "cuda_simt", "cuda_simt"},
    {"sm_80", {.dtype = ABI_TF32, .head_dim = 64}, "cuda_simt", "cuda_simt"},
    {"sm_80",
     {.dtype = ABI_BF16, .head_dim = 64, .length = 128},
     "cuda_resident",
     "cuda_resident"},
    {"sm_80",
     {.dtype = ABI_BF16, .head_dim = 64, .length = 384},
     "cuda_resident",
     "cuda_tiled"},
    {"sm_80", {.dtype = ABI_F16, .head_dim = 64, .length = 2048}, "cuda_tiled", "cuda_tiled"},
    {"sm_80", {.dtype = ABI_F16, .head_dim = 64}, "cuda_tiled", "cuda_tiled"},
    {"sm_90a",
     {.dtype = ABI_BF16, .head_dim = 64, .length = 128, .bias = ABI_BIAS_ADD},
     "cuda_tiled",
     "cuda_tiled"},
};
enum { ROWS = sizeof row / sizeof *row };

static struct kernel_request request_of(uint32_t k)
{
    struct kernel_request r = row[k].request;
    r.backward = true;
    return r;
}

static void test_first_that_applies(void **state)
{
    (void)state;
    struct error e;
    for (uint32_t k = 0; k < ROWS; k++) {
        const struct target *t = target_find(row[k].target, &e);
        const struct kernel_config c = {.request = request_of(k)};
        assert_string_equal(family_of(t, &c, FAMILY_FORWARD)->name, row[k].forward);
        assert_string_equal(family_of(t, &c, FAMILY_BACKWARD)->name, row[k].backward);
    }
}

/* A plan serves both passes: it may have what both families can do. */
/* All of `can` and nothing of `cannot`. */
static const struct ability {
    const char *target;
    uint32_t can, cannot;
    struct kernel_request request;
} abilities[] = {
    {"sm_80", CAN_TALL | CAN_SPLIT, 0, {.dtype = ABI_BF16, .head_dim = 128, .length = 2048}},
    {"sm_80", 0, CAN_SPLIT, {.dtype = ABI_BF16, .head_dim = 256, .length = 2048}},
    {"sm_80",
     0,
     CAN_CUT_ROWS,
     {.dtype = ABI_BF16, .head_dim = 256, .length = 2048, .transform = ABI_SPARSEGEN}},
    {"sm_80",
     MERGES_LAST,
     CAN_PIECES,
     {.dtype = ABI_BF16, .head_dim = 64, .length = 384, .backward = true}},
    {"x86-64-amx",
     SKIPS_HALVES | CAN_SPLIT | CAN_JOIN_ROWS | JOINS_KEYS_ALONE,
     CAN_WHOLE_CLASSES,
     {.dtype = ABI_BF16, .head_dim = 64, .bias = ABI_BIAS_ADD}},
    {"x86-64-amx", /* all of a row at once */
     CAN_WHOLE_CLASSES | CAN_JOIN_ROWS,
     CAN_SPLIT | JOINS_KEYS_ALONE,
     {.dtype = ABI_BF16, .head_dim = 64, .transform = ABI_SPARSEGEN}},
    {"x86-64-amx",
     JOINS_KEYS_ALONE,
     CAN_SPLIT | CAN_WHOLE_CLASSES,
     {.dtype = ABI_BF16, .head_dim = 64, .transform = ABI_SPARSEGEN, .bias = ABI_BIAS_ADD}},
};

static void test_can(void **state)
{
    (void)state;
    struct error e;
    for (size_t k = 0; k < sizeof abilities / sizeof *abilities; k++) {
        const struct ability *a = &abilities[k];
        const struct kernel_config c = {.request = a->request};
        uint32_t can = family_can(target_find(a->target, &e), &c);
        assert_int_equal(can & a->can, a->can);
        assert_int_equal(can & a->cannot, 0);
    }
}

static bool is_template(const char *unit)
{
    const struct source_file *k = templates_embedded;
    while (unit && k->name && strcmp(k->name, unit))
        k++;
    return !unit || k->name;
}

static bool has_case(const char *family)
{
    for (uint32_t k = 0; k < ROWS; k++)
        if (!strcmp(row[k].forward, family) || !strcmp(row[k].backward, family))
            return true;
    return false;
}

/* Each family stands in row[] above, and its units among the templates. */
static void test_rows_are_whole(void **state)
{
    (void)state;
    for (const struct kernel_family *const *f = kernel_families; *f; f++)
        if ((!(*f)->alone && !has_case((*f)->name)) || !is_template((*f)->forward_unit) ||
            !is_template((*f)->backward_unit[0]) || !is_template((*f)->backward_unit[1]) ||
            !is_template((*f)->bias_unit))
            fail_msg("%s: no case here, or a unit that templates/meson.build lacks",
                     (*f)->name);
}

static bool has_folder(const struct source *s, const char *folder)
{
    for (uint32_t k = 0; k < s->n_files; k++)
        if (!strncmp(s->files[k].name, folder, strlen(folder)))
            return true;
    return false;
}

/* The shared memory that a block of any phase asks for, at most. */
static uint32_t shared_of(const struct launch_record *l)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < l->n_forward; k++)
        most = most > l->forward[k].shared_bytes ? most : l->forward[k].shared_bytes;
    for (uint32_t k = 0; k < l->n_backward; k++)
        most = most > l->backward[k].shared_bytes ? most : l->backward[k].shared_bytes;
    return most;
}

static void check_shared(const struct target *t, const struct kernel_family *f,
                         const struct kernel_request *r)
{
    for (int pass = 0; pass < FAMILY_PASSES; pass++) {
        if (!f->applies(t, r, (enum family_pass)pass))
            continue;
        const bool can_tall = f->can(t, r, (enum family_pass)pass) & CAN_TALL;
        for (int tall = 0; tall <= can_tall; tall++) {
            struct launch_record l = {0};
            f->launch(t, &(struct kernel_config){.request = *r, .tall = tall},
                      (enum family_pass)pass, &l);
            if (shared_of(&l) > t->shared_bytes)
                fail_msg("%s, %s, D = %u, n = %u: %u bytes of shared memory, there are %u",
                         t->name, f->name, r->head_dim, r->length, shared_of(&l),
                         t->shared_bytes);
        }
    }
}

/* No kernel asks for more shared memory than a block of its target may have. */
static void test_shared_memory(void **state)
{
    (void)state;
    static const char *const names[] = {"sm_80",   "sm_86",  "sm_89",     "sm_90a",
                                        "sm_100a", "sm_120", "compute_80"};
    static const uint32_t lengths[] = {128, 384, 2048};
    struct error e;
    for (uint32_t k = 0; k < 7 * 3 * 2 * 2; k++)
        for (uint32_t d = 16; d <= 256; d += 8)
            for (const struct kernel_family *const *f = kernel_families; *f; f++)
                if (!(*f)->step_shapes) /* the planner asks for theirs by shape */
                    check_shared(target_find(names[k % 7], &e), *f,
                                 &(struct kernel_request){.dtype = k / 42 ? ABI_BF16 : ABI_F32,
                                                          .head_dim = d,
                                                          .length = lengths[k / 7 % 3],
                                                          .bias = k / 21 % 2 ? ABI_BIAS_ADD
                                                                             : ABI_BIAS_NONE,
                                                          .backward = true});
}

/* Emission has the folders and the units of both families, and each unit has phases. */
static void test_emitted(void **state)
{
    (void)state;
    struct error e;
    for (uint32_t k = 0; k < ROWS; k++) {
        const struct target *t = target_find(row[k].target, &e);
        const struct kernel_config c = {.request = request_of(k)};
        const struct kernel_family *forward = family_of(t, &c, FAMILY_FORWARD);
        const struct kernel_family *backward = family_of(t, &c, FAMILY_BACKWARD);
        struct source *s = emit_source(t, &c);
        assert_true(has_folder(s, forward->folder) && has_folder(s, backward->folder));
        assert_true(has_folder(s, forward->forward_unit));
        assert_int_equal(has_folder(s, "cuda/resident/"),
                         !strcmp(row[k].forward, "cuda_resident"));
        assert_int_equal(s->launch.block_rows, family_shape(t, &c).block_rows);
        assert_true(s->launch.n_forward > 0 && s->launch.n_backward > 0);
        source_destroy(s);
    }
}

static bool is_listed(uint32_t length, const struct kernel_family *family)
{
    struct error e;
    const struct kernel_family *list[FAMILIES_MOST];
    const struct kernel_request r = {.dtype = ABI_BF16, .head_dim = 64, .length = length};
    const uint32_t count = family_list(target_find("sm_90a", &e), &r, FAMILY_FORWARD, list);
    bool found = false;
    for (uint32_t k = 0; k < count; k++)
        found |= list[k] == family;
    return found;
}

/* Short masks do not have cuda_hopper by themselves. Where a config says it, emission has what it needs. */
static void test_hopper(void **state)
{
    (void)state;
    struct error e;
    const struct target *t = target_find("sm_90a", &e);
    const struct kernel_family *hopper = family_find("cuda_hopper", &e);
    const struct kernel_config c = {
        .request = {.dtype = ABI_BF16, .head_dim = 64, .backward = true, .length = 2048},
        .forward = hopper,
        .backward = hopper};
    assert_true(hopper->applies(t, &c.request, FAMILY_FORWARD));
    assert_true(is_listed(0, hopper) && is_listed(512, hopper));
    assert_false(is_listed(511, hopper));
    struct source *s = emit_source(t, &c);
    assert_true(has_folder(s, "cuda/hopper/") && !has_folder(s, "cuda/tiled/"));
    assert_int_equal(s->n_units, 3);
    assert_int_equal(s->launch.n_forward, 1);
    assert_int_equal(s->launch.n_backward, 2);
    assert_int_equal(s->launch.forward[0].arguments, PHASE_HOPPER_FORWARD);
    assert_int_equal(s->launch.forward[0].threads, 512);
    assert_int_equal(s->launch.backward[1].arguments, PHASE_HOPPER_DKV);
    assert_int_equal(s->launch.backward[1].threads, 384);
    source_destroy(s);
}

/* Requests that the kernels of cuda_hopper refuse. */
static void test_hopper_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        struct kernel_request request;
    } refused[] = {
        {"sm_80", {.dtype = ABI_BF16, .head_dim = 64}},
        {"sm_100a", {.dtype = ABI_BF16, .head_dim = 64}},
        {"sm_90a", {.dtype = ABI_F32, .head_dim = 64}},
        {"sm_90a", {.dtype = ABI_BF16, .head_dim = 136}},
        {"sm_90a", {.dtype = ABI_BF16, .head_dim = 64, .transform = ABI_SPARSEGEN}},
        {"sm_90a", {.dtype = ABI_BF16, .head_dim = 64, .bias = ABI_BIAS_ADD}},
    };
    struct error e;
    const struct kernel_family *hopper = family_find("cuda_hopper", &e);
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
        assert_false(hopper->applies(target_find(refused[k].target, &e), &refused[k].request,
                                     FAMILY_FORWARD));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hopper),
                                       cmocka_unit_test(test_hopper_refuses),
                                       cmocka_unit_test(test_first_that_applies),
                                       cmocka_unit_test(test_can),
                                       cmocka_unit_test(test_rows_are_whole),
                                       cmocka_unit_test(test_shared_memory),
                                       cmocka_unit_test(test_emitted)};
    return cmocka_run_group_tests_name("family", tests, NULL, NULL);
}
