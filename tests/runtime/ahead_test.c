/* SPDX-License-Identifier: Apache-2.0 */
/* Does a file of kernels compiled ahead give back what was written, or nothing? Is the mask not in the code, so that
   such a file can have all codes? */
#include "gen/emit/emit.h"
#include "gen/family/family.h"
#include "gen/plan/plan.h"
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include "masks/language/gallery.h"
#include "runtime/ahead/ahead.h"
#include "runtime/ahead/layout.h"
#include "tests/support/program/options.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

enum { CODES = 7 };
static bool few; /* one length for the mask's headers, not two */

static struct cache_key key_of(uint32_t k)
{
    return cache_key(&k, sizeof k);
}

/* Code k: of its own length and bytes, three to a frame. */
static uint8_t *write_file(uint64_t *ret_size)
{
    static uint8_t bytes[CODES][400];
    struct ahead_code code[CODES];
    for (uint32_t k = 0; k < CODES; k++) {
        code[k] = (struct ahead_code){key_of(k), bytes[k], 100 + 37 * k, k / 3};
        for (uint64_t i = 0; i < code[k].size; i++)
            bytes[k][i] = (uint8_t)(i * (k + 3) % 7 + k);
    }
    return ahead_write(code, CODES, "test 1.0", ret_size);
}

/* Is it there? It must then be right. */
static bool has(const struct ahead *a, uint32_t k)
{
    uint8_t *bytes;
    uint64_t size;
    if (!ahead_get(a, key_of(k), &bytes, &size, NULL))
        return false;
    assert_int_equal(size, 100 + 37 * k);
    for (uint64_t i = 0; i < size; i++)
        assert_int_equal(bytes[i], (uint8_t)(i * (k + 3) % 7 + k));
    free(bytes);
    return true;
}

static void what_was_written_comes_back(void **state)
{
    (void)state;
    uint64_t size, again_size;
    struct error e = {0};
    struct ahead a;
    uint8_t *bytes = write_file(&size), *again = write_file(&again_size);
    if (!bytes)
        skip();
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    assert_int_equal(ahead_read(bytes, size, "F", &a, &e), 0);
    assert_string_equal(a.compiler, "test 1.0");
    assert_int_equal(a.codes, CODES);
    assert_int_equal(a.frames, 3);
    for (uint32_t k = 0; k < CODES; k++)
        assert_true(has(&a, k));
    assert_false(has(&a, CODES));
    free(bytes);
    free(again);
}

/* No changed byte gives wrong code; one in head or tables is refused. */
static void damage_is_noticed(void **state)
{
    (void)state;
    uint64_t size;
    uint8_t *bytes = write_file(&size);
    if (!bytes)
        skip();
    const uint64_t tables = sizeof(struct ahead_head) + 3 * sizeof(struct ahead_frame) +
                            CODES * sizeof(struct ahead_entry);
    for (uint64_t at = 0; at < size; at++) {
        struct error e = {0};
        struct ahead a;
        uint32_t found = 0;
        bytes[at] ^= 0x41;
        const int r = ahead_read(bytes, size, "F", &a, &e);
        assert_int_equal(r, at < tables ? -1 : 0);
        for (uint32_t k = 0; r == 0 && k < CODES; k++)
            found += has(&a, k);
        assert_true(r < 0 || found < CODES);
        assert_true(r == 0 || (!strncmp(e.text, "F: ", 3) && !strchr(e.text, '\n')));
        bytes[at] ^= 0x41;
    }
    free(bytes);
}

static void cut_files_are_refused(void **state)
{
    (void)state;
    uint64_t size;
    struct error e = {0};
    struct ahead a;
    uint8_t *bytes = write_file(&size);
    if (!bytes)
        skip();
    for (uint64_t cut = 0; cut < size; cut++) {
        uint8_t *part = memory_copy(bytes, cut);
        assert_int_equal(ahead_read(part, cut, "F", &a, &e), -1);
        assert_int_equal(e.kind, ERROR_INPUT);
        free(part);
    }
    free(bytes);
}

/* ---- the mask is not in the code ---- */

/* The header of the plan's kernel, apart from gathered columns, is that of the request alone. */
static void check_header(const struct target *t, const struct kernel_request *r,
                         const char *mask, uint32_t n)
{
    struct error e = {0};
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = mask, .n = n};
    struct mask *m = mask_load(&request, NULL, &e);
    assert_non_null(m);
    struct kernel_request asked = *r;
    asked.length = m->n;
    struct plan *p =
        plan_build(m, t, &asked, machine_find(family_machine(t, &asked), &e), NULL, &e);
    assert_non_null(p);
    assert_true(p->config.gathers_kept <= GATHERS_KEPT_MOST);
    assert_true(!p->config.gathers_kept || t->matrix_machine);
    const struct kernel_config alone = {.request = *r, .gathers_kept = p->config.gathers_kept};
    struct text planned = {0}, known = {0};
    emit_config_header(t, &p->config, &planned);
    emit_config_header(t, &alone, &known);
    assert_string_equal(text_get(&planned), text_get(&known));
    text_finish(&planned);
    text_finish(&known);
    plan_destroy(p);
    mask_destroy(m);
}

static void neither_mask_nor_length_is_in_the_code(void **state)
{
    (void)state;
    static const char *const more[] = {"random(0.02)", "random(0.4, seed=2)",
                                       "stride(32) | window(3)", "window(8) | global(0..3)"};
    static const struct kernel_request requests[] = {
        {.head_dim = 64, .backward = true},
        {.head_dim = 80, .backward = true, .dtype = ABI_BF16, .dropout = true},
        {.head_dim = 32, .backward = true, .dtype = ABI_BF16, .bias = ABI_BIAS_ADD},
        {.head_dim = 128, .backward = true, .transform = ABI_SPARSEGEN, .lambda = 0.5f},
    };
    uint32_t checked = 0;
    for (const struct target *t = targets; t->name; t++)
        for (size_t k = 0; t->kind == TARGET_CPU && k < sizeof requests / sizeof *requests; k++)
            for (uint32_t n = 64; n < (few ? 65 : 400); n += 223) {
                for (const struct gallery_entry *g = mask_gallery; g->name; g++, checked++)
                    check_header(t, &requests[k], g->name, n);
                for (size_t x = 0; x < sizeof more / sizeof *more; x++, checked++)
                    check_header(t, &requests[k], more[x], n);
            }
    assert_true(checked > (few ? 200 : 400));
}

int main(int argc, char **argv)
{
    few = test_option(argc, argv, "--few");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_comes_back),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(neither_mask_nor_length_is_in_the_code),
    };
    return cmocka_run_group_tests_name("runtime/ahead", tests, NULL, NULL);
}
