/* SPDX-License-Identifier: Apache-2.0 */
/* BERT (Devlin et al. 2019). Names and keys are those of transformers' modeling_bert.py and configuration_bert.py. */
#include "model/arch/arch.h"

#define AT(field) offsetof(struct model_config, field)

/* clang-format off */
static const struct arch_class classes[] = {
    {"BertModel",                     PART_ENCODER, 0},
    {"BertForPreTraining",            PART_ENCODER | PART_POOLER | PART_MLM | PART_NSP, 0},
    {"BertForMaskedLM",               PART_ENCODER | PART_MLM, 0},
    {"BertForNextSentencePrediction", PART_ENCODER | PART_POOLER | PART_NSP, 0},
    {"BertForSequenceClassification", PART_ENCODER | PART_POOLER | PART_CLASSIFIER, 0},
    {"BertForMultipleChoice",         PART_ENCODER | PART_POOLER | PART_CLASSIFIER, 1},
    {"BertForTokenClassification",    PART_ENCODER | PART_CLASSIFIER, 0},
    {"BertForQuestionAnswering",      PART_ENCODER | PART_SPAN, 0},
    {0},
};

static const struct arch_size sizes[] = {
    {"vocab_size",              AT(vocabulary),   1, 1 << 22, true},
    {"hidden_size",             AT(hidden),       1, 1 << 16, true},
    {"num_hidden_layers",       AT(layers),       1, 4096,    true},
    {"num_attention_heads",     AT(heads),        1, 4096,    true},
    {"intermediate_size",       AT(intermediate), 1, 1 << 18, true},
    {"max_position_embeddings", AT(positions),    1, 1 << 20, true},
    {"type_vocab_size",         AT(types),        1, 1 << 16, false},
    {"pad_token_id",            AT(pad),          0, 1 << 22, false},
    {"num_labels",              AT(labels),       1, 1 << 20, false},
    {0},
};

static const struct arch_real reals[] = {
    {"layer_norm_eps",               AT(layer_norm_eps),     0, 1},
    {"initializer_range",            AT(initializer_range),  0, 1e6},
    {"hidden_dropout_prob",          AT(hidden_dropout),     0, 1},
    {"attention_probs_dropout_prob", AT(attention_dropout),  0, 1},
    {"classifier_dropout",           AT(classifier_dropout), 0, 1},
    {"classifier_dropout",           AT(choice_dropout),     0, 1},
    {"classifier_dropout",           AT(token_dropout),      0, 1},
    {0},
};

static const struct arch_only onlys[] = {
    {"position_embedding_type", "absolute"},
    {0},
};

static const char *const off[] = {"is_decoder", "is_causal", "add_cross_attention", "is_encoder_decoder", "use_bfloat16", NULL};

static const struct arch_prefix prefixes[] = {
    {"embeddings.", PART_ENCODER},      {"encoder.", PART_ENCODER},
    {"pooler.", PART_POOLER},           {"cls.predictions.", PART_MLM},
    {"cls.seq_relationship", PART_NSP}, {"classifier.", PART_CLASSIFIER},
    {"qa_outputs.", PART_SPAN},         {0},
};

static const struct arch_rename renames[] = {
    {"LayerNorm.gamma",              "LayerNorm.weight",     false}, /* TensorFlow's checkpoints */
    {"LayerNorm.beta",               "LayerNorm.bias",       false},
    {".dense_act.",                  ".dense.",              false}, /* NVIDIA's */
    {"cls.predictions.decoder.bias", "cls.predictions.bias", true},  /* the same tensor twice */
    {0},
};

static const char *const buffers[] = {"embeddings.position_ids", "embeddings.token_type_ids", NULL};

