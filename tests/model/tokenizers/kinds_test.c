/* SPDX-License-Identifier: Apache-2.0 */
/* BPE and unigram from tokenizer.json and RoBERTa's older files: tokens, offsets and the places of parts and special tokens
   as the Rust library tokenizers 0.23.3 has them, and what is refused, by name. stored_test.py has the long texts. */
#include "masks/base/text.h"
#include "model/tokenizer/tokenizer.h"
#include "tests/model/model_files.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POST                                                                                  \
    "\"post_processor\": {\"type\": \"RobertaProcessing\", \"sep\": [\"</s>\", 2], \"cls\": " \
    "[\"<s>\", 0], \"trim_offsets\": true, \"add_prefix_space\": false}"
#define VOCABULARY                                                                         \
    "{\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2, \"<unk>\": 3, \"a\": 4, \"b\": 5, \"\xc4\xa0" \
    "\": 6, \"ab\": 7, \"\xc4\xa0"                                                         \
    "ab\": 8, \"<mask>\": 9}"
#define BPE(more)                                           \
    "\"model\": {\"type\": \"BPE\", \"vocab\": " VOCABULARY \
    ", \"merges\": [\"a b\", [\"\xc4\xa0\", \"ab\"]]" more "}"
#define BYTES "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, "
#define UNIGRAM                                                                                \
    "\"model\": {\"type\": \"Unigram\", \"unk_id\": 1, \"vocab\": [[\"<s>\", 0], [\"<unk>\", " \
    "0], [\"</s>\", 0]]}"
#define TEMPLATE(single, pair)                                                            \
    "\"post_processor\": {\"type\": \"TemplateProcessing\", \"special_tokens\": {\"x\": " \
    "{\"ids\": [0]}}, \"single\": [" single "], \"pair\": [" pair "]}, "
#define X  "{\"SpecialToken\": {\"id\": \"x\", \"type_id\": 0}}"
#define X1 "{\"SpecialToken\": {\"id\": \"x\", \"type_id\": 1}}"
#define A  "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"
#define B  "{\"Sequence\": {\"id\": \"B\", \"type_id\": 0}}"

