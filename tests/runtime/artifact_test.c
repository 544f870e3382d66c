/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel file comes back as it was written, and no damaged one is read. */
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "masks/safetensors.h"
#include "runtime/artifact/tables.h"
#include "tests/runtime/fixture.h"
#include "tests/support/program/options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char small[] = "window(1)|global(0)";
static int bits = 8; /* flipped of each byte, one at a time; --few: one, another in each */

static void expect_table(const struct plan_table *l, const struct plan_table *r)
{
    void *from, *to;
    memcpy(&from, l->data, sizeof from);
    memcpy(&to, r->data, sizeof to);
    assert_int_equal(*l->count, *r->count);
    size_t bytes = *l->count * l->columns * (l->dtype[1] == '3' ? 4 : 8);
    if (bytes)
        assert_memory_equal(from, to, bytes);
}

static void expect_pass(const struct plan_pass *a, const struct plan_pass *b,
                        const struct mask *m)
{
    struct plan_pass left = *a, right = *b;
    struct plan_extent x = {(uint64_t)m->n_patterns + 1, m->layers}, y = x;
    struct plan_table l[PLAN_TABLES], r[PLAN_TABLES];
    plan_tables(&left, &x, 32, l);
    plan_tables(&right, &y, 32, r);
    assert_int_equal(a->max_cols, b->max_cols);
    assert_int_equal(a->partial_slots, b->partial_slots);
    assert_int_equal(a->uses, b->uses);
    for (int k = 0; k < PLAN_TABLES; k++)
        expect_table(&l[k], &r[k]);
}

static void expect_request(const struct kernel_request *a, const struct kernel_request *b)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->transform, b->transform);
    assert_true(a->lambda == b->lambda);
    assert_int_equal(a->head_dim, b->head_dim);
    assert_int_equal(a->dropout, b->dropout);
    assert_int_equal(a->backward, b->backward);
}

static void expect_same(const struct artifact *a, const struct artifact *b)
{
    assert_true(mask_equal(a->mask, b->mask));
    assert_string_equal(a->mask->source, b->mask->source);
    assert_int_equal(a->n_plans, b->n_plans);
    assert_int_equal(a->n_targets, b->n_targets);
    expect_request(&a->request, &b->request);
    for (uint32_t k = 0; k < a->n_plans; k++) {
        assert_string_equal(a->plan[k].text, b->plan[k].text);
        assert_string_equal(a->plan[k].machine, b->plan[k].machine);
        expect_pass(&a->plan[k].forward, &b->plan[k].forward, a->mask);
        if (a->request.backward)
            expect_pass(&a->plan[k].transposed, &b->plan[k].transposed, a->mask);
    }
    for (uint32_t k = 0; k < a->n_targets; k++) {
        const struct artifact_target *t = &a->target[k], *u = &b->target[k];
        assert_string_equal(t->name, u->name);
        assert_string_equal(t->compiler, u->compiler);
        assert_int_equal(t->n_images, u->n_images);
        for (uint32_t i = 0; i < t->n_images; i++) {
            assert_int_equal(t->image[i].size, u->image[i].size);
            assert_memory_equal(t->image[i].bytes, u->image[i].bytes, t->image[i].size);
        }
        assert_memory_equal(&t->launch, &u->launch, sizeof t->launch);
        assert_memory_equal(t->kernel, u->kernel, sizeof t->kernel);
        assert_int_equal(!t->source, !u->source);
        if (t->source)
            assert_string_equal(t->source, u->source);
    }
}

/* Written, read, compared, and written again to the same bytes. */
static void round_trip(struct fixture *f, const char *name)
{
    struct artifact *back;
    struct error e = {0};
    uint64_t size;
    if (artifact_read(f->bytes, f->size, "FILE", &back, &e) < 0)
        fail_msg("%s: %s", name, e.text);
    expect_same(&f->artifact, back);
    uint8_t *again = artifact_write(back, &size);
    assert_int_equal(size, f->size);
    assert_memory_equal(again, f->bytes, size);
    free(again);
    artifact_destroy(back);
    fixture_free(f);
}

static const struct {
    const char *mask;
    uint32_t n, heads;
    bool backward;
} round_trips[] = {
    {"window(1)|global(0)", 5, 1, true},
    {"bigbird", 128, 12, true},
    {"blockbert-2", 100, 0, true},
    {"none", 33, 2, true},
    {"dense", 64, 3, false},
    {"dam-s-example", 128, 0, true},
    {"diagonal(3)", 512, 1, false},
    {"dense", 1, 1, true},
};

static void round_trip_keeps_everything(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof round_trips / sizeof *round_trips; k++)
        round_trip(fixture_new(round_trips[k].mask, round_trips[k].n, round_trips[k].heads,
                               round_trips[k].backward),
                   round_trips[k].mask);
}

/* The pattern |i - j| < w of length n. */
static struct pattern *band(uint32_t n, uint32_t w)
{
    struct pattern *p = pattern_new(n);
    for (uint32_t i = 0; i < n; i++) {
        pattern_add(p, i, i < w ? 0 : i - w + 1, i + w < n ? i + w : n);
        pattern_row(p, i);
    }
    return pattern_finish(p);
}

static void layers_are_kept(void **state)
{
    (void)state;
    struct pattern *a = band(40, 1), *b = band(40, 7), *c = band(40, 40);
    struct pattern *given[] = {a, b, b, a, c, a};
    round_trip(fixture_of(mask_new(3, 2, given, "layers"), true), "layers");
}

