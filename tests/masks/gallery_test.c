/* SPDX-License-Identifier: Apache-2.0 */
/* The papers' masks: the counts of their tables, from the language and again from the dense file of
   the same mask. */
#include "masks/language/gallery.h"
#include "masks/write.h"
#include "tests/masks/help.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t least, most;     /* active entries at n = 128 */
    double sparsity, without; /* percent, to one decimal; without the diagonal */
} papers[] = {
    {"strided", 4852, 4852, 70.4, 71.2},
    {"fixed", 4480, 4480, 72.7, 73.4},
    {"longformer", 1844, 1844, 88.7, 89.5},
    {"logsparse", 1666, 1666, 89.8, 90.6},
    {"star", 636, 636, 96.1, 96.9},
    {"bigbird", 1120, 1122, 93.2, 93.9},
    {"longformer_cls", 1864, 1864, 88.6, 89.4},
    {"sink", 3606, 3606, 78.0, 78.8},
};
enum { N = 128, N_PAPERS = sizeof papers / sizeof *papers };

/* Written to a dense file and read again. */
static struct mask *round_trip(const struct mask *m, bool safetensors)
{
    struct error e = {0};
    const char *path = test_path(safetensors ? "m.safetensors" : "m.npy");
    int r = (safetensors ? mask_write_safetensors : mask_write_npy)(m, path, &e);
    if (r < 0)
        fail_msg("%s", e.text);
    return load((struct mask_request){.name = path});
}

static void check_dense(const struct mask *m)
{
    for (int k = 0; k < 2; k++) {
        struct mask *again = round_trip(m, k);
        assert_true(mask_equal(m, again));
        mask_destroy(again);
    }
}

static void counts_are_the_papers(void **unused)
{
    (void)unused;
    for (int k = 0; k < N_PAPERS; k++) {
        struct text t = {0};
        text_add(&t, "%s - diagonal(0)", papers[k].name);
        struct mask *m = load_text(papers[k].name, N), *without = load_text(t.bytes, N);
        uint64_t active = m->pattern[0]->active;
        assert_in_range(active, papers[k].least, papers[k].most);
        assert_int_equal(without->pattern[0]->active, active - N);
        assert_true(fabs(100 - 100.0 * (double)active / N / N - papers[k].sparsity) < 0.0501);
        assert_true(fabs(100 - 100.0 * (double)(active - N) / N / N - papers[k].without) <
                    0.0501);
        check_dense(m);
        check_dense(without);
        mask_destroy(m);
        mask_destroy(without);
        text_finish(&t);
    }
}

static const char *const pairs[][2] = {
    {"star", "(star)"},
    {"logsparse", "(logsparse)"},
    {"strided", "strided(4)"},
    {"fixed", "fixed(4, 1)"},
    {"longformer", "(longformer)"},
    {"longformer", "longformer(5, 2)"},
    {"bigbird", "(bigbird)"},
    {"bigbird", "bigbird(1, 2, 2)"},
    {"bigbird", "window(1) | random_global(2, seed=2) | random_keys(2, seed=2)"},
    {"fairseq-fixed", "fairseq_fixed(128, 32)"},
    {"fairseq-fixed", "fairseq-fixed(128, 32)"},
    {"longformer-cls", "(longformer_cls)"},
    {"longformer-cls", "longformer-cls()"},
    {"longformer-cls", " longformer-cls (5, g=2) "},
    {"longformer-cls", "window(5) | global(0..1)"},
    {"longformer-cls(64,1)", "window(64) | global(0)"},
    {"longformer-cls(3, 0)", "window(3)"},
    {"longformer-cls(0, 300)", "dense"},
    {"sink", "(sink)"},
    {"sink", "sink()"},
    {"sink", "columns(0..3) | (causal & window(27))"},
};

static void words_and_files_are_the_same(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        struct mask *a = load_text(pairs[k][0], 300), *b = load_text(pairs[k][1], 300);
        assert_true(mask_equal(a, b));
        mask_destroy(a);
        mask_destroy(b);
    }
}

static void fairseq_has_its_densities(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t n;
        double density;
    } known[] = {{512, 44.19}, {1024, 34.97}, {128, 100}, {96, 100}, {1, 100}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        struct mask *m = load_text("fairseq-fixed", known[k].n);
        double density = 100.0 * (double)m->pattern[0]->active / m->n / m->n;
        assert_true(fabs(density - known[k].density) < 0.005);
        mask_destroy(m);
    }
}

/* The heads [first, last] all have the mask of this expression. */
static void check_heads(const struct mask *m, uint32_t first, uint32_t last, const char *text)
{
    struct mask *expected = load_text(text, m->n);
    for (uint32_t h = first; h <= last; h++)
        assert_true(pattern_equal(mask_pattern(m, 0, h), expected->pattern[0]));
    mask_destroy(expected);
}