static const struct {
    const char *json, *error; /* null: fine */
} files[] = {
    {"{" BYTES POST ", " BPE("") "}", NULL},
    {"{" POST ", " UNIGRAM "}", NULL},
    {"{" BYTES BPE("") "}", "no post_processor with special tokens, RobertaProcessing or "
                            "TemplateProcessing is expected"},
    {"{\"normalizer\": {\"type\": \"Nmt\"}, " POST ", " BPE("") "}",
     "normalizer 'Nmt' is not supported"},
    {"{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, "
     "{\"type\": "
     "\"StripAccents\"}]}, " POST ", " BPE("") "}",
     "normalizer 'StripAccents' is not supported"},
    {"{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"a|b\"}, \"content\": "
     "\"\"}, " POST ", " BPE("") "}",
     "normalizer Replace: the regular expression 'a|b' is not supported"},
    {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"!!!!\"}, " POST
     ", " UNIGRAM "}",
     "normalizer Precompiled: precompiled_charsmap: base64 is expected"},
    {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": "
     "\"CAAAAAAA\"}, " POST ", " UNIGRAM "}",
     "normalizer Precompiled: precompiled_charsmap: its sizes are damaged"},
    {"{\"pre_tokenizer\": {\"type\": \"Digits\"}, " POST ", " BPE("") "}",
     "pre_tokenizer 'Digits' is not supported"},
    {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
     "\"ByteLevel\"}, "
     "{\"type\": \"Whitespace\"}]}, " POST ", " BPE("") "}",
     "pre_tokenizer Whitespace: nothing may follow ByteLevel"},
    {"{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\", "
     "\"add_prefix_space\": false, "
     "\"prepend_scheme\": \"first\"}, " POST ", " UNIGRAM "}",
     "pre_tokenizer Metaspace: prepend_scheme 'first': always, first or never is expected, "
     "never "
     "with add_prefix_space false"},
    {"{" POST ", " BPE(", \"dropout\": 0.1") "}", "model BPE: dropout is not supported"},
    {"{" POST ", " BPE(", \"end_of_word_suffix\": \"</w>\"") "}",
     "model BPE: end_of_word_suffix '</w>' is not supported"},
    {"{" POST ", " BPE(", \"unk_token\": \"[UNK]\"") "}",
     "model BPE: unk_token '[UNK]' is not in the vocabulary"},
    {"{" POST ", \"model\": {\"type\": \"BPE\", \"vocab\": " VOCABULARY
     ", \"merges\": [\"a c\"]}}",
     "model BPE: merge 0: 'c' is not in the vocabulary"},
    {"{" POST ", \"model\": {\"type\": \"BPE\", \"vocab\": " VOCABULARY
     ", \"merges\": [\"a\"]}}",
     "model BPE: merge 0: two tokens are expected"},
    {"{" POST ", \"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0]]}}",
     "model Unigram: unk_id: a token of vocab is expected"},
    {"{" POST ", \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"a\"]]}}",
     "model Unigram: vocab: entry 0: [TOKEN, SCORE] is expected"},
    {"{" POST ", \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"a\", 0]]}}",
     "post_processor: the token 2 is not in the vocabulary"},
    {"{" TEMPLATE(X "," A "," X, X "," A "," X "," X "," B "," X) BPE("") "}", NULL},
    {"{" TEMPLATE(X "," A "," X, X "," B "," X "," A "," X) BPE("") "}",
     "post_processor TemplateProcessing: pair: A once, then B once is expected"},
    {"{" TEMPLATE(X "," A "," X, X1 "," A "," X "," B "," X) BPE("") "}",
     "post_processor TemplateProcessing: pair: type_id: no 0 is expected after a 1"},
    {"{" TEMPLATE(A "," X, "") BPE("") "}", "post_processor TemplateProcessing: single: a "
                                            "special token before and behind the texts is "
                                            "expected"},
    {"{" TEMPLATE(X "," X "," X "," A "," X, "") BPE("") "}",
     "post_processor TemplateProcessing: single: more than 2 special tokens in a row"},
    {"{\"post_processor\": {\"type\": \"Other\"}, " BPE("") "}",
     "post_processor 'Other' is not supported"},
};

static void parts_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        struct error e = {0};
        struct tokenizer *t =
            tokenizer_parse(files[k].json, strlen(files[k].json), TOKENIZER_HF, &e);
        if (files[k].error)
            assert_string_equal(e.text, files[k].error);
        else if (!t)
            fail_msg("%s", e.text);
        assert_int_equal(t == NULL, files[k].error != NULL);
        tokenizer_destroy(t);
    }
}

static void google_is_wordpiece_only(void **state)
{
    (void)state;
    struct error e = {0};
    const char json[] = "{" POST ", " UNIGRAM "}";
    assert_null(tokenizer_parse(json, sizeof json - 1, TOKENIZER_GOOGLE, &e));
    assert_string_equal(
        e.text, "a Unigram vocabulary has no Google form: leave --tokenizer-compat out");
}

/* Ids and offsets. */
static void must_encode(const struct tokenizer *t, struct text_part a, struct text_part b,
                        uint32_t most, const char *expected)
{
    struct tokens k = {0};
    struct text out = {0};
    tokenizer_encode(t, a, b, most, &k);
    for (uint32_t i = 0; i < k.count; i++)
        text_add(&out, "%s%u:%u-%u", i ? " " : "", k.token_ids[i], k.span[i].begin,
                 k.span[i].end);
    text_add(&out, ", %u of type 0, B at %u", k.first_part, k.second);
    assert_string_equal(text_get(&out), expected);
    text_finish(&out);
    tokens_finish(&k);
}

static struct tokenizer *load(const char *config)
{
    struct error e = {0};
    model_write_or_remove("vocab.json", VOCABULARY);
    model_write_or_remove("merges.txt", "#version: 0.2\na b\n\xc4\xa0 ab\n");
    model_write_or_remove("tokenizer_config.json", config);
    struct tokenizer *t = tokenizer_load(model_folder, TOKENIZER_HF, &e);
    if (!t)
        fail_msg("%s", e.text);
    return t;
}

