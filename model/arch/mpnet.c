/* SPDX-License-Identifier: Apache-2.0 */
/* MPNet (Song et al. 2020). Names and keys are those of transformers' modeling_mpnet.py and configuration_mpnet.py. All layers
   add one bias to their scores, by distance and head. Padding is token 1 whatever pad_token_id says; heads are RoBERTa's. */
#include "model/arch/arch.h"

#define AT(field) offsetof(struct model_config, field)

/* clang-format off */
static const struct arch_class classes[] = {
    {"MPNetModel",                     PART_ENCODER,                                 0, false},
    {"MPNetForMaskedLM",               PART_ENCODER | PART_MLM,                      0, false},
    {"MPNetForSequenceClassification", PART_ENCODER | PART_POOLER | PART_CLASSIFIER, 0, true},
    {"MPNetForMultipleChoice",         PART_ENCODER | PART_POOLER | PART_CLASSIFIER, 1, false},
    {"MPNetForTokenClassification",    PART_ENCODER | PART_CLASSIFIER,               0, false},
    {"MPNetForQuestionAnswering",      PART_ENCODER | PART_SPAN,                     0, false},
    {0},
};

static const struct arch_size sizes[] = {
    {"vocab_size",                     AT(vocabulary),   1,             1 << 22, false},
    {"hidden_size",                    AT(hidden),       1,             1 << 16, false},
    {"num_hidden_layers",              AT(layers),       1,             4096,    false},
    {"num_attention_heads",            AT(heads),        1,             4096,    false},
    {"intermediate_size",              AT(intermediate), 1,             1 << 18, false},
    {"max_position_embeddings",        AT(positions),    1,             1 << 20, false},
    {"num_labels",                     AT(labels),       1,             1 << 20, false},
    {"relative_attention_num_buckets", AT(relative),     RELATIVE_ROWS, 1 << 16, false},
    {0},
};

static const struct arch_real reals[] = {
    {"layer_norm_eps",               AT(layer_norm_eps),    0, 1},
    {"initializer_range",            AT(initializer_range), 0, 1e6},
    {"hidden_dropout_prob",          AT(hidden_dropout),    0, 1},
    {"attention_probs_dropout_prob", AT(attention_dropout), 0, 1},
    {0},
};

static const struct arch_only onlys[] = {{0}};

static const char *const off[] = {"is_encoder_decoder", "is_causal", "use_bfloat16", NULL};

static const struct arch_prefix prefixes[] = {
    {"embeddings.", PART_ENCODER},      {"encoder.", PART_ENCODER},
    {"pooler.", PART_POOLER},           {"classifier.dense.", PART_POOLER},
    {"lm_head.", PART_MLM},             {"classifier.", PART_CLASSIFIER},
    {"qa_outputs.", PART_SPAN},         {0},
};

static const struct arch_rename renames[] = {
    {"LayerNorm.gamma",      "LayerNorm.weight", false}, /* TensorFlow's checkpoints */
    {"LayerNorm.beta",       "LayerNorm.bias",   false},
    {"lm_head.decoder.bias", "lm_head.bias",     true},  /* the same tensor twice */
    {0},
};

static const char *const buffers[] = {"embeddings.position_ids", NULL};

