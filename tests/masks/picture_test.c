/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures: the levels against counting entries one by one, the terminal's characters, and files that
   cannot be; picture_files_test looks at those that can. */
#include "masks/picture/panels.h"
#include "masks/picture/picture.h"
#include "masks/picture/sample.h"
#include "masks/places.h"
#include "tests/masks/help.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- levels ---------------------------------------------------------------------------------- */

static void check_levels(const struct pattern *p, uint32_t size)
{
    double *active = memory_new((size_t)size * size, sizeof *active);
    double *entries = memory_new((size_t)size * size, sizeof *entries);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++) {
            size_t cell = (size_t)(i * size / p->n) * size + j * size / p->n;
            entries[cell]++;
            active[cell] += pattern_test(p, i, j);
        }
    float *level = pattern_sample(p, size);
    for (size_t k = 0; k < (size_t)size * size; k++)
        assert_true(fabs(level[k] - active[k] / entries[k]) < 1e-6);
    free(level);
    free(active);
    free(entries);
}

static void test_levels(void **state)
{
    (void)state;
    static const char *const masks[] = {"random(0.3)", "window(9) | global(0)", "dense",
                                        "none",        "blocks(2, shift=1)",    "stride(5)"};
    for (size_t k = 0; k < sizeof masks / sizeof *masks; k++)
        for (uint32_t n = 2; n < 120; n += 17)
            for (uint32_t size = 1; size <= n;
                 size = size < n / 3 ? size + 3 : size + n / 3 + 1) {
                struct mask *m = load_text(masks[k], n);
                check_levels(m->pattern[0], size);
                check_levels(m->pattern[0], n);
                mask_destroy(m);
            }
}

/* --- titles ---------------------------------------------------------------------------------- */

enum { LAYERS = 3, HEADS = 4 };

/* Layers 0 and 1 are alike; pattern 0 stands in seven places. */
static struct mask *make_layers(void)
{
    static const char kind[LAYERS][HEADS + 1] = {"aaab", "aaab", "cacb"};
    struct pattern *given[LAYERS * HEADS], *made[3];
    const char *const source[] = {"dense", "causal", "none"}; /* a, b, c */
    for (int k = 0; k < 3; k++) {
        struct mask *m = load_text(source[k], 8);
        made[k] = pattern_copy(m->pattern[0]);
        mask_destroy(m);
    }
    for (int l = 0; l < LAYERS; l++)
        for (int h = 0; h < HEADS; h++)
            given[l * HEADS + h] = made[kind[l][h] - 'a'];
    return mask_new(LAYERS, HEADS, given, "test");
}

static void test_places(void **state)
{
    (void)state;
    static const char *const expected[] = {"layers 0,1 heads 0-2; layer 2 head 1", "head 3",
                                           "layer 2 heads 0,2"};
    struct mask *m = make_layers();
    assert_int_equal(m->n_patterns, 3);
    for (uint32_t k = 0; k < 3; k++) {
        struct text text = {0};
        mask_places_text(m, k, &text);
        assert_string_equal(text_get(&text), expected[k]);
        text_finish(&text);
    }
    mask_destroy(m);
}

static void test_panel_titles(void **state)
{
    (void)state;
    static const struct {
        const char *title;
        uint32_t pattern;
    } expected[] = {{"layers 0,1 head 0", 0}, {"layers 0,1 head 1", 0},
                    {"layers 0,1 head 2", 0}, {"layers 0,1 head 3", 1},
                    {"layer 2 head 0", 2},    {"layer 2 head 1", 0},
                    {"layer 2 head 2", 2},    {"layer 2 head 3", 1}};
    struct mask *m = make_layers();
    for (uint32_t most = 0; most < 11; most += 5) {
        struct panel *panel;
        uint64_t all;
        uint32_t n = mask_panels(m, most, &panel, &all);
        assert_int_equal(all, 8);
        assert_int_equal(n, most < 8 ? most : 8);
        for (uint32_t k = 0; k < n; k++) {
            assert_string_equal(panel[k].title, expected[k].title);
            assert_int_equal(panel[k].pattern, expected[k].pattern);
        }
        panels_destroy(panel, n);
    }
    mask_destroy(m);
    struct panel *panel;
    uint64_t all;
    m = load_text("blockbert-2", 64);
    assert_int_equal(mask_panels(m, 100, &panel, &all), 12);
    assert_string_equal(panel[11].title, "head 11");
    assert_int_equal(panel[11].pattern, 1);
    panels_destroy(panel, 12);
    mask_destroy(m);
}

/* --- the terminal ---------------------------------------------------------------------------- */

static void test_terminal(void **state)
{
    (void)state;
    struct mask *m = load_text("diagonal(0) | rows(3)", 4);
    struct text text = {0};
    mask_draw_text(m, 80, &text);
    assert_string_equal(text_get(&text), "head 0\n"
                                         "┌────┐\n"
                                         "│▀▄  │\n"
                                         "│▄▄█▄│\n"
                                         "└────┘\n");
    text_finish(&text);
    mask_destroy(m);
}

static uint32_t widest_line(const char *text)
{
    uint32_t widest = 0, width = 0;
    for (; *text; text++) {
        width = *text == '\n' ? 0 : width + ((*text & 0xc0) != 0x80);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void test_terminal_width(void **state)
{
    (void)state;
    static const char *const masks[] = {"dense", "dam-s-example", "blockbert-3"};
    for (size_t k = 0; k < 3; k++)
        for (uint32_t columns = 4; columns < 200; columns += 13) {
            struct mask *m = load_text(masks[k], 512);
            struct text text = {0};
            mask_draw_text(m, columns, &text);
            assert_true(widest_line(text_get(&text)) <= columns);
            text_finish(&text);
            mask_destroy(m);
        }
}

/* --- files ----------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    struct mask *m = load_text("dense", 8);
    struct error e = {0};
    assert_int_equal(mask_draw(m, "/nowhere/at/all/x.png", &e), -1);
#ifdef HAVE_CAIRO
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_int_equal(mask_draw(m, "x.jpeg", &e), -1);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, ".png or .svg"));
#else
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
#endif
    mask_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),         cmocka_unit_test(test_places),
        cmocka_unit_test(test_panel_titles),   cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_terminal_width), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