static const struct parameter_row before[] = {
    {PARAMETER_WORDS,            "embeddings.word_embeddings.weight",       "VH", PART_ENCODER, VALUE_NORMAL_PAD, true},
    {PARAMETER_POSITIONS,        "embeddings.position_embeddings.weight",   "PH", PART_ENCODER, VALUE_NORMAL,     true},
    {PARAMETER_TYPES,            "embeddings.token_type_embeddings.weight", "TH", PART_ENCODER, VALUE_NORMAL,     true},
    {PARAMETER_EMBEDDINGS_GAIN,  "embeddings.LayerNorm.weight",             "H",  PART_ENCODER, VALUE_ONE,        false},
    {PARAMETER_EMBEDDINGS_SHIFT, "embeddings.LayerNorm.bias",               "H",  PART_ENCODER, VALUE_ZERO,       false},
    {0},
}, in_layer[] = {
    {PARAMETER_QUERY_WEIGHT,  "attention.self.query.weight",       "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_QUERY_BIAS,    "attention.self.query.bias",         "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_KEY_WEIGHT,    "attention.self.key.weight",         "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_KEY_BIAS,      "attention.self.key.bias",           "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_VALUE_WEIGHT,  "attention.self.value.weight",       "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_VALUE_BIAS,    "attention.self.value.bias",         "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTPUT_WEIGHT, "attention.output.dense.weight",     "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_OUTPUT_BIAS,   "attention.output.dense.bias",       "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTPUT_GAIN,   "attention.output.LayerNorm.weight", "H",  PART_ENCODER, VALUE_ONE,    false},
    {PARAMETER_OUTPUT_SHIFT,  "attention.output.LayerNorm.bias",   "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_INNER_WEIGHT,  "intermediate.dense.weight",         "IH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_INNER_BIAS,    "intermediate.dense.bias",           "I",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTER_WEIGHT,  "output.dense.weight",               "HI", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_OUTER_BIAS,    "output.dense.bias",                 "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTER_GAIN,    "output.LayerNorm.weight",           "H",  PART_ENCODER, VALUE_ONE,    false},
    {PARAMETER_OUTER_SHIFT,   "output.LayerNorm.bias",             "H",  PART_ENCODER, VALUE_ZERO,   false},
    {0},
}, after[] = {
    {PARAMETER_POOLER_WEIGHT,     "pooler.dense.weight",                        "HH", PART_POOLER,     VALUE_NORMAL, true},
    {PARAMETER_POOLER_BIAS,       "pooler.dense.bias",                          "H",  PART_POOLER,     VALUE_ZERO,   false},
    {PARAMETER_MLM_DENSE_WEIGHT,  "cls.predictions.transform.dense.weight",     "HH", PART_MLM,        VALUE_NORMAL, true},
    {PARAMETER_MLM_DENSE_BIAS,    "cls.predictions.transform.dense.bias",       "H",  PART_MLM,        VALUE_ZERO,   false},
    {PARAMETER_MLM_GAIN,          "cls.predictions.transform.LayerNorm.weight", "H",  PART_MLM,        VALUE_ONE,    false},
    {PARAMETER_MLM_SHIFT,         "cls.predictions.transform.LayerNorm.bias",   "H",  PART_MLM,        VALUE_ZERO,   false},
    {PARAMETER_MLM_BIAS,          "cls.predictions.bias",                       "V",  PART_MLM,        VALUE_ZERO,   false},
    {PARAMETER_MLM_DECODER,       "cls.predictions.decoder.weight",             "VH", PART_MLM,        VALUE_NORMAL, true},
    {PARAMETER_NSP_WEIGHT,        "cls.seq_relationship.weight",                "2H", PART_NSP,        VALUE_NORMAL, true},
    {PARAMETER_NSP_BIAS,          "cls.seq_relationship.bias",                  "2",  PART_NSP,        VALUE_ZERO,   false},
    {PARAMETER_CLASSIFIER_WEIGHT, "classifier.weight",                          "LH", PART_CLASSIFIER, VALUE_NORMAL, true},
    {PARAMETER_CLASSIFIER_BIAS,   "classifier.bias",                            "L",  PART_CLASSIFIER, VALUE_ZERO,   false},
    {PARAMETER_SPAN_WEIGHT,       "qa_outputs.weight",                          "2H", PART_SPAN,       VALUE_NORMAL, true},
    {PARAMETER_SPAN_BIAS,         "qa_outputs.bias",                            "2",  PART_SPAN,       VALUE_ZERO,   false},
    {0},
};
/* clang-format on */

const struct arch arch_bert = {
    .model_type = "bert",
    .title = "BERT",
    .tokenizer = "BertTokenizer",
    .prefix = "bert.",
    .prefixed = PART_ENCODER | PART_POOLER,
    .layer = "encoder.layer.%u.",
    .activation = "hidden_act",
    .classes = classes,
    .sizes = sizes,
    .reals = reals,
    .onlys = onlys,
    .off = off,
    .prefixes = prefixes,
    .renames = renames,
    .decoder_bias = "cls.predictions.decoder.bias",
    .buffers = buffers,
    .before = before,
    .in_layer = in_layer,
    .after = after,
    .block = {{BLOCK_ATTENTION, NORM_AFTER}, {BLOCK_FEED, NORM_AFTER}},
    .blocks = 2,
    .defaults = {.types = 2,
                 .labels = 2,
                 .layer_norm_eps = 1e-12,
                 .initializer_range = 0.02,
                 .hidden_dropout = 0.1,
                 .attention_dropout = 0.1,
                 .classifier_dropout = -1,
                 .choice_dropout = -1,
                 .token_dropout = -1,
                 .tied = true},
};
