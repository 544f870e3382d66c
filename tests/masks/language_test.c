/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals of the mask language, their messages, and the meaning of a file's statements. */
#include "tests/masks/help.h"
#include <string.h>

/* An expression at n = 16, and the first line of its error after "MASK:". */
static const struct {
    const char *text, *error;
} bad[] = {
    {"", "1:1: the text is empty, an expression is expected"},
    {"# only a comment", "1:1: the text is empty, an expression is expected"},
    {"widow(2)", "1:1: unknown word 'widow', 'window' is near it"},
    {"dense|  star_", "1:9: unknown word 'star_', 'star' is near it"},
    {"fairseq-fixed | star",
     "1:1: 'fairseq-fixed' is a MASK only by itself, 'fairseq_fixed' is expected here"},
    {"star | longformer-cls(4,1)",
     "1:8: 'longformer-cls' is a MASK only by itself, 'longformer_cls' is expected here"},
    {"longformer-cls(4,1) | star",
     "1:1: 'longformer-cls' is a MASK only by itself, 'longformer_cls' is expected here"},
    {"blockbert", "1:1: unknown word 'blockbert', 'blockbert-2' is near it"},
    {"blockbert-2(3)", "1:1: 'blockbert-2' is a MASK only by itself, without arguments"},
    {"star - dam-s-example",
     "1:8: 'dam-s-example' is a MASK only by itself, without arguments"},
    {"longformer-cls(4", "1:17: found the end, ',' or ')' is expected"},
    {"longformer-cls(4)", "1:1: longformer_cls: argument 'g' is missing"},
    {"longformer-cls(4, 17)",
     "1:19: longformer_cls: 17 is out of range, 0..16 is expected at length 16"},
    {"longformer-cls(4, 1, seed=2)", "1:27: longformer_cls has no parameter 'seed'"},
    {"sink(4)", "1:1: sink: argument 'w' is missing, a whole number is expected"},
    {"dist(4)", "1:1: unknown word 'dist', 'distance' is near it"},
    {"quux(4, 1)",
     "1:1: unknown word 'quux', a name that 'maskc gallery' lists or one of these is "
     "expected: dense, none, "
     "causal, diagonal, distance, window, stride, local, summary, rows, "
     "columns, global, blocks, random, random_keys, random_global, first_global, "
     "ring, file, neighborhood, documents, sink, logsparse, fairseq_fixed, star, strided, "
     "fixed, longformer, "
     "longformer_cls, bigbird"},
    {"Dense", "1:1: words are written in small letters, found 'D'"},
    {"dense + star", "1:7: unexpected '+', a word, a number or one of ( ) [ ] , : = | & - ~ is "
                     "expected"},
    {"dense \x01", "1:7: unexpected byte 0x01, plain text is expected"},
    {"window(3", "1:9: found the end, ',' or ')' is expected"},
    {"(window(3)", "1:11: found the end, ')' or an operator is expected"},
    {"window(3))", "1:10: found ')', an operator or the end of the line is expected"},
    {"window 3", "1:8: found '3', an operator or the end of the line is expected"},
    {"dense dense", "1:7: found 'dense', an operator or the end of the line is expected"},
    {"dense\nstar", "2:1: a second expression, 'head LIST:' is expected before it"},
    {"dense |", "1:8: found the end, a word, '(' or '~' is expected"},
    {"| dense", "1:1: found '|', a word, '(' or '~' is expected"},
    {"()", "1:2: found ')', a word, '(' or '~' is expected"},
    {"window", "1:1: window: argument 'w' is missing, a whole number is expected"},
    {"window()", "1:1: window: argument 'w' is missing, a whole number is expected"},
    {"window(,)", "1:8: found ',', a number, a range, a string or a list is expected"},
    {"window(x)", "1:8: found 'x', a number, a range, a string or a list is expected"},
    {"window(-)", "1:9: found ')', a number is expected"},
    {"window(2, 3)", "1:11: window: one argument too many"},
    {"window(2, w=3)", "1:13: window: 'w' is given twice"},
    {"window(size=3)", "1:13: window has no parameter 'size'"},
    {"window(1.5)", "1:8: window: a whole number is expected here"},
    {"window(1..5)", "1:8: window: a whole number is expected here"},
    {"window(\"a\")", "1:8: window: a whole number is expected here"},
    {"window(-1)", "1:8: window: -1 is out of range, at least 0 is expected"},
    {"summary(3000000000, 1)",
     "1:9: summary: 3000000000 is out of range, at least 1 is expected and less than 2^31"},
    {"window(99999999999999999999)",
     "1:8: 99999999999999999999 is too large, at most 2^63 - 1 is expected"},
    {"dense(1)", "1:7: dense: one argument too many"},
    {"diagonal()",
     "1:1: diagonal: argument 'o' is missing, a whole number or a range is expected"},
    {"diagonal(16)", "1:10: diagonal: 16 is out of range, -15..15 is expected at length 16"},
    {"diagonal(0, -16)",
     "1:13: diagonal: -16 is out of range, -15..15 is expected at length 16"},
    {"diagonal(3..1)", "1:10: diagonal: the range ends before it begins"},
    {"diagonal(1..2.5)", "1:13: a range ends in a whole number"},
    {"distance(1, 16)", "1:13: distance: 16 is out of range, 0..15 is expected at length 16"},
    {"distance(-1)", "1:10: distance: -1 is out of range, 0..15 is expected at length 16"},
    {"distance(d=1)", "1:12: distance has no parameter 'd'"},
    {"stride(0)", "1:8: stride: 0 is out of range, at least 1 is expected"},
    {"local(0)", "1:7: local: 0 is out of range, at least 1 is expected"},
    {"summary(4)", "1:1: summary: argument 'c' is missing, a whole number is expected"},
    {"summary(4, 5)", "1:12: summary: 5 is out of range, 0..4 is expected"},
    {"rows(16)", "1:6: rows: 16 is out of range, -16..15 is expected at length 16"},
    {"columns(-17)", "1:9: columns: -17 is out of range, -16..15 is expected at length 16"},
    {"global(-1..3)", "1:8: global: the range ends before it begins"},
    {"blocks(17)", "1:8: blocks: 17 is out of range, 1..16 is expected at length 16"},
    {"blocks(3, 1)", "1:11: blocks: one argument too many"},
    {"blocks(3, perm=[1,2])", "1:16: blocks: perm has 2 numbers, 3 are expected"},
    {"blocks(3, perm=[1,2,2])", "1:16: blocks: perm is no permutation of 1..3: 2 stands twice"},
    {"blocks(3, perm=[0,1,2])",
     "1:16: blocks: perm is no permutation of 1..3: 0 is out of range"},
    {"blocks(3, perm=3)", "1:16: blocks: a list [..] is expected here"},
    {"blocks(3, perm=[1,2.5])", "1:19: a list holds whole numbers"},
    {"blocks(3, perm=[1,2)", "1:20: found ')', ',' or ']' is expected"},
    {"blocks(3, shift=1, perm=[1,2,3])", "1:25: blocks: shift or perm is expected, not both"},
    {"random(1.5)", "1:8: random: 1.5 is out of range, a density of 0..1 is expected"},
    {"random(-0.1)", "1:8: random: -0.1 is out of range, a density of 0..1 is expected"},
    {"random(0.5, 3)", "1:13: random: one argument too many"},
    {"random(0.5, seed=-3)", "1:18: random: -3 is out of range, at least 0 is expected"},
    {"random_keys(17)",
     "1:13: random_keys: 17 is out of range, 0..16 is expected at length 16"},
    {"random_global(17)",
     "1:15: random_global: 17 is out of range, 0..16 is expected at length 16"},
    {"strided(0)", "1:9: strided: 0 is out of range, at least 1 is expected"},
    {"fixed(3, 9)", "1:10: fixed: 9 is out of range, 0..3 is expected"},
    {"fixed(3)", "1:1: fixed: argument 'c' is missing"},
    {"fixed(3, 1, 1)", "1:13: fixed: one argument too many"},
    {"fixed(3, l=1)", "1:12: fixed: 'l' is given twice"},
    {"fixed(3, 0.5)", "1:10: fixed: a whole number is expected here"},
    {"longformer(5, 17)",
     "1:15: longformer: 17 is out of range, 0..16 is expected at length 16"},
    {"longformer(5, 2, sed=1)", "1:22: longformer has no parameter 'sed'"},
    {"bigbird(1, 2)", "1:1: bigbird: argument 'r' is missing"},
    {"star(1)", "1:6: star: one argument too many"},
    {"file(3)", "1:6: file: a \"string\" is expected here"},
    {"file(\"../a.npy\")",
     "1:6: file: the name of a .npy file beside this text is expected, no path"},
    {"file(\"a.npz\")", "1:6: file: the name of a .npy file is expected; other files are a "
                        "MASK only by themselves"},
    {"file(\"no-such-file.npy\")", "1:6: file: no-such-file.npy: No such file or directory"},
    {"file(\"a", "1:6: the string does not end, '\"' is expected"},
    {"\xc3\xa9", "1:1: unexpected byte 0xc3, plain text is expected"},
    {"heads 3", "1:1: 'heads' is a statement of .mask files, an expression is expected here"},
    {"dense\nhead 0: star",
     "2:1: 'head' is a statement of .mask files, an expression is expected here"},
};

