/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a model's folder: what config.json and sentence-transformers' files may say, what is
   refused by name; and the floating types of its tensors. */
#include "masks/base/text.h"
#include "model/base/element.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/sentence.h"
#include "tests/model/model_files.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A later value of the same key in an object wins. */
static const char config[] =
    "{\"architectures\": [\"BertModel\"], \"model_type\": \"bert\", \"vocab_size\": 13, "
    "\"hidden_size\": 8, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 12, \"max_position_embeddings\": 6";

static const struct {
    const char *key, *error;
} settings[] = {
    {"\"position_embedding_type\": \"relative_key\"",
     "position_embedding_type 'relative_key' is not supported, absolute is expected"},
    {"\"is_decoder\": true", "is_decoder true is not supported"},
    {"\"hidden_act\": \"mish\"", "hidden_act 'mish' is not supported: gelu, gelu_new, "
                                 "gelu_pytorch_tanh, relu or silu is expected"},
    {"\"model_type\": \"\\u001b[2J\\u009b\\u00e4\\u007f\"",
     "model_type '?[2J??\u00e4?' is not supported, bert, camembert, distilbert, modernbert, "
     "mpnet, roberta or xlm-roberta is expected"},
    {"\"model_type\": \"t5\"",
     "model_type 't5' is not supported, bert, camembert, distilbert, modernbert, mpnet, "
     "roberta or xlm-roberta is expected"},
    {"\"pad_token_id\": 13", "pad_token_id 13 is not below vocab_size 13"},
    {"\"num_attention_heads\": 3", "hidden_size 8 is no multiple of num_attention_heads 3"},
    {"\"num_attention_heads\": 0", "num_attention_heads 0: 1..4096 is expected"},
    {"\"hidden_size\": \"8\"", "hidden_size: a whole number in 0..2147483647 is expected"},
    {"\"layer_norm_eps\": -1", "layer_norm_eps -1: 0..1 is expected"},
    {"\"maskc\": []", "maskc: an object is expected"},
    {"\"maskc\": {\"mask\": \"../x\"}", "maskc.mask '../x': a file beside it is expected"},
};

static void settings_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        struct text text = {0}, more = {0};
        struct model_config c = {0};
        struct error e = {0};
        text_add(&more, ", %s", settings[k].key);
        text_add(&text, "%s%s}", config, text_get(&more));
        json_t *json = json_parse(text_get(&text), text.length, "config", &e);
        assert_non_null(json);
        assert_int_equal(config_parse(json, &c, &e), -1);
        assert_string_equal(e.text, settings[k].error);
        json_decref(json);
        text_finish(&text);
        text_finish(&more);
    }
}

#define MODULE(type, path) \
    "{\"type\": \"sentence_transformers." type "\", \"path\": \"" path "\"}"
#define ENCODER "[" MODULE("models.Transformer", "")
#define POOLED  ENCODER ", " MODULE("models.Pooling", "1_Pooling")
/* As versions before 3 and as 6.2 write them. */
#define OLD POOLED ", " MODULE("models.Normalize", "2_N") "]"
#define NEW                                                             \
    "[" MODULE("base.modules.transformer.Transformer", "") ", " MODULE( \
        "sentence_transformer.modules.pooling.Pooling",                 \
        "1_Pooling") ", " MODULE("base.modules.normalize.Normalize", "2_N") "]"
#define MEAN \
    "{\"embedding_dimension\": 8, \"pooling_mode\": \"mean\", \"include_prompt\": true}"

