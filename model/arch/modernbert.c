/* SPDX-License-Identifier: Apache-2.0 */
/* ModernBERT (Warner et al. 2024). Names and keys are those of transformers' modeling_modernbert.py and
   configuration_modernbert.py. Norms come first, the first layer's attention has none; positions are rotations of queries
   and keys; local layers have windows; the feed forward is gated; every head begins with one dense layer, activation and norm. */
#include "model/arch/arch.h"

#define AT(field) offsetof(struct model_config, field)

/* clang-format off */
static const struct arch_class classes[] = {
    {"ModernBertModel",                     PART_ENCODER, 0, false},
    {"ModernBertForMaskedLM",               PART_ENCODER | PART_POOLER | PART_MLM, 0, false},
    {"ModernBertForSequenceClassification", PART_ENCODER | PART_POOLER | PART_CLASSIFIER, 0, false},
    {"ModernBertForTokenClassification",    PART_ENCODER | PART_POOLER | PART_CLASSIFIER, 0, false},
    {"ModernBertForMultipleChoice",         PART_ENCODER | PART_POOLER | PART_CLASSIFIER, 1, false},
    {"ModernBertForQuestionAnswering",      PART_ENCODER | PART_POOLER | PART_SPAN, 0, false},
    {0},
};

static const struct arch_size sizes[] = {
    {"vocab_size",                 AT(vocabulary),   1, 1 << 22, false},
    {"hidden_size",                AT(hidden),       1, 1 << 16, false},
    {"num_hidden_layers",          AT(layers),       1, 4096,    false},
    {"num_attention_heads",        AT(heads),        1, 4096,    false},
    {"intermediate_size",          AT(intermediate), 1, 1 << 18, false},
    {"max_position_embeddings",    AT(positions),    1, 1 << 20, false},
    {"local_attention",            AT(local),        1, 1 << 21, false},
    {"global_attn_every_n_layers", AT(global_every), 1, 4096,    false},
    {"pad_token_id",               AT(pad),          0, 1 << 22, false},
    {"num_labels",                 AT(labels),       1, 1 << 20, false},
    {0},
};

static const struct arch_real reals[] = {
    {"norm_eps",           AT(layer_norm_eps),     0, 1},
    {"initializer_range",  AT(initializer_range),  0, 1e6},
    {"embedding_dropout",  AT(hidden_dropout),     0, 1},
    {"attention_dropout",  AT(attention_dropout),  0, 1},
    {"mlp_dropout",        AT(feed_dropout),       0, 1},
    {"classifier_dropout", AT(classifier_dropout), 0, 1},
    {"classifier_dropout", AT(choice_dropout),     0, 1},
    {"classifier_dropout", AT(token_dropout),      0, 1},
    {"classifier_dropout", AT(span_dropout),       0, 1},
    {"global_rope_theta",  AT(global_theta),       1e-3, 1e12},
    {"local_rope_theta",   AT(local_theta),        1e-3, 1e12},
    {0},
};

static const struct arch_flag flags[] = {
    {"attention_bias", AT(attention_bias)}, {"mlp_bias", AT(feed_bias)},       {"norm_bias", AT(norm_bias)},
    {"decoder_bias",   AT(decoder_bias)},   {"classifier_bias", AT(dense_bias)}, {0},
};

static const struct arch_only onlys[] = {{0}};
static const char *const off[] = {"is_decoder", "is_causal", "add_cross_attention", "is_encoder_decoder", NULL};

static const struct arch_prefix prefixes[] = {
    {"embeddings.", PART_ENCODER}, {"layers.", PART_ENCODER}, {"final_norm.", PART_ENCODER}, {"head.", PART_POOLER},
    {"decoder.", PART_MLM},        {"classifier.", PART_CLASSIFIER}, {0},
};

static const struct arch_rename renames[] = {{0}};
static const char *const buffers[] = {NULL};