static void errors_point_at_the_column(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct text line = {0};
        text_add(&line, "MASK:%s", bad[k].error);
        refuse((struct mask_request){.name = bad[k].text, .n = 16}, line.bytes);
        text_finish(&line);
    }
}

static void a_caret_stands_under_the_column(void **unused)
{
    (void)unused;
    struct error e = {0};
    struct mask_request r = {MASK_REQUEST_DEFAULTS, .n = 16,
                             .name = "dense\n\t| # \xc3\xa9\n\t  (widow(\n 2))"};
    write_bytes(test_path("caret.mask"), "head\xc3\xa9", 6);
    assert_null(mask_load(&r, NULL, &e));
    assert_non_null(strstr(e.text, "MASK:2:2: "));
    assert_non_null(strstr(e.text, "\n\t| # \xc3\xa9\n\t^"));
    r.name = "(dense |\n\t  widow(2))";
    assert_null(mask_load(&r, NULL, &e));
    assert_string_equal(
        e.text, "MASK:2:4: unknown word 'widow', 'window' is near it\n\t  widow(2))\n\t  ^");
}

static void long_lines_are_cut_around_the_caret(void **unused)
{
    (void)unused;
    struct text t = {0};
    struct error e = {0};
    for (int k = 0; k < 500; k++)
        text_add(&t, "window(%d) | ", k);
    text_add(&t, "oops");
    struct mask_request r = {MASK_REQUEST_DEFAULTS, .n = 16, .name = t.bytes};
    assert_null(mask_load(&r, NULL, &e));
    assert_true(strlen(e.text) < 800);
    const char *caret = strrchr(e.text, '\n') + 1;
    const char *shown = e.text + strcspn(e.text, "\n") + 1;
    assert_memory_equal(shown + strlen(caret) - 1, "oops", 4);
    text_finish(&t);
}