/* A null text leaves a file out; `error` is null where the folder is accepted. */
static const struct {
    const char *modules, *pooling, *transformer, *sentences, *error;
    enum pooling expected;
} sentences[] = {
    {OLD, "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": false}", NULL, NULL,
     NULL, POOLING_CLS},
    {OLD, "{\"pooling_mode_mean_tokens\": true}", NULL, NULL, NULL, POOLING_MEAN},
    {OLD, "{}", NULL, NULL, NULL, POOLING_MEAN},
    {NEW, MEAN, NULL, NULL, NULL, POOLING_MEAN},
    {NEW, "{\"pooling_mode\": [\"cls\"]}", NULL, NULL, NULL, POOLING_CLS},
    {NEW, "{\"pooling_mode\": \"cls\", \"pooling_mode_mean_tokens\": true}", NULL, NULL, NULL,
     POOLING_CLS},
    {NEW, "{\"pooling_mode\": [\"weightedmean\", \"cls\"]}", NULL, NULL, NULL,
     POOLING_WEIGHTED_MEAN},
    {NEW, "{\"pooling_mode\": \"lasttoken\"}", NULL, NULL, NULL, POOLING_LAST},
    {OLD, "{\"pooling_mode_max_tokens\": true, \"pooling_mode_mean_tokens\": true}", NULL, NULL,
     NULL, POOLING_MAX},
    {OLD, "{\"pooling_mode_mean_sqrt_len_tokens\": true}", NULL, NULL, NULL, POOLING_MEAN_SQRT},
    {NEW, "{\"pooling_mode\": \"median\"}", NULL, NULL,
     "/1_Pooling/config.json: pooling_mode 'median': cls, max, mean, mean_sqrt_len_tokens, "
     "weightedmean or lasttoken is expected",
     0},
    {NEW, "{\"pooling_mode\": [\"cls\", 3]}", NULL, NULL,
     "/1_Pooling/config.json: pooling_mode: a string is expected", 0},
    {NEW, "{\"pooling_mode\": []}", NULL, NULL,
     "/1_Pooling/config.json: pooling_mode: 0 modes, 1 to 6 are expected", 0},
    {NEW,
     "{\"pooling_mode\": [\"cls\", \"cls\", \"cls\", \"cls\", \"cls\", \"cls\", "
     "\"cls\"]}",
     NULL, NULL, "/1_Pooling/config.json: pooling_mode: 7 modes, 1 to 6 are expected", 0},
    {POOLED ", " MODULE("models.LSTM", "2_LSTM") "]", MEAN, NULL, NULL,
     "/modules.json: module 'sentence_transformers.models.LSTM' is not supported: "
     "Transformer, Pooling, Dense and Normalize of sentence_transformers are",
     0},
    {ENCODER ", " MODULE("models.Dense", "2_Dense") "]", MEAN, NULL, NULL,
     "/modules.json: module 'Dense' is out of order: Transformer, Pooling and then Dense or "
     "Normalize are expected",
     0},
    {"[{\"type\": \"mine.Transformer\", \"path\": \"\"}]", MEAN, NULL, NULL,
     "/modules.json: module 'mine.Transformer' is not supported: Transformer, Pooling, Dense "
     "and Normalize of sentence_transformers are",
     0},
    {ENCODER ", " MODULE("models.Pooling", "../1_Pooling") "]", MEAN, NULL, NULL,
     "/modules.json: path '../1_Pooling' of module 'Pooling': a folder in it is expected", 0},
    {"[" MODULE("models.Transformer", "0_Transformer") "]", MEAN, NULL, NULL,
     "/modules.json: path '0_Transformer' of module 'Transformer': the folder itself is "
     "expected",
     0},
    {ENCODER ", " MODULE("models.Normalize", "2_N") "]", MEAN, NULL, NULL,
     "/modules.json: module 'Normalize' is out of order: Transformer, Pooling and then Dense "
     "or "
     "Normalize are expected",
     0},
    {ENCODER "]", MEAN, NULL, NULL, "/modules.json: no Pooling: it is no model of sentences",
     0},
    {"{}", MEAN, NULL, NULL, "/modules.json: a JSON list is expected", 0},
    {NEW, MEAN, "{\"processing_kwargs\": {\"text\": {\"max_length\": 4}}}", NULL,
     "/sentence_bert_config.json: processing_kwargs is not supported", 0},
    {NEW, MEAN, "{\"transformer_task\": \"fill-mask\"}", NULL,
     "/sentence_bert_config.json: transformer_task 'fill-mask' is not supported, "
     "feature-extraction is expected",
     0},
    {NEW, MEAN, NULL, "{\"model_type\": \"CrossEncoder\"}",
     "/config_sentence_transformers.json: model_type 'CrossEncoder' is not supported, "
     "SentenceTransformer is expected",
     0},
    {NEW, MEAN, NULL, "{\"truncate_dim\": 32.5}",
     "/config_sentence_transformers.json: truncate_dim: a whole number is expected", 0},
    {NEW, MEAN, NULL, "{\"truncate_dim\": 0}",
     "/config_sentence_transformers.json: truncate_dim 0: at least 1 is expected", 0},
    {NEW, MEAN, NULL, "{\"prompts\": {\"q\": \"x\"}, \"default_prompt_name\": \"y\"}",
     "/config_sentence_transformers.json: no prompt 'y' in config_sentence_transformers.json",
     0},
    {NEW, MEAN, NULL, "{\"prompts\": {\"q\": 3}}",
     "/config_sentence_transformers.json: prompts: 'q': a string is expected", 0},
};

