/* SPDX-License-Identifier: Apache-2.0 */
/* DistilBERT (Sanh et al. 2019). Names and keys are those of transformers' modeling_distilbert.py and
   configuration_distilbert.py. It has no token types, no dropout after attention's output, and as a pooler the first
   linear of a classifier. */
#include "model/arch/arch.h"

#define AT(field) offsetof(struct model_config, field)

/* clang-format off */
static const struct arch_class classes[] = {
    {"DistilBertModel",                     PART_ENCODER, 0},
    {"DistilBertForMaskedLM",               PART_ENCODER | PART_MLM, 0},
    {"DistilBertForSequenceClassification", PART_ENCODER | PART_POOLER | PART_CLASSIFIER, 0},
    {"DistilBertForMultipleChoice",         PART_ENCODER | PART_POOLER | PART_CLASSIFIER, 1},
    {"DistilBertForTokenClassification",    PART_ENCODER | PART_CLASSIFIER, 0},
    {"DistilBertForQuestionAnswering",      PART_ENCODER | PART_SPAN, 0},
    {0},
};

static const struct arch_size sizes[] = {
    {"vocab_size",              AT(vocabulary),   1, 1 << 22, false},
    {"dim",                     AT(hidden),       1, 1 << 16, false},
    {"n_layers",                AT(layers),       1, 4096,    false},
    {"n_heads",                 AT(heads),        1, 4096,    false},
    {"hidden_size",             AT(hidden),       1, 1 << 16, false}, /* attribute_map: these win */
    {"num_hidden_layers",       AT(layers),       1, 4096,    false},
    {"num_attention_heads",     AT(heads),        1, 4096,    false},
    {"hidden_dim",              AT(intermediate), 1, 1 << 18, false},
    {"max_position_embeddings", AT(positions),    1, 1 << 20, false},
    {"pad_token_id",            AT(pad),          0, 1 << 22, false},
    {"num_labels",              AT(labels),       1, 1 << 20, false},
    {0},
};

static const struct arch_real reals[] = {
    {"initializer_range",   AT(initializer_range),  0, 1e6},
    {"dropout",             AT(hidden_dropout),     0, 1},
    {"attention_dropout",   AT(attention_dropout),  0, 1},
    {"seq_classif_dropout", AT(classifier_dropout), 0, 1},
    {"seq_classif_dropout", AT(choice_dropout),     0, 1},
    {"qa_dropout",          AT(span_dropout),       0, 1},
    {0},
};

static const struct arch_only onlys[] = {{0}};
/* sinusoidal_pos_embds only gives a new model's positions their first values. */
static const char *const off[] = {"is_causal", NULL};

static const struct arch_prefix prefixes[] = {
    {"embeddings.", PART_ENCODER},      {"transformer.", PART_ENCODER}, {"pre_classifier.", PART_POOLER},
    {"vocab_", PART_MLM},               {"classifier.", PART_CLASSIFIER}, {"qa_outputs.", PART_SPAN},
    {0},
};

static const struct arch_rename renames[] = {
    {"LayerNorm.gamma", "LayerNorm.weight", false},
    {"LayerNorm.beta",  "LayerNorm.bias",   false},
    {0},
};

static const char *const buffers[] = {"embeddings.position_ids", NULL};

