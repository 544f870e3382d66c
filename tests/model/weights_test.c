/* SPDX-License-Identifier: Apache-2.0 */
/* A model's folder in all the forms it comes in: names, types, shards, what may be missing and what is
   refused by name. Every case is a small model that is written, changed and read again. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/checkpoint/init.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/mimetic.h"
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

/* clang-format off */
static const struct {
    const char *what;
    const char *architecture, *more;
    struct change change;
    double tolerance;
    const char *error; /* after the folder; null: read, and equal */
    const char *note;  /* the first one, or null */
} cases[] = {
    {"plain", "BertModel", "", {0}, 0, NULL, NULL},
    {"no padding", "BertModel", ", \"pad_token_id\": null", {0}, 0, NULL, NULL},
    {"a head", "BertForMaskedLM", "", {0}, 0, NULL, NULL},
    {"an untied decoder", "BertForMaskedLM", ", \"tie_word_embeddings\": false", {0}, 0, NULL, NULL},
    {"gamma", "BertModel", "", {NULL, "LayerNorm.weight", "LayerNorm.gamma"}, 0, NULL, NULL},
    {"beta", "BertModel", "", {NULL, "LayerNorm.bias", "LayerNorm.beta"}, 0, NULL, NULL},
    {"no prefix", "BertForPreTraining", "", {NULL, "bert.", ""}, 0, NULL, NULL},
    {"a prefix", "BertModel", "", {NULL, "e", "bert.e"}, 0, NULL, NULL},
    {"a wrapper's prefix", "BertForMaskedLM", "", {NULL, "bert.", "module.bert."}, 0, NULL, NULL},
    {"dense_act", "BertForPreTraining", "", {NULL, "intermediate.dense.", "intermediate.dense_act."}, 0, NULL, NULL},
    {"decoder.bias", "BertForMaskedLM", "", {NULL, "predictions.bias", "predictions.decoder.bias"}, 0, NULL, NULL},
    {"BF16", "BertModel", "", {.dtype = "BF16"}, 0.004, NULL, NULL},
    {"F16", "BertModel", "", {.dtype = "F16"}, 0.0006, NULL, NULL},
    {"F64", "BertModel", "", {.dtype = "F64"}, 0, NULL, NULL},
    {"rows of padding", "BertModel", "", {"embeddings.word_embeddings.weight", .rows = 16}, 0, NULL, "'embeddings.word_embeddings.weight': 16 rows, of which vocab_size are taken"},
    {"a position more", "BertModel", "", {"embeddings.position_embeddings.weight", .rows = 7}, 0, "/model.safetensors: tensor 'embeddings.position_embeddings.weight' is [7, 8], config.json says [6, 8]", NULL},
    {"a missing tensor", "BertModel", "", {"encoder.layer.1.output.dense.bias", .left_out = true}, 0, ": tensor 'encoder.layer.1.output.dense.bias' is missing", NULL},
    {"half a head", "BertForMaskedLM", "", {"cls.predictions.bias", .left_out = true}, 0, ": tensor 'cls.predictions.bias' is missing", NULL},
    {"NaN", "BertModel", "", {"encoder.layer.0.attention.self.key.bias", .nan = true}, 0, ": tensor 'encoder.layer.0.attention.self.key.bias' is not finite at element 7", NULL},
    {"NaN in F16", "BertModel", "", {"embeddings.LayerNorm.bias", .nan = true, .dtype = "F16"}, 0, ": tensor 'embeddings.LayerNorm.bias' is not finite at element 7", NULL},
    {"no finite BF16", "BertModel", "", {"embeddings.LayerNorm.bias", .nan = true, .dtype = "BF16"}, 0, ": tensor 'embeddings.LayerNorm.bias' is not finite at element 7", NULL},
};
/* clang-format on */