/* A mask may come from a file whose name is not UTF-8. */
static void any_source_can_be_written(void **state)
{
    (void)state;
    struct pattern *given[] = {band(5, 2)};
    struct fixture *f = fixture_of(mask_new(1, 1, given, "m\xe4sk \"x\" \x01\\.npy"), false);
    struct artifact *back;
    assert_int_equal(artifact_read(f->bytes, f->size, "FILE", &back, NULL), 0);
    assert_string_equal(back->mask->source, "m?sk \"x\" \x01\\.npy");
    artifact_destroy(back);
    fixture_free(f);
}

/* The bytes may lie anywhere in memory. */
static void unaligned_bytes_are_read(void **state)
{
    (void)state;
    struct fixture *f = fixture_new("longformer", 128, 2, true);
    uint8_t *storage = memory_new(f->size + 1, 1);
    memcpy(storage + 1, f->bytes, f->size);
    struct artifact *back;
    assert_int_equal(artifact_read(storage + 1, f->size, "FILE", &back, NULL), 0);
    expect_same(&f->artifact, back);
    artifact_destroy(back);
    free(storage);
    fixture_free(f);
}

/* Any safetensors reader can open one: the mask and the tables have names, types and shapes. */
static void a_kernel_file_is_a_safetensors_file(void **state)
{
    (void)state;
    struct fixture *f = fixture_new("longformer", 128, 2, true);
    struct safetensors s = {0};
    struct error e = {0};
    assert_int_equal(safetensors_parse(f->bytes, f->size, "FILE", &s, &e), 0);
    assert_int_equal(s.header_size % 8, 0);
    const struct safetensor *items = safetensors_find(&s, "plan0/forward/items");
    assert_non_null(items);
    assert_string_equal(items->dtype, "U32");
    assert_int_equal(items->shape[0], f->plan->forward.n_items);
    assert_int_equal(items->shape[1], sizeof(struct abi_item) / 4);
    assert_non_null(safetensors_find(&s, "sm_80/source"));
    assert_non_null(safetensors_find(&s, "sm_80/code"));
    assert_non_null(safetensors_find(&s, "sm_80/code2"));
    assert_null(safetensors_find(&s, "x86-64-v3/code1"));
    assert_string_equal(safetensors_metadata(&s, "version"), "4");
    safetensors_finish(&s);
    fixture_free(f);
}

static void refused(const uint8_t *bytes, uint64_t size, const char *what, uint64_t at)
{
    struct artifact *a;
    struct error e = {0};
    if (artifact_read(bytes, size, "FILE", &a, &e) == 0)
        fail_msg("a file with %s at %llu was read", what, (unsigned long long)at);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_ptr_equal(strstr(e.text, "FILE"), e.text);
    assert_null(strchr(e.text, '\n'));
}

static void every_flipped_bit_is_refused(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(small, 5, 1, false);
    for (uint64_t at = 0; at < f->size; at++)
        for (int k = 0; k < bits; k++) {
            const int bit = (int)((at + (uint64_t)k) % 8);
            f->bytes[at] ^= (uint8_t)(1 << bit);
            refused(f->bytes, f->size, "a flipped bit", at);
            f->bytes[at] ^= (uint8_t)(1 << bit);
        }
    fixture_free(f);
}

static void every_length_but_its_own_is_refused(void **state)
{
    (void)state;
    struct fixture *f = fixture_new(small, 5, 1, true);
    for (uint64_t size = 0; size < f->size; size++) {
        /* its own allocation, so that a sanitizer sees a read behind the cut */
        uint8_t *cut = memory_new(size, 1);
        memcpy(cut, f->bytes, size);
        refused(cut, size, "a cut", size);
        free(cut);
    }
    uint8_t *longer = memory_new(f->size + 64, 1);
    memcpy(longer, f->bytes, f->size);
    for (uint64_t more = 1; more <= 64; more++)
        refused(longer, f->size + more, "bytes appended", more);
    free(longer);
    fixture_free(f);
}

/* Replaces one text by another of the same length everywhere, and signs the file anew. */
static void replace(struct fixture *f, const char *from, const char *to)
{
    size_t length = strlen(from);
    int found = 0;
    for (uint64_t k = 0; k + length <= f->size; k++)
        if (!memcmp(f->bytes + k, from, length)) {
            memcpy(f->bytes + k, to, length);
            found++;
        }
    assert_true(found > 0);
    fixture_sign(f->bytes, f->size);
}

static void other_files_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *text;
    } cases[] = {
        {"\"version\":\"4\"", "\"version\":\"3\"", "another version"},
        {"\"abi\":\"7\"", "\"abi\":\"6\"", "another version"},
        {"maskc kernel file", "maskc kernel fili", "not a kernel file"},
        {"x86-64-v3", "x86-64-v9", "unknown target 'x86-64-v9'"},
        {"sm_80", "sm_8x", "unknown target"},
        {"kv_heads\\\":0", "kv_heads\\\":7", "do not fit the mask"},
        {"queries\\\":0", "queries\\\":3", "do not fit the mask"},
        {"keys\\\":0", "keys\\\":4", "do not fit the mask"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct fixture *f = fixture_new(small, 5, 1, true);
        struct artifact *a;
        struct error e = {0};
        replace(f, cases[k].from, cases[k].to);
        assert_int_equal(artifact_read(f->bytes, f->size, "FILE", &a, &e), -1);
        if (!strstr(e.text, cases[k].text))
            fail_msg("'%s' does not say '%s'", e.text, cases[k].text);
        fixture_free(f);
    }
}

int main(int argc, char **argv)
{
    if (test_option(argc, argv, "--few"))
        bits = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip_keeps_everything),
        cmocka_unit_test(layers_are_kept),
        cmocka_unit_test(any_source_can_be_written),
        cmocka_unit_test(unaligned_bytes_are_read),
        cmocka_unit_test(a_kernel_file_is_a_safetensors_file),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(every_length_but_its_own_is_refused),
        cmocka_unit_test(other_files_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
