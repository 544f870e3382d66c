/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a model's folder: what config.json and sentence-transformers' files may say, what is
   refused by name; and the floating types of its tensors. */
#include "masks/base/text.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/sentence.h"
#include "model/element.h"
#include "tests/model/model_files.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What is said later in an object counts. */
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
    {"\"model_type\": \"roberta\"", "model_type 'roberta' is not supported, bert is expected"},
    {"\"pad_token_id\": 13", "pad_token_id 13 is not below vocab_size 13"},
    {"\"num_attention_heads\": 3", "hidden_size 8 is no multiple of num_attention_heads 3"},
    {"\"num_attention_heads\": 0", "num_attention_heads 0: 1..4096 is expected"},
    {"\"hidden_size\": \"8\"", "hidden_size: a whole number in 0..2147483647 is expected"},
    {"\"layer_norm_eps\": -1", "layer_norm_eps -1: 0..1 is expected"},
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
    "{\"type\": \"sentence_transformers.models." type "\", \"path\": \"" path "\"}"

static const struct {
    const char *modules, *pooling, *error; /* null: fine */
} sentences[] = {
    {"[" MODULE("Transformer", "") ", " MODULE("Pooling", "1_Pooling") ", " MODULE("Normalize",
                                                                                   "2_N") "]",
     "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": false}", NULL},
    {"[" MODULE("Dense", "2_Dense") "]", "{}",
     "/modules.json: module 'Dense' is not supported: Transformer, Pooling and Normalize are"},
    {"[" MODULE("Pooling", "../1_Pooling") "]", "{}",
     "/modules.json: module 'Pooling' is not supported: Transformer, Pooling and Normalize "
     "are"},
    {"[" MODULE("Pooling", "1_Pooling") "]", "{\"pooling_mode_max_tokens\": true}",
     "/1_Pooling/config.json: pooling_mode_max_tokens is not supported"},
    {"[" MODULE("Pooling", "1_Pooling") "]", "{}",
     "/1_Pooling/config.json: one way of pooling is expected, 0 are on"},
    {"{}", "{}", "/modules.json: a JSON list is expected"},
};

static void sentences_are_pooled_as_said(void **state)
{
    (void)state;
    struct error e = {0};
    char *inner = path_join(model_folder, "1_Pooling");
    assert_int_equal(file_make_directory(inner, &e), 0);
    model_write("sentence_bert_config.json", "{\"max_seq_length\": 256}", 23);
    for (size_t k = 0; k < sizeof sentences / sizeof *sentences; k++) {
        struct sentence_settings s = {0};
        model_write("modules.json", sentences[k].modules, strlen(sentences[k].modules));
        model_write("1_Pooling/config.json", sentences[k].pooling,
                    strlen(sentences[k].pooling));
        int r = sentence_read(model_folder, &s, &e);
        assert_int_equal(r < 0, sentences[k].error != NULL);
        if (r < 0) {
            assert_string_equal(e.text + strlen(model_folder), sentences[k].error);
            continue;
        }
        assert_true(s.there && s.normalize && s.pooling == POOLING_CLS && s.max_length == 256);
    }
    free(inner);
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
        cmocka_unit_test(elements_round_to_even),
    };
    return cmocka_run_group_tests(tests, model_begin, model_end);
}