static void brackets_nest_to_a_limit(void **unused)
{
    (void)unused;
    struct text t = {0};
    for (int k = 0; k < 100000; k++)
        text_add(&t, "%s", k % 2 ? "~" : "(");
    refuse((struct mask_request){.name = t.bytes, .n = 16},
           "MASK:1:101: brackets and '~' nest at most 100 deep");
    text_finish(&t);
    for (int k = 0; k < 100000; k++)
        text_add(&t, "none|");
    text_add(&t, "causal");
    struct mask *m = load_text(t.bytes, 16), *causal = load_text("causal", 16);
    assert_true(mask_equal(m, causal));
    mask_destroy(m);
    mask_destroy(causal);
    text_finish(&t);
}

/* A .mask file's text. */
static struct mask *load_file(const char *text, uint32_t n)
{
    const char *path = test_path("t.mask");
    write_bytes(path, text, strlen(text));
    return load((struct mask_request){.name = path, .n = n});
}

static void check_place(const struct mask *m, uint32_t layer, uint32_t head, const char *text)
{
    struct mask *expected = load_text(text, m->n);
    assert_true(pattern_equal(mask_pattern(m, layer, head), expected->pattern[0]));
    mask_destroy(expected);
}

static void later_lines_win(void **unused)
{
    (void)unused;
    struct mask *m = load_file("# a comment\r\n"
                               "length 12   # default\n"
                               "heads 4\n\nlayers 3\n"
                               "head 0-2, 3: window(\n   2) # open bracket\n"
                               "head 1,3-3: dense\n"
                               "layer 1: ring\n"
                               "layer 0, 1-1 head 2: causal\n"
                               "layer 2 head 0: none",
                               0);
    static const char *const expected[3][4] = {
        {"window(2)", "dense", "causal", "dense"},
        {"ring", "ring", "causal", "ring"},
        {"none", "dense", "window(2)", "dense"},
    };
    assert_true(m->n == 12 && m->heads == 4 && m->layers == 3 && m->n_patterns == 5);
    for (uint32_t l = 0; l < 3; l++)
        for (uint32_t h = 0; h < 4; h++)
            check_place(m, l, h, expected[l][h]);
    mask_destroy(m);
}