static void every_form_is_read(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct model_config c = model_make_config(cases[k].architecture, cases[k].more);
        struct weights made = {0}, read = {0};
        struct error e = {0};
        weights_begin(&c, config_parts(&c), &made);
        weights_initialise(&made, &c, 0.5, 7);
        model_write_weights(&c, &made, &cases[k].change, "model.safetensors", -1);
        int r = weights_read(model_folder, &c, &read, &e);
        if ((r < 0) != (cases[k].error != NULL))
            fail_msg("%s: %s", cases[k].what, r < 0 ? e.text : "no error");
        if (cases[k].error)
            assert_string_equal(e.text + strlen(model_folder), cases[k].error);
        else
            must_be_equal(&made, &read, cases[k].tolerance);
        assert_int_equal(read.n_notes, cases[k].note != NULL);
        if (cases[k].note)
            assert_string_equal(read.note[0], cases[k].note);
        weights_finish(&read);
        weights_finish(&made);
        config_finish(&c);
    }
}

/* Weights that the architecture names and the file lacks are listed, and initialised from the seed. */
static void missing_heads_are_new(void **state)
{
    (void)state;
    struct model_config plain = model_make_config("BertModel", "");
    struct model_config c =
        model_make_config("BertForSequenceClassification",
                          ", \"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}");
    struct weights made = {0}, read = {0}, again = {0};
    struct error e = {0};
    struct change none = {0};
    weights_begin(&plain, PART_ENCODER, &made);
    weights_initialise(&made, &plain, 0.02, 1);
    model_write_weights(&plain, &made, &none, "model.safetensors", -1);
    assert_int_equal(weights_read(model_folder, &c, &read, &e), 0);
    assert_int_equal(weights_read(model_folder, &c, &again, &e), 0);
    assert_int_equal(read.new_parts, PART_POOLER | PART_CLASSIFIER);
    assert_int_equal(read.n_notes, 4);
    assert_string_equal(read.note[2],
                        "'classifier.weight' is not in the file: newly initialised");
    weights_initialise(&read, &c, 0.02, 3);
    weights_initialise(&again, &c, 0.02, 3);
    must_be_equal(&read, &again, 0);
    const struct tensor *t = weights_find(&read, "classifier.weight");
    assert_int_equal(t->parameter.shape[0], 3);
    weights_finish(&again);
    weights_finish(&read);
    weights_finish(&made);
    config_finish(&c);
    config_finish(&plain);
}

static void shards_are_joined(void **state)
{
    (void)state;
    const char index[] = "{\"metadata\": {}, \"weight_map\": {\"a\": \"one.safetensors\", "
                         "\"b\": \"two.safetensors\", \"c\": \"one.safetensors\"}}";
    const char outside[] = "{\"weight_map\": {\"a\": \"../x\"}}";
    struct model_config c = model_make_config("BertForPreTraining", "");
    struct weights made = {0}, read = {0};
    struct error e = {0};
    struct change none = {0};
    char *whole = path_join(model_folder, "model.safetensors"), expected[200];
    weights_begin(&c, config_parts(&c), &made);
    weights_initialise(&made, &c, 0.02, 1);
    remove(whole);
    model_write("pytorch_model.bin", "x", 1);
    assert_int_equal(weights_read(model_folder, &c, &read, &e), -1);
    snprintf(expected, sizeof expected,
             "%s: pytorch_model.bin is pickle, which can run anything and is never read; ",
             model_folder);
    assert_memory_equal(e.text, expected, strlen(expected));
    model_write_weights(&c, &made, &none, "one.safetensors", 0);
    model_write_weights(&c, &made, &none, "two.safetensors", 1);
    model_write("model.safetensors.index.json", index, sizeof index - 1);
    if (weights_read(model_folder, &c, &read, &e) < 0)
        fail_msg("%s", e.text);
    must_be_equal(&made, &read, 0);
    weights_finish(&read);
    model_write("model.safetensors.index.json", outside, sizeof outside - 1);
    assert_int_equal(weights_read(model_folder, &c, &read, &e), -1);
    snprintf(expected, sizeof expected,
             "%s/model.safetensors.index.json: 'a': a file beside it is expected",
             model_folder);
    assert_string_equal(e.text, expected);
    free(whole);
    weights_finish(&made);
    config_finish(&c);
}

