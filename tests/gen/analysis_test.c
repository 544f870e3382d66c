/* SPDX-License-Identifier: Apache-2.0 */
/* The analysis against the language: what a mask was stated as is found again in its dense entries. */
#include "masks/analysis/analysis.h"
#include "tests/masks/help.h"
#include <stdlib.h>
#include <string.h>

/* The same entries, through dense bytes: nothing of the statement is left but the pattern. */
static struct pattern *through_bytes(const struct pattern *p)
{
    uint8_t *bytes = memory_new((size_t)p->n * p->n, 1);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++)
            bytes[(size_t)i * p->n + j] = pattern_test(p, i, j);
    struct pattern *dense = pattern_from_bytes(bytes, p->n, p->n);
    free(bytes);
    return dense;
}

/* clang-format off */
static const struct {
    const char *mask;
    uint32_t n;
    const char *statement; /* null: not exact */
} stated[] = {
    {"dense", 128, "dense"},
    {"none", 128, "none"},
    {"dense", 1, "dense"},
    {"none", 1, "none"},
    {"causal", 128, "causal"},
    {"causal - diagonal(0)", 128, "diagonal(-127..-1)"},
    {"dense - diagonal(0)", 128, "dense - diagonal(0)"},
    {"logsparse", 128, "distance(0,1,2,4,8,16,32,64)"},
    {"logsparse - diagonal(0)", 128, "distance(1,2,4,8,16,32,64)"},
    {"strided", 128, "window(4) | stride(4)"},
    {"strided - diagonal(0)", 128, "(window(4) | stride(4)) - diagonal(0)"},
    {"strided & causal", 128, "(window(4) | stride(4)) - diagonal(1..127)"},
    {"strided(23)", 512, "window(23) | stride(23)"},
    {"fixed", 128, "local(4) | summary(4,1)"},
    {"fixed(23,1)", 512, "local(23) | summary(23,1)"},
    {"fixed & causal", 128, "(local(4) | summary(4,1)) - diagonal(1..127)"},
    {"star", 128, "diagonal(0) | ring | global(0)"},
    {"star", 512, "diagonal(0) | ring | global(0)"},
    {"star", 64, "diagonal(0) | ring | global(0)"},
    {"stride(4)", 9, "stride(4)"},
    {"distance(0,5)", 9, "distance(0,5)"},
    {"star - diagonal(0)", 128, "(ring | global(0)) - diagonal(0)"},
    {"window(5) | global(17,90)", 128, "window(5) | global(17,90)"},
    {"window(100)", 128, "window(100)"},
    {"~window(3)", 128, "distance(4..127)"},
    {"blocks(2)", 512, "blocks(2, shift=0)"},
    {"blocks(2, shift=1)", 512, "blocks(2, shift=1)"},
    {"blocks(3, shift=2)", 512, "blocks(3, shift=2)"},
    {"blocks(4, perm=[3,1,4,2]) | window(1)", 128, "window(1) | blocks(4, perm=[3,1,4,2])"},
    {"local(4)", 128, "local(4)"},
    {"diagonal(-3,1,2)", 64, "diagonal(-3,1,2)"},
    {"rows(3) | columns(9,10)", 64, "rows(3) | columns(9,10)"},
    {"(distance(1,2,5,11,30) | global(0,-1)) - diagonal(0)", 128,
     "(distance(1,2,5,11,30) | global(0,-1)) - diagonal(0)"},
    {"rows(0..99) & columns(0..99)", 128, "(rows(0..99)&columns(0..99))"},
    {"window(1) | (rows(20)&columns(60))", 128, "window(1) | (rows(20)&columns(60))"},
    {"documents(40,3,1,84)", 128, "documents(40,3,1,84)"},
    {"documents(40,3,1,84) & causal", 128, "(causal&documents(40,3,1,84))"},
    {"documents(40,3,1,84) - diagonal(0)", 128, "documents(40,3,1,84) - diagonal(0)"},
    {"sink(4,32)", 128, "sink(4,32)"},
    {"sink(40,8)", 128, "sink(40,8)"},
    {"sink(4,32) & causal", 128, "(causal&sink(4,32))"},
    {"sink(64,200) & causal", 512, "(causal&sink(64,200))"},
    {"sink(1,32) & causal", 128, "sink(1,32)"},
    {"neighborhood(100,7)", 100, "neighborhood(100,7)"},
    {"neighborhood(101,5,dilation=[4])", 101, "neighborhood(101,5,dilation=[4])"},
    {"neighborhood(12,20,3,5)", 240, "neighborhood(12,20,3,5)"},
    {"neighborhood(12,20,4,6) - diagonal(0)", 240, "neighborhood(12,20,4,6) - diagonal(0)"},
    {"neighborhood(15,20,3,5,dilation=[2,3],causal=[1,0])", 300,
     "neighborhood(15,20,3,5,dilation=[2,3],causal=[1,0])"},
    {"neighborhood(6,7,8,3,2,5,causal=[1,0,0])", 336, "neighborhood(6,7,8,3,2,5,causal=[1,0,0])"},
    {"random(0.5)", 256, NULL},
    {"bigbird", 128, NULL},
};
/* clang-format on */

static void test_statements(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof stated / sizeof *stated; k++) {
        struct mask *m = load_text(stated[k].mask, stated[k].n);
        struct pattern *dense = through_bytes(m->pattern[0]);
        struct analysis *a = analysis_run(dense);
        char *said = analysis_expression(a);
        if (stated[k].statement) {
            if (!said || strcmp(said, stated[k].statement) != 0)
                fail_msg("%s: stated as %s, expected %s", stated[k].mask,
                         said ? said : "nothing", stated[k].statement);
            assert_int_equal(a->residue, 0);
        } else {
            assert_null(said);
            assert_false(a->exact);
            assert_true(a->residue > 0);
        }
        free(said);
        analysis_destroy(a);
        pattern_destroy(dense);
        mask_destroy(m);
    }
}

/* The shapes' parameters, as the planner reads them. */
static void test_parameters(void **state)
{
    (void)state;
    struct mask *m = load_text("strided", 128);
    struct analysis *a = analysis_run(m->pattern[0]);
    assert_int_equal(a->stride, 4);
    analysis_destroy(a);
    mask_destroy(m);
    m = load_text("fixed(23,2)", 512);
    a = analysis_run(m->pattern[0]);
    assert_int_equal(a->local, 23);
    assert_int_equal(a->summary_block, 23);
    assert_int_equal(a->summary, 2);
    analysis_destroy(a);
    mask_destroy(m);
    m = load_text("blocks(3, shift=1)", 512);
    a = analysis_run(m->pattern[0]);
    assert_int_equal(a->blocks.k, 3);
    for (uint32_t b = 0; b < 3; b++)
        assert_int_equal(a->blocks.perm[b], (b + 1) % 3);
    analysis_destroy(a);
    mask_destroy(m);
    m = load_text("blocks(2)", 512);
    a = analysis_run(m->pattern[0]);
    assert_int_equal(a->blocks.k, 2);
    assert_int_equal(a->blocks.perm[1], 1);
    analysis_destroy(a);
    mask_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