static void one_expression_serves_all_heads(void **unused)
{
    (void)unused;
    struct mask *m = load_file("length 5\nheads 3\nwindow(1)\n", 0);
    assert_true(m->heads == 3 && m->n_patterns == 1 && m->n == 5);
    mask_destroy(m);
    m = load_file("window(1)\n length 5\nheads 3\nhead 1: dense", 70);
    assert_true(m->heads == 3 && m->n_patterns == 2 && m->n == 70);
    check_place(m, 0, 0, "window(1)");
    check_place(m, 0, 1, "dense");
    mask_destroy(m);
}

/* A file's text, and the first line of its error after the path. */
static const struct {
    const char *text, *error;
} bad_files[] = {
    {"dense", ": the mask has no length of its own, -n N is expected"},
    {"length 8\nlength 9\ndense", ":2:1: 'length' stands twice, once is expected"},
    {"length 0\ndense", ":1:8: length 0 is out of range, 1..1048576 is expected"},
    {"length 1048577\ndense", ":1:8: length 1048577 is out of range, 1..1048576 is expected"},
    {"length x\ndense", ":1:8: found 'x', a whole number is expected"},
    {"length 2.5\ndense", ":1:8: a whole number is expected"},
    {"length 8 9\ndense", ":1:10: found '9', an operator or the end of the line is expected"},
    {"heads 4097\ndense", ":1:7: heads 4097 is out of range, 1..4096 is expected"},
    {"length 8\nhead 0: dense", ":2:1: a head line, 'heads N' is expected before it"},
    {"length 8\nlayer 0: dense", ":2:1: a layer line, 'layers N' is expected before it"},
    {"length 8\nheads 2\nhead 0-2: dense", ":3:8: head 2 is out of range, 0..1 is expected"},
    {"length 8\nheads 2\nhead 2: dense", ":3:6: head 2 is out of range, 0..1 is expected"},
    {"length 8\nheads 2\nhead 1-0: dense", ":3:8: the list ends before it begins: 1-0"},
    {"length 8\nheads 2\nhead 0 1: dense", ":3:8: found '1', ':' is expected"},
    {"length 8\nheads 2\nhead : dense", ":3:6: found ':', a whole number is expected"},
    {"length 8\nheads 2\nhead 0:\n",
     ":3:8: found the end of the line, a word, '(' or '~' is expected"},
    {"length 8\nlayers 2\nlayer 0,2: dense", ":3:9: layer 2 is out of range, 0..1 is expected"},
    {"length 8\nheads 5\nhead 1: dense",
     ":2:1: no line covers head 0, 2-4, a line for each head is expected"},
    {"length 8\nlayers 2\nlayer 1: dense",
     ":1:1: no line covers head 0 in layer 0, a line for each head is expected"},
    {"length 8\nheads 4096\nlayers 65\ndense",
     ":3:1: 65 layers of 4096 heads are too many, at most 262144 heads in all are expected"},
    {"length 8\nheads 2\n", ":1:1: the text is empty, an expression is expected"},
    {"length 8\nheads 2\nhead 0,1: dense\nhead 1: distance(8)",
     ":4:18: distance: 8 is out of range, 0..7 is expected at length 8"},
    {"length 8\nheads 2\nhead 0,1: distance(8)\nhead 0-1: dense",
     ":3:20: distance: 8 is out of range, 0..7 is expected at length 8"},
    {"length 8\ndense\ncausal",
     ":3:1: a second expression, 'head LIST:' is expected before it"},
};

