/* SPDX-License-Identifier: Apache-2.0 */
/* What transformers makes of a model's folder: settings with several spellings, names of labels, token types by the tokenizer's
   class, heads that the model's class has or lacks. */
#include "masks/base/text.h"
#include "model/checkpoint/init.h"
#include "tests/model/model_files.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define AT(field) offsetof(struct model_config, field)
#define DISTIL    "\"model_type\": \"distilbert\", \"architectures\": null, "

/* The number that a setting becomes. */
static const struct {
    const char *key;
    size_t at;
    uint32_t value;
} taken[] = {
    {"\"pad_token_id\": -1", AT(pad), 12},
    {"\"pad_token_id\": null", AT(pad), NO_PADDING},
    {"\"model_type\": \"modernbert\", \"architectures\": null, "
     "\"pad_token_id\": null",
     AT(pad), NO_PADDING},
    {DISTIL "\"n_heads\": 4", AT(heads), 2},
    {DISTIL "\"dim\": 16", AT(hidden), 8},
    {DISTIL "\"n_layers\": 3", AT(layers), 2},
    {"\"num_labels\": 3, \"id2label\": {\"0\": \"a\"}", AT(labels), 3},
    {"\"id2label\": {\"0\": \"a\"}", AT(labels), 1},
};

/* The name of label 0. */
static const struct {
    const char *key, *name;
} named[] = {
    {"\"id2label\": {\"0\": \"a\", \"1\": \"b\"}", "a"},
    {"\"id2label\": {\"0\": -7, \"1\": \"b\"}", "-7"},
    {"\"num_labels\": 3, \"id2label\": {\"0\": \"a\", \"1\": \"b\"}", "LABEL_0"},
};

static struct model_config parse(const char *key)
{
    struct text more = {0};
    text_add(&more, ", %s", key);
    struct model_config c = model_make_config("BertModel", text_get(&more));
    text_finish(&more);
    return c;
}

static void settings_are_those_of_transformers(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof taken / sizeof *taken; k++) {
        struct model_config c = parse(taken[k].key);
        const uint32_t value = *(const uint32_t *)((const char *)&c + taken[k].at);
        if (value != taken[k].value)
            fail_msg("%s: %u, not %u", taken[k].key, value, taken[k].value);
        config_finish(&c);
    }
    for (size_t k = 0; k < sizeof named / sizeof *named; k++) {
        char buffer[24];
        struct model_config c = parse(named[k].key);
        assert_string_equal(config_label(&c, 0, buffer), named[k].name);
        config_finish(&c);
    }
}

/* A null text leaves the file out. */
static const struct {
    const char *family, *types, *tokenizer;
    bool one_type;
} typed[] = {
    {"roberta", "2", "{\"tokenizer_class\": \"BertTokenizer\"}", false},
    {"roberta", "2", "{\"tokenizer_class\": \"BertTokenizerFast\"}", false},
    {"roberta", "1", "{\"tokenizer_class\": \"BertTokenizer\"}", true},
    {"roberta", "2", "{\"tokenizer_class\": \"RobertaTokenizer\"}", true},
    {"roberta", "2", "{}", true},
    {"roberta", "2", NULL, true},
    {"roberta", "2",
     "{\"tokenizer_class\": \"BertTokenizer\", \"model_input_names\": [\"input_ids\", "
     "\"attention_mask\"]}",
     true},
    {"roberta", "2", "{\"model_input_names\": [\"input_ids\", \"token_type_ids\"]}", false},
    {"roberta", "2, \"tokenizer_class\": \"BertTokenizer\"", NULL, false},
    {"roberta", "2, \"tokenizer_class\": \"BertTokenizer\"",
     "{\"tokenizer_class\": \"RobertaTokenizer\"}", true},
    {"bert", "2, \"tokenizer_class\": \"RobertaTokenizer\"", "{}", true},
    {"bert", "1", "{\"model_input_names\": [\"input_ids\"]}", true},
    {"bert", "1", NULL, false},
    {"bert", "2", NULL, false},
    {"bert", "2", "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}", false},
    {"bert", "2", "{\"tokenizer_class\": \"TokenizersBackend\"}", true},
    {"bert", "2", "{\"tokenizer_class\": \"DistilBertTokenizer\"}", true},
    {"bert", "2",
     "{\"tokenizer_class\": \"BertTokenizer\", \"model_input_names\": [\"input_ids\", "
     "\"attention_mask\"]}",
     true},
};