/* Saved, read: the same in f32; keys that mean nothing here are kept; positions repeat. */
static void saving_keeps_everything(void **state)
{
    (void)state;
    struct model_config c = model_make_config("BertForMaskedLM", ""), back = {0};
    struct weights made = {0}, read = {0};
    struct error e = {0};
    float first, repeated;
    weights_begin(&c, config_parts(&c), &made);
    weights_initialise(&made, &c, 0.02, 1);
    model_resize_positions(&c, &made, 15);
    assert_int_equal(model_save(model_folder, &c, &made, ELEMENT_F32, &e), 0);
    assert_int_equal(config_read(model_folder, &back, &e), 0);
    assert_int_equal(back.positions, 15);
    assert_true(
        json_equal(json_object_get(back.json, "kept"), json_object_get(c.json, "kept")));
    assert_string_equal(back.dtype, "float32");
    assert_int_equal(weights_read(model_folder, &back, &read, &e), 0);
    must_be_equal(&made, &read, 0);
    const struct tensor *t = weights_find(&read, "embeddings.position_embeddings.weight");
    tensor_to_f32(t, 2 * 8 + 1, 1, &first);
    tensor_to_f32(t, 14 * 8 + 1, 1, &repeated);
    assert_true(first == repeated && first != 0);
    weights_finish(&read);
    weights_finish(&made);
    config_finish(&back);
    config_finish(&c);
}

/* The file with one more tensor, of a dtype that only its writer knows. */
static void write_stranger(const char *name)
{
    struct error e = {0};
    struct file f;
    struct text header = {0};
    char *path = path_join(model_folder, "model.safetensors");
    assert_int_equal(file_open(path, &f, &e), 0);
    uint64_t length = (uint64_t)f.bytes[0] | (uint64_t)f.bytes[1] << 8;
    uint64_t data = f.size - 8 - length, end = length;
    while (f.bytes[8 + end - 1] != '}')
        end--;
    text_add(&header, "%.*s,\"%s\":{\"dtype\":\"F8_E8M0\",\"shape\":[3],", (int)end - 1,
             (const char *)f.bytes + 8, name);
    text_add(&header, "\"data_offsets\":[%u,%u]}}", (unsigned)data, (unsigned)data + 3);
    uint64_t longer = strlen(text_get(&header));
    uint8_t *bytes = memory_new(8 + longer + data + 3, 1);
    for (int k = 0; k < 8; k++)
        bytes[k] = (uint8_t)(longer >> 8 * k);
    memcpy(bytes + 8, text_get(&header), longer);
    memcpy(bytes + 8 + longer, f.bytes + 8 + length, data);
    file_close(&f);
    model_write("model.safetensors", bytes, 8 + longer + data + 3);
    text_finish(&header);
    free(bytes);
    free(path);
}

/* Only parameters have to be of a type that we know. */
static void strangers_are_left_out(void **state)
{
    (void)state;
    struct model_config c = model_make_config("BertModel", "");
    struct weights made = {0}, read = {0};
    struct error e = {0};
    struct change without = {"embeddings.LayerNorm.bias", .left_out = true}, none = {0};
    weights_begin(&c, config_parts(&c), &made);
    weights_initialise(&made, &c, 0.5, 1);
    model_write_weights(&c, &made, &none, "model.safetensors", -1);
    write_stranger("quantizer\\u001b.scale");
    if (weights_read(model_folder, &c, &read, &e) < 0)
        fail_msg("%s", e.text);
    must_be_equal(&made, &read, 0);
    assert_int_equal(read.n_notes, 1);
    assert_string_equal(read.note[0],
                        "tensor 'quantizer?.scale' is not one of BERT's and is left out");
    weights_finish(&read);
    model_write_weights(&c, &made, &without, "model.safetensors", -1);
    write_stranger("embeddings.LayerNorm.bias");
    assert_int_equal(weights_read(model_folder, &c, &read, &e), -1);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, "model.safetensors: tensor 'embeddings.LayerNorm.bias' is "
                                   "F8_E8M0, a floating type is expected"));
    weights_finish(&made);
    config_finish(&c);
}