static void sentences_are_pooled_as_said(void **state)
{
    (void)state;
    struct error e = {0};
    char *inner = path_join(model_folder, "1_Pooling");
    assert_int_equal(file_make_directory(inner, &e), 0);
    for (size_t k = 0; k < sizeof sentences / sizeof *sentences; k++) {
        struct sentence_settings s = {0};
        model_write_or_remove("modules.json", sentences[k].modules);
        model_write_or_remove("1_Pooling/config.json", sentences[k].pooling);
        model_write_or_remove("sentence_bert_config.json", sentences[k].transformer);
        model_write_or_remove("config_sentence_transformers.json", sentences[k].sentences);
        int r = sentence_read(model_folder, false, &s, &e);
        if (sentences[k].error)
            assert_string_equal(e.text + strlen(model_folder), sentences[k].error);
        assert_int_equal(r < 0, sentences[k].error != NULL);
        if (r == 0)
            assert_true(s.there && s.normalize && s.pooling[0] == sentences[k].expected);
        sentence_finish(&s);
    }
    free(inner);
}

/* Numbers of any size in keys that are ignored, and as limits. */
#define HUGE_NUMBERS                                                                     \
    "\"a\": 18446744073709551615, \"b\": [-9223372036854775809, 1e400, -1e999], \"c\": " \
    "{\"d\": 123456789012345678901234567890123456789012345678901234567890}"

static void settings_beside_the_modules(void **state)
{
    (void)state;
    struct error e = {0};
    struct sentence_settings s = {0};
    uint32_t length = 7;
    model_write_or_remove("modules.json", NEW);
    model_write_or_remove("1_Pooling/config.json",
                          "{\"pooling_mode\": \"mean\", "
                          "\"include_prompt\": false, " HUGE_NUMBERS "}");
    model_write_or_remove("sentence_bert_config.json",
                          "{\"max_seq_length\": 256, \"do_lower_case\": true}");
    model_write_or_remove(
        "config_sentence_transformers.json",
        "{\"prompts\": {\"query\": \"query: \", \"empty\": null}, "
        "\"default_prompt_name\": \"query\", \"truncate_dim\": 5, " HUGE_NUMBERS "}");
    assert_int_equal(sentence_read(model_folder, false, &s, &e), 0);
    assert_true(s.excludes_prompt && s.lowercase && s.dimension == 5);
    assert_string_equal(sentence_prompt(&s, NULL, &e), "query: ");
    assert_string_equal(sentence_prompt(&s, "empty", &e), "");
    assert_string_equal(sentence_prompt(&s, "document", &e), "");
    assert_null(sentence_prompt(&s, "other", &e));
    sentence_finish(&s);
    assert_int_equal(sentence_read_length(model_folder, &length, &e), 0);
    assert_int_equal(length, 256);
    model_write_or_remove("sentence_bert_config.json",
                          "{\"max_seq_length\": 1000000000000000019884624838656}");
    assert_int_equal(sentence_read_length(model_folder, &length, &e), 0);
    assert_int_equal(length, 0);
    model_write_or_remove("1_Pooling/config.json", "{\"pooling_mode\": \"max\"}");
    assert_int_equal(sentence_read(model_folder, true, &s, &e), 0); /* own pooling */
    assert_string_equal(sentence_prompt(&s, NULL, &e), "query: ");
    sentence_finish(&s);
}

