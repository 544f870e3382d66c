/* SPDX-License-Identifier: Apache-2.0 */
/* Our reader of JSON against jansson: on texts that were chosen, and on thousands that were damaged, both
   take the same ones and find the same in them. */
#include "masks/base/datum.h"
#include "tests/masks/help.h"
#include "tests/support/locale/comma_locale.h"
#include <jansson.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {
    "{}",
    "[]",
    " [ ] ",
    "",
    " ",
    "1",
    "\"a\"",
    "null",
    "[null,true,false]",
    "[nul]",
    "[truex]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "{\"a\":1,}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":1,\"b\":2,\"c\":{\"a\":[{\"x\":0}]}}",
    "{\"a\" 1}",
    "{a:1}",
    "[0,-0,1,-1,10,9223372036854775807,-9223372036854775808]",
    "[9223372036854775808]",
    "[-9223372036854775809]",
    "[01]",
    "[-]",
    "[+1]",
    "[.5]",
    "[5.]",
    "[0.5,-0.25,1e3,1E-3,1.5e+2,2.2250738585072014e-308]",
    "[1e]",
    "[1e+]",
    "[1e400]",
    "[-1e400]",
    "[\"\",\"a\\n\\t\\\"\\\\\\/\\b\\f\\r\"]",
    "[\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"]",
    "[\"\\u0000\"]",
    "[\"\\ud83d\"]",
    "[\"\\ud83d\\u0041\"]",
    "[\"\\ude00\"]",
    "[\"\\u12g4\"]",
    "[\"\\x\"]",
    "[\"a\nb\"]",
    "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]",
    "[\"\xc3\"]",
    "[\"\xc0\x80\"]",
    "[\"\xed\xa0\x80\"]",
    "[\"\xf4\x90\x80\x80\"]",
    "[\"\xff\"]",
    "[\"open",
    "[[[[[[[[[[]]]]]]]]]]",
    "[]]",
    "{\"__metadata__\":{\"k\":\"{\\\"n\\\":1}\"},\"t\":{\"dtype\":\"U8\",\"shape\":[4,2],"
    "\"data_"
    "offsets\":[0,8]}}",
};

static bool equal(const struct datum *d, const json_t *j);

static bool equal_children(const struct datum *d, const json_t *j)
{
    size_t k = 0;
    for (const struct datum *c = d->first; c; c = c->next, k++) {
        const json_t *other =
            d->kind == DATUM_LIST ? json_array_get(j, k) : json_object_get(j, c->name);
        if (!other || !equal(c, other))
            return false;
    }
    return k == d->count &&
           k == (d->kind == DATUM_LIST ? json_array_size(j) : json_object_size(j));
}

static bool equal(const struct datum *d, const json_t *j)
{
    switch (d->kind) {
    case DATUM_NULL:
        return json_is_null(j);
    case DATUM_BOOL:
        return d->truth ? json_is_true(j) : json_is_false(j);
    case DATUM_INTEGER:
        return json_is_integer(j) && json_integer_value(j) == d->integer;
    case DATUM_REAL:
        return json_is_real(j) && !(json_real_value(j) < d->real) &&
               !(json_real_value(j) > d->real);
    case DATUM_TEXT:
        return json_is_string(j) && !strcmp(json_string_value(j), d->text);
    case DATUM_LIST:
        return json_is_array(j) && equal_children(d, j);
    default:
        return json_is_object(j) && equal_children(d, j);
    }
}

static void compare(const char *text, size_t size)
{
    char why[DATUM_WHY_BYTES];
    json_error_t error;
    struct datum *d = datum_parse(text, size, why);
    json_t *j = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!d != !j)
        fail_msg("'%.*s': ours '%s', jansson '%s'", (int)size, text, d ? "fine" : why,
                 j ? "fine" : error.text);
    if (d && !equal(d, j))
        fail_msg("'%.*s': different content", (int)size, text);
    if (!d && !why[0])
        fail_msg("'%.*s': no reason", (int)size, text);
    datum_destroy(d);
    json_decref(j);
}

static void chosen_texts_read_as_jansson_reads_them(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        compare(texts[k], strlen(texts[k]));
}

/* A byte of some text: punctuation for the most part, so that damage is not found at once. */
static char any_byte(uint32_t *seed)
{
    static const char likely[] = "{}[]\",:\\u0123eE.-+tfn \x80\xc3\xa9";
    *seed = *seed * 1664525u + 1013904223u;
    uint32_t r = *seed >> 8;
    return r % 8 ? likely[r / 8 % (sizeof likely - 1)] : (char)(r / 8);
}

static void damaged_texts_read_as_jansson_reads_them(void **unused)
{
    (void)unused;
    uint32_t seed = 1;
    for (int turn = 0; turn < 400; turn++)
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            size_t size = strlen(texts[k]);
            char *copy =
                malloc(size + 1); /* no byte beyond, so that sanitizers see a read there */
            memcpy(copy, texts[k], size);
            for (int edits = turn % 3; size && edits >= 0; edits--) {
                char byte = any_byte(&seed);
                copy[(seed >> 4) % size] = byte;
            }
            compare(copy, turn % 5 ? size : size - size / 4);
            free(copy);
        }
}

static void depth_and_numbers_have_a_limit(void **unused)
{
    (void)unused;
    char why[DATUM_WHY_BYTES], deep[200];
    memset(deep, '[', sizeof deep);
    assert_null(datum_parse(deep, sizeof deep, why));
    assert_non_null(strstr(why, "depth"));
    memset(deep, '1', sizeof deep);
    deep[0] = '[';
    assert_null(datum_parse(deep, sizeof deep, why));
}

static void the_locale_does_not_matter(void **unused)
{
    (void)unused;
    char why[DATUM_WHY_BYTES];
    if (!comma_locale())
        skip();
    struct text line = {0};
    struct datum *d = datum_parse("[0.5]", 5, why);
    text_add(&line, "%g", 0.5);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text_get(&line), "0.5");
    text_finish(&line);
    assert_non_null(d);
    assert_true(datum_at(d, 0)->real > 0.4);
    datum_destroy(d);
}

static void what_is_not_there_is_null(void **unused)
{
    (void)unused;
    char why[DATUM_WHY_BYTES];
    struct datum *d = datum_parse("{\"a\":[7,\"x\"]}", 13, why);
    const struct datum *list = datum_member(d, "a");
    assert_int_equal(datum_count(list), 2);
    assert_int_equal(datum_integer(datum_at(list, 0)), 7);
    assert_string_equal(datum_text(datum_at(list, 1)), "x");
    assert_null(datum_at(list, 2));
    assert_null(datum_at(d, 0));
    assert_null(datum_member(list, "a"));
    assert_null(datum_member(NULL, "a"));
    assert_null(datum_text(datum_at(list, 0)));
    assert_int_equal(datum_integer(NULL), 0);
    assert_int_equal(datum_count(NULL), 0);
    datum_destroy(d);
    datum_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_texts_read_as_jansson_reads_them),
        cmocka_unit_test(damaged_texts_read_as_jansson_reads_them),
        cmocka_unit_test(depth_and_numbers_have_a_limit),
        cmocka_unit_test(the_locale_does_not_matter),
        cmocka_unit_test(what_is_not_there_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