static const struct parameter_row before[] = {
    {PARAMETER_WORDS,            "embeddings.tok_embeddings.weight", "VH", PART_ENCODER, VALUE_NORMAL_PAD, true,  FOR_ALL},
    {PARAMETER_EMBEDDINGS_GAIN,  "embeddings.norm.weight",           "H",  PART_ENCODER, VALUE_ONE,        false, FOR_ALL},
    {PARAMETER_EMBEDDINGS_SHIFT, "embeddings.norm.bias",             "H",  PART_ENCODER, VALUE_ZERO,       false, WITH_NORM_BIAS},
    {0},
}, in_layer[] = {
    {PARAMETER_OUTPUT_GAIN,   "attn_norm.weight", "H",  PART_ENCODER, VALUE_ONE,    false, BEHIND_FIRST},
    {PARAMETER_OUTPUT_SHIFT,  "attn_norm.bias",   "H",  PART_ENCODER, VALUE_ZERO,   false, BEHIND_FIRST_WITH_NORM_BIAS},
    {PARAMETER_QKV_WEIGHT,    "attn.Wqkv.weight", "3H", PART_ENCODER, VALUE_NORMAL, true,  FOR_ALL},
    {PARAMETER_QKV_BIAS,      "attn.Wqkv.bias",   "3",  PART_ENCODER, VALUE_ZERO,   false, WITH_ATTENTION_BIAS},
    {PARAMETER_OUTPUT_WEIGHT, "attn.Wo.weight",   "HH", PART_ENCODER, VALUE_NORMAL, true,  FOR_ALL},
    {PARAMETER_OUTPUT_BIAS,   "attn.Wo.bias",     "H",  PART_ENCODER, VALUE_ZERO,   false, WITH_ATTENTION_BIAS},
    {PARAMETER_OUTER_GAIN,    "mlp_norm.weight",  "H",  PART_ENCODER, VALUE_ONE,    false, FOR_ALL},
    {PARAMETER_OUTER_SHIFT,   "mlp_norm.bias",    "H",  PART_ENCODER, VALUE_ZERO,   false, WITH_NORM_BIAS},
    {PARAMETER_INNER_WEIGHT,  "mlp.Wi.weight",    "GH", PART_ENCODER, VALUE_NORMAL, true,  FOR_ALL},
    {PARAMETER_INNER_BIAS,    "mlp.Wi.bias",      "G",  PART_ENCODER, VALUE_ZERO,   false, WITH_FEED_BIAS},
    {PARAMETER_OUTER_WEIGHT,  "mlp.Wo.weight",    "HI", PART_ENCODER, VALUE_NORMAL, true,  FOR_ALL},
    {PARAMETER_OUTER_BIAS,    "mlp.Wo.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false, WITH_FEED_BIAS},
    {0},
}, after[] = {
    {PARAMETER_FINAL_GAIN,        "final_norm.weight", "H",  PART_ENCODER,    VALUE_ONE,    false, FOR_ALL},
    {PARAMETER_FINAL_SHIFT,       "final_norm.bias",   "H",  PART_ENCODER,    VALUE_ZERO,   false, WITH_NORM_BIAS},
    {PARAMETER_MLM_DENSE_WEIGHT,  "head.dense.weight", "HH", PART_POOLER,     VALUE_NORMAL, true,  FOR_ALL},
    {PARAMETER_MLM_DENSE_BIAS,    "head.dense.bias",   "H",  PART_POOLER,     VALUE_ZERO,   false, WITH_DENSE_BIAS},
    {PARAMETER_MLM_GAIN,          "head.norm.weight",  "H",  PART_POOLER,     VALUE_ONE,    false, FOR_ALL},
    {PARAMETER_MLM_SHIFT,         "head.norm.bias",    "H",  PART_POOLER,     VALUE_ZERO,   false, WITH_NORM_BIAS},
    {PARAMETER_MLM_BIAS,          "decoder.bias",      "V",  PART_MLM,        VALUE_ZERO,   false, WITH_DECODER_BIAS},
    {PARAMETER_MLM_DECODER,       "decoder.weight",    "VH", PART_MLM,        VALUE_NORMAL, true,  FOR_ALL},
    {PARAMETER_CLASSIFIER_WEIGHT, "classifier.weight", "LH", PART_CLASSIFIER, VALUE_NORMAL, true,  FOR_LABELS},
    {PARAMETER_CLASSIFIER_BIAS,   "classifier.bias",   "L",  PART_CLASSIFIER, VALUE_ZERO,   false, FOR_LABELS},
    {PARAMETER_SPAN_WEIGHT,       "classifier.weight", "2H", PART_SPAN,       VALUE_NORMAL, true,  FOR_SPANS},
    {PARAMETER_SPAN_BIAS,         "classifier.bias",   "2",  PART_SPAN,       VALUE_ZERO,   false, FOR_SPANS},
    {0},
};
/* clang-format on */

const struct arch arch_modernbert = {
    .model_type = "modernbert",
    .title = "ModernBERT",
    .tokenizer = "PreTrainedTokenizerFast",
    .prefix = "model.",
    .prefixed = PART_ENCODER,
    .layer = "layers.%u.",
    .activation = "hidden_activation",
    .head_activation = "classifier_activation",
    .pooler = POOLER_SHARED,
    .gated = true,
    .classes = classes,
    .sizes = sizes,
    .reals = reals,
    .flags = flags,
    .onlys = onlys,
    .off = off,
    .prefixes = prefixes,
    .renames = renames,
    .buffers = buffers,
    .before = before,
    .in_layer = in_layer,
    .after = after,
    .block = {{BLOCK_ATTENTION, NORM_BEFORE, .drops_as_probabilities = true},
              {BLOCK_FEED, NORM_BEFORE, .keeps = true}},
    .blocks = 2,
    .defaults = {.vocabulary = 50368,
                 .hidden = 768,
                 .layers = 22,
                 .heads = 12,
                 .intermediate = 1152,
                 .positions = 8192,
                 .local = 128,
                 .global_every = 3,
                 .global_theta = 160000,
                 .local_theta = 10000,
                 .one_type = true,
                 .decoder_bias = true,
                 .labels = 2,
                 .pad = 50283,
                 .layer_norm_eps = 1e-5,
                 .initializer_range = 0.02,
                 .tied = true},
};