static const struct {
    const char *text, *dumped; /* null: refused */
    enum json_source source;
} numbers[] = {
    {"[18446744073709551615]", "[1.8446744073709552e19]", JSON_FROM_FILE},
    {"[9223372036854775807, -9223372036854775808]",
     "[9223372036854775807,-9223372036854775808]", JSON_FROM_FILE},
    {"[9223372036854775808,1]", "[9.2233720368547758e18,1]", JSON_FROM_FILE},
    {"[\"18446744073709551615\\\"99999999999999999999\", 99999999999999999999]",
     "[\"18446744073709551615\\\"99999999999999999999\",1e20]", JSON_FROM_FILE},
    {"[1e400,-1E+400,1e-400]", "[9.0000000000000005e307,-9.0000000000000005e307,0.0]",
     JSON_FROM_FILE},
    {"[99999999999999999999.]", NULL, JSON_FROM_FILE},
    {"[0099999999999999999999]", NULL, JSON_FROM_FILE},
    {"[99999999999999999999", NULL, JSON_FROM_FILE},
    {"[NaN]", NULL, JSON_FROM_FILE},
    {"[NaN,-Infinity,Infinity,\"NaN\"]",
     "[[],-9.0000000000000005e307,9.0000000000000005e307,\"NaN\"]", JSON_FROM_LINES},
    {"[\"\\ud83d\\ude00\",\"\\ud83dx\",\"\\ude00\\ud83d\",\"\\\\ud83d\"]",
     "[\"\xf0\x9f\x98\x80\",\"\xef\xbf\xbdx\",\"\xef\xbf\xbd\xef\xbf\xbd\",\"\\\\ud83d\"]",
     JSON_FROM_LINES},
    {"[\"\\ud83d\"]", NULL, JSON_FROM_FILE},
    {"[\"\\ud83", NULL, JSON_FROM_LINES},
    {"[nan]", NULL, JSON_FROM_LINES},
};

static void numbers_of_any_size_are_read(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        json_error_t why;
        json_t *json =
            json_load_bytes(numbers[k].text, strlen(numbers[k].text), numbers[k].source, &why);
        char *dumped = json ? json_dumps(json, JSON_COMPACT) : NULL;
        if (!dumped != !numbers[k].dumped || (dumped && strcmp(dumped, numbers[k].dumped) != 0))
            fail_msg("%s: '%s', '%s' is expected", numbers[k].text, dumped, numbers[k].dumped);
        free(dumped);
        json_decref(json);
    }
}

/* A refusal keeps its place in the text, and a key that is needed its range. */
static void a_number_that_is_needed_is_checked(void **state)
{
    (void)state;
    struct error e = {0};
    struct model_config c = {0};
    static const char bad[] = "{\"a\": 99999999999999999999999,\n \"b\" 3}";
    assert_null(json_parse(bad, sizeof bad - 1, "x", &e));
    assert_memory_equal(e.text, "x:2:6: ", 7);
    struct text text = {0};
    text_add(&text, "%s, \"hidden_size\": 99999999999999999999999}", config);
    json_t *json = json_parse(text_get(&text), text.length, "config", &e);
    assert_non_null(json);
    assert_int_equal(config_parse(json, &c, &e), -1);
    assert_string_equal(e.text, "hidden_size: a whole number in 0..2147483647 is expected");
    json_decref(json);
    text_finish(&text);
}

/* Every 16-bit number to float and back; what lies between goes to the even neighbour. */
/* A number comes back, and what lies half way to the next one goes to the even of both. */
static void must_round(enum element type, uint16_t half)
{
    uint16_t next = half + 1, back;
    float value, after, between;
    elements_to_f32(type, &half, 1, &value);
    elements_to_f32(type, &next, 1, &after);
    if (value != value)
        return;
    elements_from_f32(type, &value, 1, &back);
    assert_int_equal(back, half);
    between = value / 2 + after / 2;
    if (!isfinite(between) || (half & 0x7fff) == 0x7fff)
        return;
    elements_from_f32(type, &between, 1, &back);
    if (between != value) /* below the smallest float there is nothing between */
        assert_int_equal(back, half & 1 ? next : half);
}

static void elements_round_to_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        must_round(ELEMENT_F16, (uint16_t)bits);
        must_round(ELEMENT_BF16, (uint16_t)bits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_refused_by_name),
        cmocka_unit_test(sentences_are_pooled_as_said),
        cmocka_unit_test(settings_beside_the_modules),
        cmocka_unit_test(numbers_of_any_size_are_read),
        cmocka_unit_test(a_number_that_is_needed_is_checked),
        cmocka_unit_test(elements_round_to_even),
    };
    return cmocka_run_group_tests(tests, model_begin, model_end);
}
