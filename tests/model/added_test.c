/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens: where they are found in a text, the files that list them, and what is refused. The expected ids and
   offsets were printed by the Rust library tokenizers 0.23.3, those of folders by transformers 5.24. */
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

/* Token ids and bytes between [CLS] and [SEP]. */
static void must_encode(const char *name, const struct tokenizer *t, const char *text,
                        const char *expected)
{
    struct tokens k = {0};
    struct text out = {0};
    tokenizer_encode(t, (struct text_part){text, (uint32_t)strlen(text)}, (struct text_part){0},
                     0, &k);
    for (uint32_t i = 1; i + 1 < k.count; i++)
        text_add(&out, "%s%u:%u-%u", i > 1 ? " " : "", k.token_ids[i], k.span[i].begin,
                 k.span[i].end);
    if (strcmp(text_get(&out), expected) != 0)
        fail_msg("%s: '%s', '%s' is expected", name, text_get(&out), expected);
    text_finish(&out);
    tokens_finish(&k);
}

#define PIPELINE                                                                             \
    "\"normalizer\": {\"type\": \"BertNormalizer\"}, \"pre_tokenizer\": {\"type\": "         \
    "\"BertPreTokenizer\"}, \"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, " \
    "\"[CLS]\": 1, \"[SEP]\": 2, \"a\": 3, \"b\": 4, \"f\": 5, \"o\": 6, \"foo\": 7, "       \
    "\"the\": 8, \"##a\": 9, \"##b\": 10, \"##o\": 11, \"##x\": 12, \"\xe6\x97\xa5\": 13, "  \
    "\"-\": 14, \"_\": 15}}"

static struct tokenizer *parse(const char *added, struct error *e)
{
    struct text json = {0};
    text_add(&json, "{\"added_tokens\": [%s], %s}", added, PIPELINE);
    struct tokenizer *t = tokenizer_parse(text_get(&json), json.length, TOKENIZER_HF, e);
    text_finish(&json);
    return t;
}

