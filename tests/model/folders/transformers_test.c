/* SPDX-License-Identifier: Apache-2.0 */
/* What transformers makes of a model's folder: heads that the model's class has or lacks. */
#include "model/checkpoint/init.h"
#include "tests/model/model_files.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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
        cmocka_unit_test(only_heads_of_the_class_must_be_whole),
    };
    return cmocka_run_group_tests(tests, model_begin, model_end);
}
