/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece by cases: every place where HuggingFace's fast tokenizer and Google's disagree, by name;
   offsets, cutting, special tokens, files that are refused. What is expected was printed by the Rust
   library tokenizers 0.23.3 and by the rules of tokenization.py; tokenizer_parity.py asks them about
   every code point. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/train/train.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char vocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\nun\n##aff\n##able\n,\n!"
    "\ncafe\ncaf\xc3\xa9\na\nb\n"
    "##b\n\xe6\x97\xa5\n\xf0\xab\xa0\xa0\n##\xf0\xab\xa0\xa0\n\xcf\x83\n\xcf\x82\n##\xcf\x83\n#"
    "#\xcf\x82\n"
    "\xce\xbf\n##\xce\xbf\ni\n##\xcc\x87\n##a\nab\n##i\n[\n]\nmask\n\xee\x80\x80\n##"
    "\xee\x80\x80\n\n";

static struct tokenizer *make(enum tokenizer_compat compat, bool cased)
{
    struct error e = {0};
    struct tokenizer *t = tokenizer_new(vocabulary, sizeof vocabulary - 1, cased, compat, &e);
    if (!t)
        fail_msg("%s", e.text);
    return t;
}

static char *encode(const struct tokenizer *t, const char *text, size_t size, bool offsets)
{
    struct tokens k = {0};
    struct text out = {0};
    tokenizer_encode(t, (struct text_part){text, (uint32_t)size}, (struct text_part){0}, 0, &k);
    for (uint32_t i = 1; i + 1 < k.count; i++) {
        text_add(&out, "%s%s", i > 1 ? " " : "", t->vocabulary.token[k.token_ids[i]]);
        if (offsets)
            text_add(&out, ":%u-%u", k.span[i].begin, k.span[i].end);
    }
    tokens_finish(&k);
    text_append(&out, "", 0);
    return out.bytes ? text_take(&out) : memory_text("");
}

static const struct {
    const char *name, *text, *hf, *google;
} differences[] = {
    {"plain", "Hello, WORLD! unaffable", "hello , world ! un ##aff ##able",
     "hello , world ! un ##aff ##able"},
    {"accents", "Caf\xc3\xa9 cafe\xcc\x81", "cafe cafe", "cafe cafe"},
    {"special tokens in the text", "a [MASK]b", "a [MASK] b", "a [ mask ] b"},
    {"private use", "a\xee\x80\x80", "a", "a ##\xee\x80\x80"},
    {"ideograph U+2B820", "a\xf0\xab\xa0\xa0", "a ##\xf0\xab\xa0\xa0", "a \xf0\xab\xa0\xa0"},
    {"ideograph",
     "a\xe6\x97\xa5"
     "b",
     "a \xe6\x97\xa5 b", "a \xe6\x97\xa5 b"},
    {"final sigma", "\xce\x9f\xce\xa3", "\xce\xbf ##\xcf\x83", "\xce\xbf ##\xcf\x82"},
    {"sigma within", "\xce\x9f\xce\xa3\xce\x9f", "\xce\xbf ##\xcf\x83 ##\xce\xbf",
     "\xce\xbf ##\xcf\x83 ##\xce\xbf"},
    {"dotted capital I", "\xc4\xb0", "i", "i"},
    {"line separator",
     "a\xe2\x80\xa8"
     "b",
     "a b", "a b"},
    {"controls",
     "a\x01\xe2\x80\x8b"
     "b",
     "ab", "ab"},
    {"broken UTF-8",
     "a\xff\xe6\x97"
     "b",
     "ab", "ab"},
    {"surrogate",
     "a\xed\xa0\x80"
     "b",
     "ab", "ab"},
    {"unknown part", "hellox world", "[UNK] world", "[UNK] world"},
    {"nothing", "", "", ""},
    {"blanks", " \r\v\xc2\xa0 ", "", ""},
};

static void compat_differs_as_named(void **state)
{
    (void)state;
    struct tokenizer *hf = make(TOKENIZER_HF, false), *google = make(TOKENIZER_GOOGLE, false);
    for (size_t k = 0; k < sizeof differences / sizeof *differences; k++) {
        const char *text = differences[k].text;
        char *a = encode(hf, text, strlen(text), false);
        char *b = encode(google, text, strlen(text), false);
        if (strcmp(a, differences[k].hf) || strcmp(b, differences[k].google))
            fail_msg("%s: '%s' and '%s', expected '%s' and '%s'", differences[k].name, a, b,
                     differences[k].hf, differences[k].google);
        free(a);
        free(b);
    }
    tokenizer_destroy(hf);
    tokenizer_destroy(google);
}