/* clang-format off */
static const struct {
    const char *name, *added, *text, *expected;
} places[] = {
    {"verbatim, and no piece",
     "{\"id\": 16, \"content\": \"fob\"}",
     "fob FOB afobx",
     "16:0-3 5:4-5 11:5-6 10:6-7 3:8-9 16:9-12 0:12-13"},
    {"a token of the vocabulary is found too",
     "{\"id\": 7, \"content\": \"foo\"}",
     "foo FOO afoox",
     "7:0-3 7:4-7 3:8-9 7:9-12 0:12-13"},
    {"normalised",
     "{\"id\": 16, \"content\": \"F\xc3\xb3""b\", \"normalized\": true}",
     "fob F\xc3\x93""B afobx f\xcc\x81o\xcc\xa3""b",
     "16:0-3 16:4-8 3:9-10 16:10-13 0:13-14 16:15-22"},
    {"normalised ideograph",
     "{\"id\": 13, \"content\": \"\xe6\x97\xa5\", \"normalized\": true}",
     "a\xe6\x97\xa5""b \xe6\x97\xa5 \xe6\x97\xa5\xe6\x97\xa5",
     "3:0-1 13:1-4 4:4-5 13:6-9 13:10-13 13:13-16"},
    {"normalised with a blank",
     "{\"id\": 16, \"content\": \"a B\", \"normalized\": true}",
     "a b A\xc2\xa0""B a  b xa b",
     "16:0-3 16:4-8 3:9-10 4:12-13 0:14-15 16:15-18"},
    {"single word",
     "{\"id\": 16, \"content\": \"fo\", \"single_word\": true}",
     "fo foa a_fo fo- -fo\xcc\x81 fo\xe2\x92\xb6 fo\xe2\x80\x8d \xe6\x97\xa5""fo fo\xe1\xb2\x89 fo",
     "16:0-2 5:3-4 11:4-5 9:5-6 3:7-8 15:8-9 5:9-10 11:10-11 16:12-14 14:14-15 14:16-17 5:17-18 11:18-19 0:22-27 5:28-29 11:29-30 13:34-37 5:37-38 11:38-39 0:40-45 16:46-48"},
    {"single word, normalised",
     "{\"id\": 16, \"content\": \"Fo\", \"single_word\": true, \"normalized\": true}",
     "fo fo\xcc\x81 foa FO\x01 -fo",
     "16:0-2 16:3-5 5:8-9 11:9-10 9:10-11 16:12-14 14:16-17 16:17-19"},
    {"blanks",
     "{\"id\": 16, \"content\": \"fo\", \"lstrip\": true, \"rstrip\": true}",
     "a  fo \xe3\x80\x80\xe2\x80\xa8 b fofo fo ",
     "3:0-1 16:1-13 4:13-14 16:14-17 16:17-20 16:20-23"},
    {"left blanks",
     "{\"id\": 16, \"content\": \"fo\", \"lstrip\": true}",
     "a  fo  b",
     "3:0-1 16:1-5 4:7-8"},
    {"right blanks, normalised",
     "{\"id\": 16, \"content\": \"Fo\", \"rstrip\": true, \"normalized\": true}",
     "a  fo \xc2\xa0 b",
     "3:0-1 16:3-9 4:9-10"},
    {"leftmost, then longest",
     "{\"id\": 16, \"content\": \"ab\"},{\"id\": 17, \"content\": \"bfo\"},{\"id\": 18, \"content\": \"abf\"}",
     "abfo abfo ab bfo xbfo",
     "18:0-3 6:3-4 18:5-8 6:8-9 16:10-12 17:13-16 0:17-18 17:18-21"},
    {"a refused match hides those inside",
     "{\"id\": 16, \"content\": \"abf\", \"single_word\": true},{\"id\": 17, \"content\": \"bf\"}",
     "abfo abf bf",
     "0:0-4 16:5-8 17:9-11"},
    {"raw before normalised",
     "{\"id\": 16, \"content\": \"fob\"},{\"id\": 17, \"content\": \"fo\", \"normalized\": true}",
     "fob FOB fofob",
     "16:0-3 17:4-6 4:6-7 17:8-10 16:10-13"},
    {"overlapping blanks",
     "{\"id\": 16, \"content\": \"fo\", \"rstrip\": true},{\"id\": 17, \"content\": \" b\"}",
     "fo b fo  b",
     "16:0-3 17:2-4 16:5-9 17:8-10"},
    {"a blank as token",
     "{\"id\": 16, \"content\": \" \", \"lstrip\": true, \"rstrip\": true}",
     "a  b \xe3\x80\x80 fo ",
     "3:0-1 16:1-3 4:3-4 16:4-9 5:9-10 11:10-11 16:11-12"},
};
/* clang-format on */

static void tokens_are_found_as_in_tokenizers(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        struct error e = {0};
        struct tokenizer *t = parse(places[k].added, &e);
        if (!t)
            fail_msg("%s: %s", places[k].name, e.text);
        must_encode(places[k].name, t, places[k].text, places[k].expected);
        tokenizer_destroy(t);
    }
}

static const struct {
    const char *added, *error;
} refusals[] = {
    {"{\"id\": 19, \"content\": \"x\"}",
     "added_tokens: 'x': number 19, but 16 is expected: the next free one"},
    {"{\"id\": 3, \"content\": \"x\"}",
     "added_tokens: 'x': number 3, but 16 is expected: the next free one"},
    {"{\"id\": 16, \"content\": \"foo\"}",
     "added_tokens: 'foo': number 16, but 7 is expected: the vocabulary has it"},
    {"{\"id\": 16, \"content\": \"\"}", "added_tokens: a token without content"},
    {"{\"content\": \"x\"}", "added_tokens: a token without id"},
    {"{\"id\": 16, \"content\": \"x\", \"lstrip\": 1}",
     "added_tokens: 'x': lstrip: true or false is expected"},
    {"{\"id\": 16, \"content\": \"X\", \"normalized\": true}, {\"id\": 17, \"content\": \"x\", "
     "\"normalized\": true}",
     "the added tokens 'X' and 'x' have the same normalised text"},
    {"{\"id\": 16, \"content\": \"\xcc\x81\", \"normalized\": true}",
     "the added token '\xcc\x81' is empty after normalisation"},
};