static const struct parameter_row before[] = {
    {PARAMETER_WORDS,            "embeddings.word_embeddings.weight",      "VH", PART_ENCODER, VALUE_NORMAL_PAD, true},
    {PARAMETER_POSITIONS,        "embeddings.position_embeddings.weight",  "PH", PART_ENCODER, VALUE_NORMAL_PAD, true},
    {PARAMETER_EMBEDDINGS_GAIN,  "embeddings.LayerNorm.weight",            "H",  PART_ENCODER, VALUE_ONE,        false},
    {PARAMETER_EMBEDDINGS_SHIFT, "embeddings.LayerNorm.bias",              "H",  PART_ENCODER, VALUE_ZERO,       false},
    {PARAMETER_RELATIVE,         "encoder.relative_attention_bias.weight", "RA", PART_ENCODER, VALUE_NORMAL,     false},
    {0},
}, in_layer[] = {
    {PARAMETER_QUERY_WEIGHT,  "attention.attn.q.weight",    "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_QUERY_BIAS,    "attention.attn.q.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_KEY_WEIGHT,    "attention.attn.k.weight",    "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_KEY_BIAS,      "attention.attn.k.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_VALUE_WEIGHT,  "attention.attn.v.weight",    "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_VALUE_BIAS,    "attention.attn.v.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTPUT_WEIGHT, "attention.attn.o.weight",    "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_OUTPUT_BIAS,   "attention.attn.o.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTPUT_GAIN,   "attention.LayerNorm.weight", "H",  PART_ENCODER, VALUE_ONE,    false},
    {PARAMETER_OUTPUT_SHIFT,  "attention.LayerNorm.bias",   "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_INNER_WEIGHT,  "intermediate.dense.weight",  "IH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_INNER_BIAS,    "intermediate.dense.bias",    "I",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTER_WEIGHT,  "output.dense.weight",        "HI", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_OUTER_BIAS,    "output.dense.bias",          "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTER_GAIN,    "output.LayerNorm.weight",    "H",  PART_ENCODER, VALUE_ONE,    false},
    {PARAMETER_OUTER_SHIFT,   "output.LayerNorm.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {0},
}, after[] = {
    {PARAMETER_POOLER_WEIGHT,     "pooler.dense.weight",        "HH", PART_POOLER,     VALUE_NORMAL, true,  FOR_OTHERS},
    {PARAMETER_POOLER_BIAS,       "pooler.dense.bias",          "H",  PART_POOLER,     VALUE_ZERO,   false, FOR_OTHERS},
    {PARAMETER_POOLER_WEIGHT,     "classifier.dense.weight",    "HH", PART_POOLER,     VALUE_NORMAL, true,  FOR_DENSE},
    {PARAMETER_POOLER_BIAS,       "classifier.dense.bias",      "H",  PART_POOLER,     VALUE_ZERO,   false, FOR_DENSE},
    {PARAMETER_MLM_DENSE_WEIGHT,  "lm_head.dense.weight",       "HH", PART_MLM,        VALUE_NORMAL, true,  FOR_ALL},
    {PARAMETER_MLM_DENSE_BIAS,    "lm_head.dense.bias",         "H",  PART_MLM,        VALUE_ZERO,   false, FOR_ALL},
    {PARAMETER_MLM_GAIN,          "lm_head.layer_norm.weight",  "H",  PART_MLM,        VALUE_ONE,    false, FOR_ALL},
    {PARAMETER_MLM_SHIFT,         "lm_head.layer_norm.bias",    "H",  PART_MLM,        VALUE_ZERO,   false, FOR_ALL},
    {PARAMETER_MLM_BIAS,          "lm_head.bias",               "V",  PART_MLM,        VALUE_ZERO,   false, FOR_ALL},
    {PARAMETER_MLM_DECODER,       "lm_head.decoder.weight",     "VH", PART_MLM,        VALUE_NORMAL, true,  FOR_ALL},
    {PARAMETER_CLASSIFIER_WEIGHT, "classifier.weight",          "LH", PART_CLASSIFIER, VALUE_NORMAL, true,  FOR_OTHERS},
    {PARAMETER_CLASSIFIER_BIAS,   "classifier.bias",            "L",  PART_CLASSIFIER, VALUE_ZERO,   false, FOR_OTHERS},
    {PARAMETER_CLASSIFIER_WEIGHT, "classifier.out_proj.weight", "LH", PART_CLASSIFIER, VALUE_NORMAL, true,  FOR_DENSE},
    {PARAMETER_CLASSIFIER_BIAS,   "classifier.out_proj.bias",   "L",  PART_CLASSIFIER, VALUE_ZERO,   false, FOR_DENSE},
    {PARAMETER_SPAN_WEIGHT,       "qa_outputs.weight",          "2H", PART_SPAN,       VALUE_NORMAL, true,  FOR_ALL},
    {PARAMETER_SPAN_BIAS,         "qa_outputs.bias",            "2",  PART_SPAN,       VALUE_ZERO,   false, FOR_ALL},
    {0},
};

/* clang-format on */

const struct arch arch_mpnet = {
    .model_type = "mpnet",
    .title = "MPNet",
    .tokenizer = "MPNetTokenizer",
    .prefix = "mpnet.",
    .prefixed = PART_ENCODER | PART_POOLER,
    .layer = "encoder.layer.%u.",
    .activation = "hidden_act",
    .positions_skip_pad = true,
    .head_gelu = true,
    .classes = classes,
    .sizes = sizes,
    .reals = reals,
    .onlys = onlys,
    .off = off,
    .prefixes = prefixes,
    .renames = renames,
    .decoder_bias = "lm_head.decoder.bias",
    .buffers = buffers,
    .before = before,
    .in_layer = in_layer,
    .after = after,
    .block = {{BLOCK_ATTENTION, NORM_AFTER}, {BLOCK_FEED, NORM_AFTER}},
    .blocks = 2,
    .defaults = {.vocabulary = 30527,
                 .hidden = 768,
                 .layers = 12,
                 .heads = 12,
                 .intermediate = 3072,
                 .positions = 512,
                 .relative = RELATIVE_ROWS,
                 .labels = 2,
                 .pad = 1,
                 .layer_norm_eps = 1e-12,
                 .initializer_range = 0.02,
                 .hidden_dropout = 0.1,
                 .attention_dropout = 0.1,
                 .classifier_dropout = -1,
                 .choice_dropout = -1,
                 .token_dropout = -1,
                 .tied = true},
};
