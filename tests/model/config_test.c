/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a model's folder: what config.json may say, what is refused by name, where the
   weights decide; and the floating types of its tensors. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/base/element.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/init.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/save.h"
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

/* `error` is null where the settings are accepted. */
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
    {"\"transformers_weights\": \"x.safetensors\"",
     "transformers_weights 'x.safetensors' is not supported, model.safetensors is expected"},
    {"\"transformers_weights\": \"model.safetensors\"", NULL},
    {"\"architectures\": [\"Contriever\"]", NULL},
    {"\"architectures\": [\"NewModel\"], \"auto_map\": {\"AutoModel\": \"new.NewModel\"}",
     "architecture 'NewModel' is not supported, BertModel, BertForPreTraining, "
     "BertForMaskedLM, BertForNextSentencePrediction, BertForSequenceClassification, "
     "BertForMultipleChoice, BertForTokenClassification or BertForQuestionAnswering is "
     "expected"},
    {"\"architectures\": [\"BertForTokenClassification\"], \"id2label\": {\"0\": null}",
     "id2label: label 0: a text or a whole number is expected"},
    {"\"id2label\": {\"0\": null}", NULL},
    {"\"pad_token_id\": -14", "pad_token_id: a whole number in 0..2147483647 is expected"},
    {"\"model_type\": \"roberta\", \"architectures\": null, \"pad_token_id\": -1",
     "pad_token_id: a whole number in 0..2147483647 is expected"},
    {"\"model_type\": \"roberta\", \"architectures\": null, \"pad_token_id\": null",
     "pad_token_id null: a number is expected"},
    {"\"model_type\": \"distilbert\", \"architectures\": null, \"sinusoidal_pos_embds\": true",
     NULL},
    {"\"maskc\": []", "maskc: an object is expected"},
    {"\"maskc\": {\"mask\": \"../x\"}", "maskc.mask '../x': a file beside it is expected"},
};

#define MODERN   "\"model_type\": \"modernbert\", \"architectures\": null, \"pad_token_id\": 1, "
#define ROPE(of) MODERN "\"rope_parameters\": {\"full_attention\": {" of "}}"

static const struct {
    const char *key, *error;
} modern[] = {
    {ROPE("\"type\": \"linear\", \"factor\": 4"),
     "rope_parameters: rope_type 'linear' is not supported, default is expected"},
    {ROPE("\"rope_type\": \"linear\", \"type\": \"default\""),
     "rope_parameters: rope_type 'linear' is not supported, default is expected"},
    {ROPE("\"rope_type\": \"default\", \"type\": \"linear\""), NULL},
    {ROPE("\"type\": \"default\""), NULL},
    {ROPE("\"rope_theta\": null"), "rope_parameters: rope_theta null: a number is expected"},
    {ROPE("\"rope_theta\": 10") ", \"global_rope_theta\": null", NULL},
    {MODERN "\"local_rope_theta\": null", "local_rope_theta null: a number is expected"},
    {MODERN "\"sliding_window\": 2",
     "sliding_window 2 is not supported with local_attention 128: 64 is expected"},
    {MODERN "\"local_attention\": 13, \"sliding_window\": 6", NULL},
    {MODERN "\"sliding_window\": null", NULL},
};

/* The config with one more key must be refused with this error; null: it must be accepted. */
static void must_be_read(const char *key, const char *error)
{
    struct text text = {0};
    struct model_config c = {0};
    struct error e = {0};
    text_add(&text, "%s, %s}", config, key);
    json_t *json = json_parse(text_get(&text), text.length, "config", &e);
    assert_non_null(json);
    int r = config_parse(json, &c, &e);
    assert_string_equal(r < 0 ? e.text : "accepted", error ? error : "accepted");
    config_finish(&c);
    json_decref(json);
    text_finish(&text);
}

static void settings_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
        must_be_read(settings[k].key, settings[k].error);
    for (size_t k = 0; k < sizeof modern / sizeof *modern; k++)
        must_be_read(modern[k].key, modern[k].error);
}

static void causal_models_are_refused(void **state)
{
    (void)state;
    static const char *const types[] = {"bert",  "camembert", "distilbert", "modernbert",
                                        "mpnet", "roberta",   "xlm-roberta"};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        char more[200];
        static const char form[] = "\"model_type\": \"%s\", \"architectures\": null, "
                                   "\"pad_token_id\": 1, \"is_causal\": %s";
        snprintf(more, sizeof more, form, types[k], "true");
        must_be_read(more, "is_causal true is not supported");
        snprintf(more, sizeof more, form, types[k], "false");
        must_be_read(more, NULL);
    }
}