static void contradictions_are_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof refusals / sizeof *refusals; k++) {
        struct error e = {0};
        assert_null(parse(refusals[k].added, &e));
        assert_string_equal(e.text, refusals[k].error);
    }
}

#define FOO  "{\"16\": {\"content\": \"Foo\", \"normalized\": true}}"
#define TEXT "foo FOO a <e> [MASK]b"

/* Names and contents of files beside vocab.txt; a null one is left out. `expected`: ids, or null for a refusal. */
static const struct {
    const char *config, *map, *added, *expected;
} folders[] = {
    {NULL, NULL, NULL, "8 9 8 9 6 1 14 1 4 7"},
    {"{\"added_tokens_decoder\": {\"16\": {\"content\": \"foo\"}}}", NULL, NULL,
     "16 8 9 6 1 14 1 4 7"},
    {"{\"added_tokens_decoder\": " FOO "}", NULL, NULL, "16 16 6 1 14 1 4 7"},
    {"{\"added_tokens_decoder\": " FOO "}", NULL, "{\"<e>\": 17}", "16 16 6 1 14 1 4 7"},
    {NULL, NULL, "{\"foo\": 16}", "16 16 6 1 14 1 4 7"},
    {"{\"additional_special_tokens\": [\"<e>\"]}", NULL, NULL, "8 9 8 9 6 16 4 7"},
    {"{\"extra_special_tokens\": {\"entity_token\": \"<e>\"}}", NULL, "{\"foo\": 16}",
     "16 16 6 17 4 7"},
    {NULL, "{\"additional_special_tokens\": [{\"content\": \"<e>\"}]}", "{\"<e>\": 16}",
     "8 9 8 9 6 16 4 7"},
    {"{\"bos_token\": \"<e>\"}", NULL, NULL, "8 9 8 9 6 16 4 7"},
    {"{\"added_tokens_decoder\": {\"18\": {\"content\": \"foo\"}}}", NULL, NULL, NULL},
    {"{\"added_tokens_decoder\": " FOO "}", "{\"additional_special_tokens\": [\"<e>\"]}", NULL,
     "16 16 6 1 14 1 4 7"},
    {"{\"mask_token\": \"<e>\"}", "{\"mask_token\": \"[MASK]\"}", NULL, "8 9 8 9 6 1 14 1 4 7"},
    {"{\"tokenizer_class\": \"CamembertTokenizer\"}", NULL, NULL, "8 9 8 9 6 1 14 1 4 7"},
    {"{\"truncation_side\": \"left\"}", NULL, NULL, NULL},
    {"{\"split_special_tokens\": true}", NULL, NULL, NULL},
    {NULL, NULL, "{\"foo\": \"16\"}", NULL},
};

static char *ids_of(const struct tokenizer *t, const char *text)
{
    struct tokens k = {0};
    struct text out = {0};
    tokenizer_encode(t, (struct text_part){text, (uint32_t)strlen(text)}, (struct text_part){0},
                     0, &k);
    for (uint32_t i = 1; i + 1 < k.count; i++)
        text_add(&out, "%s%u", i > 1 ? " " : "", k.token_ids[i]);
    tokens_finish(&k);
    return text_take(&out);
}

static void every_file_that_lists_tokens_is_read(void **state)
{
    (void)state;
    model_write_or_remove("vocab.txt",
                          "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nf\na\nb\nfo\n##o\n##b\n##a\n"
                          "c\nd\ne\n##e\n");
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        struct error e = {0};
        model_write_or_remove("tokenizer_config.json", folders[k].config);
        model_write_or_remove("special_tokens_map.json", folders[k].map);
        model_write_or_remove("added_tokens.json", folders[k].added);
        struct tokenizer *t = tokenizer_load(model_folder, TOKENIZER_HF, &e);
        assert_int_equal(t != NULL, folders[k].expected != NULL);
        if (!t)
            continue;
        char *ids = ids_of(t, TEXT);
        if (strcmp(ids, folders[k].expected) != 0)
            fail_msg("folder %zu: '%s', '%s' is expected", k, ids, folders[k].expected);
        free(ids);
        tokenizer_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_found_as_in_tokenizers),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(every_file_that_lists_tokens_is_read),
    };
    return cmocka_run_group_tests_name("added", tests, model_begin, model_end);
}