static const struct parameter_row before[] = {
    {PARAMETER_WORDS,            "embeddings.word_embeddings.weight",     "VH", PART_ENCODER, VALUE_NORMAL_PAD, true},
    {PARAMETER_POSITIONS,        "embeddings.position_embeddings.weight", "PH", PART_ENCODER, VALUE_NORMAL,     true},
    {PARAMETER_EMBEDDINGS_GAIN,  "embeddings.LayerNorm.weight",           "H",  PART_ENCODER, VALUE_ONE,        false},
    {PARAMETER_EMBEDDINGS_SHIFT, "embeddings.LayerNorm.bias",             "H",  PART_ENCODER, VALUE_ZERO,       false},
    {0},
}, in_layer[] = {
    {PARAMETER_QUERY_WEIGHT,  "attention.q_lin.weight",   "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_QUERY_BIAS,    "attention.q_lin.bias",     "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_KEY_WEIGHT,    "attention.k_lin.weight",   "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_KEY_BIAS,      "attention.k_lin.bias",     "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_VALUE_WEIGHT,  "attention.v_lin.weight",   "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_VALUE_BIAS,    "attention.v_lin.bias",     "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTPUT_WEIGHT, "attention.out_lin.weight", "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_OUTPUT_BIAS,   "attention.out_lin.bias",   "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTPUT_GAIN,   "sa_layer_norm.weight",     "H",  PART_ENCODER, VALUE_ONE,    false},
    {PARAMETER_OUTPUT_SHIFT,  "sa_layer_norm.bias",       "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_INNER_WEIGHT,  "ffn.lin1.weight",          "IH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_INNER_BIAS,    "ffn.lin1.bias",            "I",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTER_WEIGHT,  "ffn.lin2.weight",          "HI", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_OUTER_BIAS,    "ffn.lin2.bias",            "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTER_GAIN,    "output_layer_norm.weight", "H",  PART_ENCODER, VALUE_ONE,    false},
    {PARAMETER_OUTER_SHIFT,   "output_layer_norm.bias",   "H",  PART_ENCODER, VALUE_ZERO,   false},
    {0},
}, after[] = {
    {PARAMETER_POOLER_WEIGHT,     "pre_classifier.weight",   "HH", PART_POOLER,     VALUE_NORMAL, true},
    {PARAMETER_POOLER_BIAS,       "pre_classifier.bias",     "H",  PART_POOLER,     VALUE_ZERO,   false},
    {PARAMETER_MLM_DENSE_WEIGHT,  "vocab_transform.weight",  "HH", PART_MLM,        VALUE_NORMAL, true},
    {PARAMETER_MLM_DENSE_BIAS,    "vocab_transform.bias",    "H",  PART_MLM,        VALUE_ZERO,   false},
    {PARAMETER_MLM_GAIN,          "vocab_layer_norm.weight", "H",  PART_MLM,        VALUE_ONE,    false},
    {PARAMETER_MLM_SHIFT,         "vocab_layer_norm.bias",   "H",  PART_MLM,        VALUE_ZERO,   false},
    {PARAMETER_MLM_BIAS,          "vocab_projector.bias",    "V",  PART_MLM,        VALUE_ZERO,   false},
    {PARAMETER_MLM_DECODER,       "vocab_projector.weight",  "VH", PART_MLM,        VALUE_NORMAL, true},
    {PARAMETER_CLASSIFIER_WEIGHT, "classifier.weight",       "LH", PART_CLASSIFIER, VALUE_NORMAL, true},
    {PARAMETER_CLASSIFIER_BIAS,   "classifier.bias",         "L",  PART_CLASSIFIER, VALUE_ZERO,   false},
    {PARAMETER_SPAN_WEIGHT,       "qa_outputs.weight",       "2H", PART_SPAN,       VALUE_NORMAL, true},
    {PARAMETER_SPAN_BIAS,         "qa_outputs.bias",         "2",  PART_SPAN,       VALUE_ZERO,   false},
    {0},
};
/* clang-format on */

const struct arch arch_distilbert = {
    .model_type = "distilbert",
    .title = "DistilBERT",
    .tokenizer = "DistilBertTokenizer",
    .prefix = "distilbert.",
    .prefixed = PART_ENCODER,
    .layer = "transformer.layer.%u.",
    .activation = "activation",
    .pooler = POOLER_OF_CLASSIFIER,
    .classes = classes,
    .sizes = sizes,
    .reals = reals,
    .onlys = onlys,
    .off = off,
    .prefixes = prefixes,
    .renames = renames,
    .buffers = buffers,
    .before = before,
    .in_layer = in_layer,
    .after = after,
    .block = {{BLOCK_ATTENTION, NORM_AFTER, .keeps = true}, {BLOCK_FEED, NORM_AFTER}},
    .blocks = 2,
    .defaults = {.vocabulary = 30522,
                 .hidden = 768,
                 .layers = 6,
                 .heads = 12,
                 .intermediate = 3072,
                 .positions = 512,
                 .labels = 2,
                 .layer_norm_eps = 1e-12,
                 .initializer_range = 0.02,
                 .hidden_dropout = 0.1,
                 .attention_dropout = 0.1,
                 .classifier_dropout = 0.2,
                 .choice_dropout = 0.2,
                 .token_dropout = -1,
                 .span_dropout = 0.1,
                 .tied = true},
};
