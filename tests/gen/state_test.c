/* SPDX-License-Identifier: Apache-2.0 */
/* mask -> text -> mask: equal in every layer and head, and the text is the one a person would
   write. */
#include "masks/analysis/state.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include "masks/language/gallery.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct mask *load(const char *name, uint32_t n, uint32_t heads)
{
    struct error e = {0};
    struct mask_request r = {.name = name, .n = n, .heads = heads, MASK_REQUEST_DEFAULTS};
    struct mask *m = mask_load(&r, NULL, &e);
    if (!m)
        fail_msg("%s: %s", name, e.text);
    return m;
}

/* The mask that a .mask file with this text holds. */
static struct mask *load_text(const char *text)
{
    char path[] = "/tmp/state_test.XXXXXX.mask";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    close(fd);
    struct error e = {0};
    if (file_write(path, text, strlen(text), &e) < 0)
        fail_msg("%s", e.text);
    struct mask *m = load(path, 0, 0);
    unlink(path);
    return m;
}

static char *state_text(const struct mask *m)
{
    struct text out = {0};
    struct error e = {0};
    if (mask_state(m, &out, &e) < 0)
        fail_msg("%s", e.text);
    return text_take(&out);
}

/* clang-format off */
static const struct {
    const char *given, *expected;
} files[] = {
    {"length 128\nstrided\n",
     "length 128\nwindow(4) | stride(4)\n"},
    {"length 64\nheads 4\nhead 0,2: window(2)\nhead 1: dense\nhead 3: none\n",
     "length 64\nheads 4\nhead 0,2: window(2)\nhead 1: dense\nhead 3: none\n"},
    {"length 96\nheads 12\nhead 0-9: blocks(2)\nhead 10,11: blocks(2, shift=1)\n",
     "length 96\nheads 12\nhead 0-9: blocks(2, shift=0)\nhead 10,11: blocks(2, shift=1)\n"},
    {"length 64\nheads 3\nlayers 4\nhead 0-2: causal\nlayer 1,2 head 0: dense\nlayer 3: window(5)\n",
     "length 64\nheads 3\nlayers 4\nlayer 0 head 0-2: causal\nlayer 1,2 head 1,2: causal\n"
     "layer 1,2 head 0: dense\nlayer 3 head 0-2: window(5)\n"},
    {"length 64\nheads 2\nlayers 3\nhead 0: causal\nhead 1: global(0,-1)\n",
     "length 64\nheads 2\nlayers 3\nhead 0: causal\nhead 1: global(0,-1)\n"},
    {"length 64\nheads 2\nlayers 3\nhead 0-1: causal - diagonal(0)\n",
     "length 64\nheads 2\nlayers 3\ndiagonal(-63..-1)\n"},
};
/* clang-format on */

static void test_texts(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        struct mask *m = load_text(files[k].given);
        char *text = state_text(m);
        assert_string_equal(text, files[k].expected);
        struct mask *again = load_text(text);
        assert_true(mask_equal(m, again));
        mask_destroy(again);
        mask_destroy(m);
        free(text);
    }
}

static void test_gallery(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {64, 65, 128, 512};
    uint32_t stated = 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            struct mask *m = load(g->name, lengths[k], 0);
            struct text out = {0};
            struct error e = {0};
            if (mask_state(m, &out, &e) == 0) {
                struct mask *again = load_text(text_get(&out));
                assert_true(mask_equal(m, again));
                mask_destroy(again);
                stated++;
            } else if (strcmp(g->name, "bigbird") != 0) {
                fail_msg("%s, n = %u: %s", g->name, lengths[k], e.text);
            }
            text_finish(&out);
            mask_destroy(m);
        }
    assert_true(stated >= 11 * 4);
}

static void test_random_layers(void **state)
{
    (void)state;
    static const char *const term[] = {"window(3)",
                                       "stride(7)",
                                       "global(5)",
                                       "causal",
                                       "none",
                                       "blocks(3, shift=1)",
                                       "(window(2) | global(0)) - diagonal(0)"};
    uint32_t seed = 5;
    for (int k = 0; k < 40; k++) {
        uint32_t layers = 1 + (uint32_t)k % 4, heads = 1 + (uint32_t)k % 5;
        struct text text = {0};
        text_add(&text, "length %d\nheads %u\nlayers %u\n", 20 + k, heads, layers);
        for (uint32_t l = 0; l < layers; l++)
            for (uint32_t h = 0; h < heads; h++) {
                seed = seed * 1664525u + 1013904223u;
                text_add(&text, "layer %u head %u: %s\n", l, h, term[(seed >> 16) % 7]);
            }
        struct mask *m = load_text(text_get(&text));
        char *stated = state_text(m);
        struct mask *again = load_text(stated);
        if (!mask_equal(m, again))
            fail_msg("%s\nstated wrongly as\n%s", text_get(&text), stated);
        mask_destroy(m);
        mask_destroy(again);
        free(stated);
        text_finish(&text);
    }
}

/* A refusal leaves the text unchanged and names the alternative. */
static void test_refusal(void **state)
{
    (void)state;
    struct mask *m = load("random(0.4)", 300, 0);
    struct text out = {0};
    struct error e = {0};
    text_add(&out, "kept");
    assert_int_equal(mask_state(m, &out, &e), -1);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, ".npy"));
    assert_null(strchr(e.text, '\n'));
    assert_string_equal(text_get(&out), "kept");
    text_finish(&out);
    mask_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_gallery),
        cmocka_unit_test(test_random_layers),
        cmocka_unit_test(test_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