static void blockbert_has_its_heads(void **unused)
{
    (void)unused;
    struct mask *two = load_text("blockbert-2", 512), *three = load_text("blockbert-3", 512);
    assert_true(two->heads == 12 && two->n_patterns == 2);
    check_heads(two, 0, 9, "blocks(2)");
    check_heads(two, 10, 11, "blocks(2, perm=[2,1])");
    assert_true(three->heads == 12 && three->n_patterns == 3);
    check_heads(three, 0, 7, "blocks(3)");
    check_heads(three, 8, 9, "blocks(3, perm=[2,3,1])");
    check_heads(three, 10, 11, "blocks(3, perm=[3,1,2])");
    check_dense(two);
    mask_destroy(two);
    mask_destroy(three);
}

/* It is stated by distances and the border, so it serves every length. */
static void the_learned_mask_has_its_border_and_distances_at_every_length(void **unused)
{
    (void)unused;
    static const uint32_t lengths[] = {1, 2, 3, 16, 128, 300};
    for (size_t t = 0; t < sizeof lengths / sizeof *lengths; t++) {
        const uint32_t n = lengths[t];
        struct mask *m = load_text("dam-s-example", n),
                    *largest = load_text("dam-s-example", 300);
        assert_int_equal(m->heads, 12);
        for (uint32_t h = 0; h < 12; h++)
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t j = 0; j < n; j++) {
                    const uint32_t d = i > j ? i - j : j - i;
                    const bool border = i == 0 || j == 0 || i + 1 == n || j + 1 == n,
                               on = pattern_test(mask_pattern(largest, 0, h), 1, 1 + d);
                    assert_int_equal(pattern_test(mask_pattern(m, 0, h), i, j), border || on);
                }
        mask_destroy(m);
        mask_destroy(largest);
    }
}

/* masks/README.md has the right counts of the masks that are not in the papers' tables. */
static void other_counts_are_the_readmes(void **unused)
{
    (void)unused;
    struct mask *three = load_text("blockbert-3", N), *dam = load_text("dam-s-example", N);
    assert_int_equal(three->pattern[0]->active, 5462);
    assert_int_equal(three->pattern[2]->active, 5461);
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t k = 0; k < dam->n_patterns; k++) {
        uint64_t active = dam->pattern[k]->active;
        least = active < least ? active : least;
        most = active > most ? active : most;
    }
    assert_int_equal(least, 758);
    assert_int_equal(most, 2488);
    mask_destroy(three);
    mask_destroy(dam);
}

/* NAME(w=5, g=2) with the listed arguments is NAME. */
static void arguments_are_the_defaults(void **unused)
{
    (void)unused;
    uint32_t with = 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++) {
        struct text call = {0};
        text_add(&call, "%s(", g->name);
        for (int k = 0; k < GALLERY_MAX_ARGUMENTS && g->argument[k].name; k++)
            text_add(&call, "%s%s=%d", k ? ", " : "", g->argument[k].name,
                     g->argument[k].value);
        text_add(&call, ")");
        if (g->argument[0].name) {
            struct mask *a = load_text(g->name, 300), *b = load_text(call.bytes, 300);
            assert_true(mask_equal(a, b));
            mask_destroy(a);
            mask_destroy(b);
            with++;
        }
        text_finish(&call);
    }
    assert_int_equal(with, 7);
}

static void longformer_cls_has_the_first_tokens_global(void **unused)
{
    (void)unused;
    for (uint32_t n = 7; n <= 200; n += 193) {
        struct mask *m = load_text("longformer-cls(4, 3)", n);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                assert_int_equal(pattern_test(m->pattern[0], i, j),
                                 i < 3 || j < 3 || (i > j ? i - j : j - i) <= 4);
        mask_destroy(m);
    }
}

static void names_are_the_files(void **unused)
{
    (void)unused;
    size_t n_files = 0, n_names = 0;
    while (gallery_embedded[n_files].name)
        n_files++;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++, n_names++) {
        struct mask *m = load_text(g->name, 130);
        assert_string_equal(m->source, g->name);
        mask_destroy(m);
    }
    assert_int_equal(n_files, n_names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_the_papers),
        cmocka_unit_test(words_and_files_are_the_same),
        cmocka_unit_test(fairseq_has_its_densities),
        cmocka_unit_test(blockbert_has_its_heads),
        cmocka_unit_test(the_learned_mask_has_its_border_and_distances_at_every_length),
        cmocka_unit_test(other_counts_are_the_readmes),
        cmocka_unit_test(arguments_are_the_defaults),
        cmocka_unit_test(longformer_cls_has_the_first_tokens_global),
        cmocka_unit_test(names_are_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, test_folder_remove);
}