/* The model with a second bias of the decoder's head, of which one is `made`'s: the decoder's. */
static void write_two_biases(const struct model_config *c, const struct weights *made,
                             bool decoder_first)
{
    static const char head[] = "cls.predictions.bias",
                      decoder[] = "cls.predictions.decoder.bias";
    static const float other[13] = {1, 2, 3};
    struct weights both = *made;
    struct tensor *t = memory_new(made->n_tensors + 1, sizeof *t);
    memcpy(t, made->tensor, made->n_tensors * sizeof *t);
    both.tensor = t;
    struct tensor *first = weights_find(&both, head), *last = &t[both.n_tensors++];
    *last = *first;
    (decoder_first ? last : first)->data = other;
    snprintf((decoder_first ? first : last)->parameter.name, sizeof t->parameter.name, "%s",
             decoder);
    model_write_weights(c, &both, &(struct change){0}, "model.safetensors", -1);
    free(t);
}

#define DECODER(says)                                                                       \
    "cls.predictions.decoder.weight differs from the word embeddings; tie_word_embeddings " \
    "is on, " says
#define BIAS "cls.predictions.decoder.bias differs from the bias of its head and is used"

/* Reads the file of the untied model as a tied one, with this note, or null: none. Checks that it is saved as it was read. */
static void must_read_as_tied(const struct weights *made, const char *note)
{
    struct model_config c = model_make_config("BertForMaskedLM", ""), back = {0};
    struct weights read = {0};
    struct error e = {0};
    if (weights_read(model_folder, &c, &read, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(read.n_notes, note != NULL);
    if (note)
        assert_string_equal(read.note[0], note);
    assert_int_equal(c.tied, !weights_find(&read, "cls.predictions.decoder.weight"));
    must_be_equal(&read, made, 0);
    assert_int_equal(model_save(model_folder, &c, &read, ELEMENT_F32, &e), 0);
    assert_int_equal(config_read(model_folder, &back, &e), 0);
    assert_int_equal(back.tied, c.tied);
    weights_finish(&read);
    config_finish(&back);
    config_finish(&c);
}

static void read_as_tied(const struct model_config *untied, const struct weights *made,
                         struct change change, const char *note)
{
    model_write_weights(untied, made, &change, "model.safetensors", -1);
    must_read_as_tied(made, note);
}

/* A decoder that is in the file although it is tied: another one, one of another shape, as it should be, and in the place of the
   word embeddings. Its bias beside another one. */
static void tied_copies_are_compared(void **state)
{
    (void)state;
    static const char decoder[] = "cls.predictions.decoder.weight";
    struct model_config untied =
        model_make_config("BertForMaskedLM", ", \"tie_word_embeddings\": false");
    struct weights made = {0};
    weights_begin(&untied, config_parts(&untied), &made);
    weights_initialise(&made, &untied, 0.5, 1);
    read_as_tied(&untied, &made, (struct change){0},
                 DECODER("but it is used, as in transformers 5"));
    write_two_biases(&untied, &made, true);
    must_read_as_tied(&made, DECODER("but it is used, as in transformers 5"));
    read_as_tied(&untied, &made, (struct change){decoder, .rows = 5},
                 DECODER("so it is left out"));
    weights_find(&made, decoder)->data =
        weights_find(&made, "embeddings.word_embeddings.weight")->data;
    read_as_tied(&untied, &made, (struct change){0}, NULL);
    for (int first = 0; first < 2; first++) {
        write_two_biases(&untied, &made, first);
        must_read_as_tied(&made, BIAS);
    }
    read_as_tied(&untied, &made,
                 (struct change){"embeddings.word_embeddings.weight", .left_out = true}, NULL);
    weights_finish(&made);
    config_finish(&untied);
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
        cmocka_unit_test(causal_models_are_refused),
        cmocka_unit_test(tied_copies_are_compared),
        cmocka_unit_test(numbers_of_any_size_are_read),
        cmocka_unit_test(a_number_that_is_needed_is_checked),
        cmocka_unit_test(elements_round_to_even),
    };
    return cmocka_run_group_tests(tests, model_begin, model_end);
}