#define ROBERTA                                                                             \
    "\"tokenizer_class\": \"RobertaTokenizer\", \"mask_token\": {\"content\": \"<mask>\", " \
    "\"lstrip\": true}"

static void older_files_of_roberta_are_read(void **state)
{
    (void)state;
    const struct text_part text = {"ab ab  <mask>b", 14}, b = {"b", 1}, none = {0};
    struct tokenizer *t = load("{" ROBERTA "}");
    assert_string_equal(tokenizer_kind_name(t), "BPE");
    assert_int_equal(t->mask, 9);
    assert_int_equal(t->pad, 1);
    assert_int_equal(t->unknown, 3);
    must_encode(t, text, none, 0,
                "0:0-0 7:0-2 8:3-5 9:7-13 5:13-14 2:0-0, 6 of type 0, B at 5");
    must_encode(
        t, text, b, 0,
        "0:0-0 7:0-2 8:3-5 9:7-13 5:13-14 2:0-0 2:0-0 5:0-1 2:0-0, 9 of type 0, B at 7");
    must_encode(t, text, b, 6, "0:0-0 7:0-2 2:0-0 2:0-0 5:0-1 2:0-0, 6 of type 0, B at 4");
    tokenizer_destroy(t);
    t = load("{" ROBERTA ", \"add_prefix_space\": true, \"trim_offsets\": false}");
    must_encode(t, text, none, 0,
                "0:0-0 8:0-2 8:2-5 9:5-13 6:13-14 5:13-14 2:0-0, 7 of type 0, B at 6");
    tokenizer_destroy(t);
}

/* Bytes of GPT-2's alphabet, blanks of both kinds, a part of a character, and what stays as it is. */
static void pieces_are_readable(void **state)
{
    static const char bytes[] =
        "{" BYTES POST ", \"model\": {\"type\": \"BPE\", \"vocab\": {\"<s>\": 0, \"\xc4\xa0"
        "ad\": 1, \"</s>\": 2, \"\xc3\x83\xc2\xa9\": 3, \"\xc3\x83\": 4, \"\xc4\x8a\": 5, "
        "\"\xe2\x96\x81\": 6}, \"merges\": []}}";
    static const char blanks[] =
        "{" POST
        ", \"model\": {\"type\": \"Unigram\", \"unk_id\": 1, \"vocab\": [[\"<s>\", 0], "
        "[\"<unk>\", 0], [\"</s>\", 0], [\"\xe2\x96\x81"
        "ad\", -1], [\"ad\", -1], [\"\xe2\x96\x81\", -2]]}}";
    static const struct {
        const char *json;
        uint32_t token_id;
        const char *text;
    } pieces[] = {
        {bytes, 0, "<s>"},      {bytes, 1, " ad"},
        {bytes, 3, "\xc3\xa9"}, {bytes, 4, "\xef\xbf\xbd"},
        {bytes, 5, "\n"},       {bytes, 6, " "},
        {bytes, 99, ""},        {blanks, 1, "<unk>"},
        {blanks, 3, " ad"},     {blanks, 4, "ad"},
        {blanks, 5, " "},
    };
    (void)state;
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
        struct error e = {0};
        struct text text = {0};
        struct tokenizer *t =
            tokenizer_parse(pieces[k].json, strlen(pieces[k].json), TOKENIZER_HF, &e);
        if (!t)
            fail_msg("%s", e.text);
        tokenizer_piece(t, pieces[k].token_id, &text);
        assert_string_equal(text_get(&text), pieces[k].text);
        text_finish(&text);
        tokenizer_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_refused_by_name),
        cmocka_unit_test(google_is_wordpiece_only),
        cmocka_unit_test(older_files_of_roberta_are_read),
        cmocka_unit_test(pieces_are_readable),
    };
    return cmocka_run_group_tests_name("kinds of tokenizers", tests, model_begin, model_end);
}
