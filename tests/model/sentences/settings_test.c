/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a sentence-transformers folder: what its files may say, and what is refused by name. */
#include "model/checkpoint/json.h"
#include "model/checkpoint/sentence.h"
#include "tests/model/model_files.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

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

#define ARGUMENT(object, key)                                                                  \
    "/sentence_bert_config.json: " object ": '" key "' is not supported, the settings of the " \
    "files beside it are expected"

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
    {NEW, MEAN, "{\"config_args\": {\"hidden_act\": \"relu\"}}", NULL,
     ARGUMENT("config_args", "hidden_act"), 0},
    {NEW, MEAN, "{\"config_kwargs\": {\"hidden_act\": \"relu\"}}", NULL,
     ARGUMENT("config_kwargs", "hidden_act"), 0},
    {NEW, MEAN, "{\"model_args\": {\"torch_dtype\": \"float16\", \"variant\": \"fp16\"}}", NULL,
     ARGUMENT("model_args", "variant"), 0},
    {NEW, MEAN, "{\"model_kwargs\": {\"hidden_act\": null}}", NULL,
     ARGUMENT("model_kwargs", "hidden_act"), 0},
    {NEW, MEAN, "{\"tokenizer_args\": {\"model_max_length\": 6}}", NULL,
     ARGUMENT("tokenizer_args", "model_max_length"), 0},
    {NEW, MEAN, "{\"processor_kwargs\": {\"model_max_length\": 6}, \"max_seq_length\": 5}",
     NULL, ARGUMENT("processor_kwargs", "model_max_length"), 0},
    {NEW, MEAN, "{\"config_args\": [1]}", NULL,
     "/sentence_bert_config.json: config_args: an object is expected", 0},
    {NEW, MEAN, "{\"tokenizer_name_or_path\": \"x\"}", NULL,
     "/sentence_bert_config.json: tokenizer_name_or_path is not supported", 0},
    {NEW, MEAN,
     "{\"model_args\": {\"torch_dtype\": \"float16\", \"attn_implementation\": \"sdpa\", "
     "\"trust_remote_code\": true}, "
     "\"config_kwargs\": {}, \"config_args\": null, \"query_length\": null, "
     "\"max_seq_length\": 6, \"tokenizer_args\": {\"model_max_length\": 6}}",
     NULL, NULL, POOLING_MEAN},
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

static const char *const old_names[] = {
    "sentence_roberta_config.json",     "sentence_distilbert_config.json",
    "sentence_camembert_config.json",   "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json", "sentence_xlnet_config.json",
};

/* The file's name in old folders, only where the present one is missing. */
static void old_names_are_read(void **state)
{
    (void)state;
    struct error e = {0};
    model_write_or_remove("modules.json", NEW);
    model_write_or_remove("1_Pooling/config.json", MEAN);
    model_write_or_remove("config_sentence_transformers.json", NULL);
    for (size_t k = 0; k < sizeof old_names / sizeof *old_names; k++) {
        struct sentence_settings s = {0};
        uint32_t length = 0;
        model_write_or_remove("sentence_bert_config.json", NULL);
        model_write_or_remove(old_names[k], "{\"max_seq_length\": 9, \"do_lower_case\": true}");
        assert_int_equal(sentence_read_length(model_folder, &length, &e), 0);
        assert_int_equal(length, 9);
        assert_int_equal(sentence_read(model_folder, false, &s, &e), 0);
        assert_true(s.lowercase);
        sentence_finish(&s);
        model_write_or_remove("sentence_bert_config.json", "{\"max_seq_length\": 4}");
        assert_int_equal(sentence_read_length(model_folder, &length, &e), 0);
        assert_int_equal(length, 4);
        model_write_or_remove(old_names[k], NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_are_pooled_as_said),
        cmocka_unit_test(settings_beside_the_modules),
        cmocka_unit_test(old_names_are_read),
    };
    return cmocka_run_group_tests(tests, model_begin, model_end);
}