/* The longest word that is not unknown: 100 code points, Google 200. */
static void long_words_are_unknown(void **state)
{
    (void)state;
    static const struct {
        enum tokenizer_compat compat;
        uint32_t most;
    } rules[] = {{TOKENIZER_HF, 100}, {TOKENIZER_GOOGLE, 200}};
    for (int k = 0; k < 2; k++) {
        struct tokenizer *t = make(rules[k].compat, false);
        char *text = memory_new(rules[k].most + 2, 1);
        memset(text, 'a', rules[k].most);
        char *fits = encode(t, text, rules[k].most, true);
        text[rules[k].most] = 'a';
        char *over = encode(t, text, rules[k].most + 1, true);
        assert_memory_equal(fits, "a:0-1 ##a:1-2", 13);
        assert_string_equal(over, k ? "[UNK]:0-201" : "[UNK]:0-101");
        free(fits);
        free(over);
        free(text);
        tokenizer_destroy(t);
    }
}

static void cased_keeps_accents(void **state)
{
    (void)state;
    struct tokenizer *t = make(TOKENIZER_HF, true);
    char *a = encode(t, "caf\xc3\xa9 Hello", 11, false);
    assert_string_equal(a, "caf\xc3\xa9 [UNK]");
    free(a);
    tokenizer_destroy(t);
}

/* Bytes of the source: a composed letter whole, marks with the letter that follows the order. */
static void offsets_count_source_bytes(void **state)
{
    (void)state;
    struct tokenizer *t = make(TOKENIZER_HF, false);
    const char *text = "  Caf\xc3\xa9, \xe6\x97\xa5\xff"
                       "b[MASK] cafe\xcc\x81";
    char *a = encode(t, text, strlen(text), true);
    assert_string_equal(a, "cafe:2-7 ,:7-8 \xe6\x97\xa5:9-12 b:13-14 [MASK]:14-20 cafe:21-25");
    free(a);
    tokenizer_destroy(t);
}

static const struct {
    uint32_t a, b, limit, keep_a, keep_b, google_a, google_b;
} cuts[] = {
    {5, 5, 8, 2, 3, 3, 2}, {9, 3, 9, 3, 3, 3, 3}, {9, 2, 9, 4, 2, 4, 2},
    {2, 9, 9, 2, 4, 2, 4}, {3, 9, 8, 2, 3, 3, 2}, {9, 3, 8, 3, 2, 3, 2},
    {5, 5, 3, 0, 0, 0, 0}, {2, 2, 7, 2, 2, 2, 2}, {0, 5, 6, 0, 3, 0, 3},
};

static void cutting_takes_from_the_longer(void **state)
{
    (void)state;
    const char text[] = "a a a a a a a a a a";
    for (int google = 0; google < 2; google++) {
        struct tokenizer *t = make(google ? TOKENIZER_GOOGLE : TOKENIZER_HF, false);
        struct tokens k = {0};
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            uint32_t a = google ? cuts[c].google_a : cuts[c].keep_a;
            uint32_t b = google ? cuts[c].google_b : cuts[c].keep_b;
            tokenizer_encode(t, (struct text_part){text, 2 * cuts[c].a},
                             (struct text_part){text, 2 * cuts[c].b}, cuts[c].limit, &k);
            assert_int_equal(k.count, a + b + 3);
            assert_int_equal(k.first_part, a + 2);
            assert_int_equal(k.token_ids[0], t->begin);
            assert_int_equal(k.token_ids[a + 1], t->end);
            assert_int_equal(k.token_ids[a + b + 2], t->end);
            assert_int_equal(k.cut, a + b < cuts[c].a + cuts[c].b);
            for (uint32_t i = 0; i < b; i++)
                assert_int_equal(k.span[a + 2 + i].begin, 2 * i);
        }
        tokens_finish(&k);
        tokenizer_destroy(t);
    }
}

#define MODEL(vocab) "\"model\": {\"type\": \"WordPiece\", \"vocab\": {" vocab "}}"
#define NORMAL       "\"normalizer\": {\"type\": \"BertNormalizer\"}, "
#define PRE          "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "
#define FOUR         "\"[UNK]\": 0, \"[CLS]\": 1, \"[SEP]\": 2, \"a\": 3"