/* A header without padding, as some writers leave it: the data then lies anywhere. */
static void headers_need_no_padding(void **state)
{
    (void)state;
    struct model_config c = model_make_config("BertModel", "");
    struct weights made = {0}, read = {0};
    struct error e = {0};
    struct change none = {0};
    struct file f;
    char *path = path_join(model_folder, "model.safetensors");
    weights_begin(&c, config_parts(&c), &made);
    weights_initialise(&made, &c, 0.5, 1);
    model_write_weights(&c, &made, &none, "model.safetensors", -1);
    assert_int_equal(file_open(path, &f, &e), 0);
    uint64_t length = (uint64_t)f.bytes[0] | (uint64_t)f.bytes[1] << 8;
    uint8_t *bytes = memory_new(f.size + 3, 1);
    memcpy(bytes, f.bytes, 8 + length);
    memset(bytes + 8 + length, ' ', 3);
    memcpy(bytes + 11 + length, f.bytes + 8 + length, f.size - 8 - length);
    bytes[0] = (uint8_t)(length + 3); /* a multiple of 8 before: no carry */
    model_write("model.safetensors", bytes, f.size + 3);
    file_close(&f);
    if (weights_read(model_folder, &c, &read, &e) < 0)
        fail_msg("%s", e.text);
    must_be_equal(&made, &read, 0);
    free(bytes);
    free(path);
    weights_finish(&read);
    weights_finish(&made);
    config_finish(&c);
}

/* Keys equal queries, positions are waves, all else is as without. */
static void a_mimetic_start_finds_equals(void **state)
{
    (void)state;
    struct model_config c = model_make_config("BertForPreTraining", "");
    struct weights plain = {0}, made = {0};
    weights_begin(&c, config_parts(&c), &plain);
    weights_begin(&c, config_parts(&c), &made);
    weights_initialise(&plain, &c, 0.02, 1);
    weights_initialise(&made, &c, 0.02, 1);
    weights_make_mimetic(&made, 0.02);
    for (uint32_t k = 0; k < made.n_tensors; k++) {
        const struct parameter *p = &made.tensor[k].parameter;
        const float *was = plain.tensor[k].data, *is = made.tensor[k].data;
        const float *key = p->id != PARAMETER_QUERY_WEIGHT
                               ? NULL
                               : weights_get(&made, PARAMETER_KEY_WEIGHT, p->layer)->data;
        if (key)
            assert_memory_equal(key, is, p->count * sizeof *is);
        for (uint64_t i = 0; i < p->count; i++) {
            uint64_t row = i / c.hidden, column = i % c.hidden;
            double angle = (double)row / pow(100, (double)(column & ~1ull) / c.hidden);
            if (p->id == PARAMETER_POSITIONS)
                assert_float_equal(is[i], 0.02 * sqrt(2) * (i % 2 ? cos(angle) : sin(angle)),
                                   1e-8);
            else if (key)
                assert_float_equal(is[i], was[i] / 0.02 * 0.8 / sqrt(c.hidden), 1e-7);
            else if (p->id != PARAMETER_KEY_WEIGHT)
                assert_true(is[i] == was[i]);
        }
    }
    weights_finish(&made);
    weights_finish(&plain);
    config_finish(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(missing_heads_are_new),
        cmocka_unit_test(shards_are_joined),
        cmocka_unit_test(saving_keeps_everything),
        cmocka_unit_test(headers_need_no_padding),
        cmocka_unit_test(strangers_are_left_out),
        cmocka_unit_test(a_mimetic_start_finds_equals),
    };
    return cmocka_run_group_tests(tests, model_begin, model_end);
}