static void tokenizers_decide_on_types(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof typed / sizeof *typed; k++) {
        struct text more = {0};
        struct model_config c = {0};
        struct error e = {0};
        text_add(&more,
                 "{\"vocab_size\": 13, \"hidden_size\": 8, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 2, \"intermediate_size\": 12, "
                 "\"max_position_embeddings\": 6, \"model_type\": \"%s\", "
                 "\"pad_token_id\": 1, \"type_vocab_size\": %s}",
                 typed[k].family, typed[k].types);
        model_write_or_remove("config.json", text_get(&more));
        model_write_or_remove("tokenizer_config.json", typed[k].tokenizer);
        if (config_read(model_folder, &c, &e) < 0)
            fail_msg("%s", e.text);
        if (c.one_type != typed[k].one_type)
            fail_msg("%s, %s: one type %d", text_get(&more), typed[k].tokenizer, c.one_type);
        config_finish(&c);
        text_finish(&more);
    }
}

/* clang-format off */
#define ROBERTA ", \"model_type\": \"roberta\", \"pad_token_id\": 1"
#define LACKS(tensor) "'" tensor "' is missing or of another shape: its head is left out"

/* A model of one class, read as another one. */
static const struct {
    const char *written, *read, *more;
    struct change change;
    uint32_t parts;      /* that are read */
    const char *note[3]; /* the first ones */
} classes[] = {
    {"BertForSequenceClassification", "BertModel", "", {0}, PART_POOLER | PART_CLASSIFIER, {0}},
    {"BertForSequenceClassification", "BertModel", ", \"num_labels\": 3", {"classifier.bias", .left_out = true}, PART_POOLER, {LACKS("classifier.bias")}},
    {"BertForSequenceClassification", "BertForMaskedLM", "", {"pooler.dense.bias", .left_out = true}, PART_CLASSIFIER, {LACKS("pooler.dense.bias")}},
    {"BertForSequenceClassification", "BertModel", ", \"num_labels\": 2", {"classifier.weight", .rows = 5}, PART_POOLER, {LACKS("classifier.weight")}},
    {"BertForSequenceClassification", "BertModel", "", {"classifier.weight", "classifier.", "classifier.0."}, PART_POOLER, {LACKS("classifier.weight")}},
    {"BertForMaskedLM", "HF_ColBERT", "", {0}, PART_MLM, {"architecture 'HF_ColBERT' is read as BertModel"}},
    {"RobertaForSequenceClassification", "RobertaModel", ROBERTA, {0}, 0, {LACKS("pooler.dense.weight"), LACKS("classifier.weight")}},
    {"RobertaForSequenceClassification", "RobertaForSequenceClassification", ROBERTA, {0}, PART_POOLER | PART_CLASSIFIER, {0}},
};
/* clang-format on */

static void only_heads_of_the_class_must_be_whole(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++) {
        struct model_config c = model_make_config(classes[k].written, classes[k].more),
                            other = model_make_config(classes[k].read, classes[k].more);
        struct weights made = {0}, read = {0};
        struct error e = {0};
        c.labels = c.labels_given ? c.labels : 3; /* the other finds them in the file */
        weights_begin(&c, config_parts(&c), &made);
        weights_initialise(&made, &c, 0.5, 7);
        model_write_weights(&c, &made, &classes[k].change, "model.safetensors", -1);
        if (weights_read(model_folder, &other, &read, &e) < 0)
            fail_msg("%s", e.text);
        assert_int_equal(read.parts & ~read.new_parts, classes[k].parts | PART_ENCODER);
        for (uint32_t i = 0; i < 3 && classes[k].note[i]; i++)
            assert_string_equal(i < read.n_notes ? read.note[i] : "", classes[k].note[i]);
        if (read.parts & PART_CLASSIFIER)
            assert_int_equal(other.labels, c.labels);
        weights_finish(&read);
        weights_finish(&made);
        config_finish(&other);
        config_finish(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_those_of_transformers),
        cmocka_unit_test(tokenizers_decide_on_types),
        cmocka_unit_test(only_heads_of_the_class_must_be_whole),
    };
    return cmocka_run_group_tests(tests, model_begin, model_end);
}