static const struct {
    const char *json, *error; /* null: fine */
} files[] = {
    {"{" NORMAL PRE MODEL(FOUR) "}", NULL},
    {"[]", "tokenizer.json: a JSON object is expected"},
    {"{" PRE MODEL(FOUR) "}", "normalizer '' is not supported, BertNormalizer is expected"},
    {"{\"normalizer\": {\"type\": \"NFKC\"}, " PRE MODEL(FOUR) "}",
     "normalizer 'NFKC' is not supported, BertNormalizer is expected"},
    {"{" NORMAL "\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, " MODEL(FOUR) "}",
     "pre_tokenizer 'ByteLevel' is not supported, BertPreTokenizer is expected"},
    {"{" NORMAL PRE "\"model\": {\"type\": \"WordLevel\"}}",
     "model 'WordLevel' is not supported, WordPiece is expected"},
    {"{" NORMAL PRE "\"model\": {}}", "model.vocab: an object is expected"},
    {"{" NORMAL PRE MODEL("\"a\": -1") "}", "model.vocab: 'a' has no number"},
    {"{" NORMAL PRE MODEL("\"a\": 1, \"b\": 1") "}",
     "model.vocab: two tokens with the number 1"},
    {"{" NORMAL PRE MODEL("\"a\": 99999999") "}",
     "model.vocab: token number 99999999: at most 4194304 are expected"},
    {"{" NORMAL PRE MODEL("\"[UNK]\": 0, \"[CLS]\": 1") "}",
     "the token [SEP] is not in the vocabulary"},
    {"{" NORMAL PRE
     "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": []}, " MODEL(FOUR) "}",
     "post_processor TemplateProcessing: single: A, or A and B, is expected"},
};

static void files_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        struct error e = {0};
        struct tokenizer *t =
            tokenizer_parse(files[k].json, strlen(files[k].json), TOKENIZER_HF, &e);
        if (files[k].error)
            assert_string_equal(e.text, files[k].error);
        assert_int_equal(t == NULL, files[k].error != NULL);
        tokenizer_destroy(t);
    }
}

static void special_tokens_eat_blanks(void **state)
{
    (void)state;
    const char json[] =
        "{" NORMAL PRE "\"added_tokens\": [{\"id\": 4, \"content\": \"[X]\", \"lstrip\": true, "
        "\"rstrip\": true}], " MODEL(FOUR) "}";
    struct error e = {0};
    struct tokenizer *t = tokenizer_parse(json, sizeof json - 1, TOKENIZER_HF, &e);
    char *a = encode(t, "a \xe3\x80\x80[X]\t a[X]", 15, true);
    assert_string_equal(a, "a:0-1 [X]:1-10 a:10-11 [X]:11-14");
    free(a);
    tokenizer_destroy(t);
}

/* As BertWordPieceTokenizer of the library trains it, but that ties and the order are our own. */
static void training_joins_the_most_frequent(void **state)
{
    (void)state;
    const char text[] = "Low low low lower lower newest newest newest newest widest widest";
    struct vocabulary_trainer_options o = {
        .size = 25, .min_frequency = 2, .alphabet_limit = 1000};
    struct vocabulary_trainer *t = vocabulary_trainer_new(&o);
    struct text out = {0};
    struct error e = {0};
    vocabulary_trainer_add(t, text, sizeof text - 1);
    assert_int_equal(vocabulary_trainer_finish(t, &out, &e), 0);
    assert_string_equal(
        text_get(&out),
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nd\ne\ni\nl\nn\no\nr\ns\nt\nw\n##d\n"
        "##e\n##i\n##o\n##r\n##s\n##t\n##w\n##es\n##est\n");
    text_finish(&out);
    vocabulary_trainer_destroy(t);
    o.size = 22;
    t = vocabulary_trainer_new(&o);
    vocabulary_trainer_add(t, text, sizeof text - 1);
    assert_int_equal(vocabulary_trainer_finish(t, &out, &e), -1);
    assert_string_equal(
        e.text, "22 tokens do not hold the text's characters: at least 23 are expected");
    vocabulary_trainer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compat_differs_as_named),
        cmocka_unit_test(long_words_are_unknown),
        cmocka_unit_test(cased_keeps_accents),
        cmocka_unit_test(offsets_count_source_bytes),
        cmocka_unit_test(cutting_takes_from_the_longer),
        cmocka_unit_test(files_are_refused_by_name),
        cmocka_unit_test(special_tokens_eat_blanks),
        cmocka_unit_test(training_joins_the_most_frequent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