static void files_are_refused_with_their_line(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof bad_files / sizeof *bad_files; k++) {
        const char *path = test_path("t.mask");
        struct text line = {0};
        write_bytes(path, bad_files[k].text, strlen(bad_files[k].text));
        text_add(&line, "%s%s", path, bad_files[k].error);
        refuse((struct mask_request){.name = path}, line.bytes);
        text_finish(&line);
    }
}

static void file_reads_what_lies_beside(void **unused)
{
    (void)unused;
    static const float values[2][9] = {{1, 2, 3, 4, 5, 6, 7, 8, 9},
                                       {9, 8, 7, 6, 5, 4, 3, 2, 1}};
    write_npy(test_path("v.npy"), "<f4", "(2, 3, 3)", false, values, sizeof values);
    struct mask *m = load_file("length 3\nfile(\"v.npy\", threshold=4.5, head=1)", 0);
    for (uint32_t k = 0; k < 9; k++)
        assert_int_equal(pattern_test(m->pattern[0], k / 3, k % 3), values[1][k] > 4.5);
    mask_destroy(m);
    m = load_file("length 2\nfile(\"v.npy\", head=0, threshold=-1) - diagonal(0)", 0);
    check_place(m, 0, 0, "~diagonal(0)");
    mask_destroy(m);
}

/* In the words of the language, not of the command line. */
static void file_asks_for_its_threshold(void **unused)
{
    (void)unused;
    static const float floats[4] = {0, 1, 2, 3};
    static const int32_t additive[4] = {0, 0, -10000, 0};
    static const char text[] = "length 2\nfile(\"w.npy\")";
    struct text npy = {0}, line = {0};
    text_add(&npy, "%s", test_path("w.npy"));
    write_npy(npy.bytes, "<f4", "(2, 2)", false, floats, sizeof floats);
    const char *path = test_path("w.mask");
    write_bytes(path, text, strlen(text));
    text_add(&line,
             "%s:2:6: file: %s: a float mask, threshold=T (active where > T) is expected", path,
             npy.bytes);
    refuse((struct mask_request){.name = path}, line.bytes);
    text_finish(&line);
    write_npy(npy.bytes, "<i4", "(2, 2)", false, additive, sizeof additive);
    text_add(
        &line,
        "%s:2:6: file: %s: a negative integer at head 0, query 1, key 0, 0 or 1 is expected; "
        "an additive mask (0 and -10000) needs threshold=, as in threshold=-1",
        path, npy.bytes);
    refuse((struct mask_request){.name = test_path("w.mask")}, line.bytes);
    text_finish(&line);
    text_finish(&npy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_point_at_the_column),
        cmocka_unit_test(a_caret_stands_under_the_column),
        cmocka_unit_test(long_lines_are_cut_around_the_caret),
        cmocka_unit_test(brackets_nest_to_a_limit),
        cmocka_unit_test(later_lines_win),
        cmocka_unit_test(one_expression_serves_all_heads),
        cmocka_unit_test(files_are_refused_with_their_line),
        cmocka_unit_test(file_reads_what_lies_beside),
        cmocka_unit_test(file_asks_for_its_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, test_folder_remove);
}
