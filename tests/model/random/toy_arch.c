/* SPDX-License-Identifier: Apache-2.0 */
/* An architecture of the tests: norms come first, a final one follows, there are no token types, and names are its own. */
#include "tests/model/random/toy_arch.h"

#define AT(field) offsetof(struct model_config, field)

/* clang-format off */
static const struct arch_class classes[] = {
    {"ToyModel",          PART_ENCODER, 0},
    {"ToyForPreTraining", PART_ENCODER | PART_POOLER | PART_MLM | PART_NSP, 0},
    {0},
};

static const struct arch_size sizes[] = {
    {"words",     AT(vocabulary),   1, 1 << 22, true},
    {"width",     AT(hidden),       1, 1 << 16, true},
    {"depth",     AT(layers),       1, 4096,    true},
    {"heads",     AT(heads),        1, 4096,    true},
    {"inner",     AT(intermediate), 1, 1 << 18, true},
    {"positions", AT(positions),    1, 1 << 20, true},
    {0},
};

static const struct arch_real reals[] = {{0}};
static const struct arch_only onlys[] = {{0}};
static const char *const none[] = {NULL};
static const struct arch_rename renames[] = {{0}};
static const struct arch_prefix prefixes[] = {
    {"table.", PART_ENCODER}, {"layers.", PART_ENCODER}, {"final.", PART_ENCODER}, {"pool.", PART_POOLER},
    {"mlm.", PART_MLM},       {"nsp.", PART_NSP},        {0},
};

static const struct parameter_row before[] = {
    {PARAMETER_WORDS,            "table.words",      "VH", PART_ENCODER, VALUE_NORMAL_PAD, true},
    {PARAMETER_POSITIONS,        "table.positions",  "PH", PART_ENCODER, VALUE_NORMAL,     true},
    {PARAMETER_EMBEDDINGS_GAIN,  "table.norm.gain",  "H",  PART_ENCODER, VALUE_ONE,        false},
    {PARAMETER_EMBEDDINGS_SHIFT, "table.norm.shift", "H",  PART_ENCODER, VALUE_ZERO,       false},
    {0},
}, in_layer[] = {
    {PARAMETER_OUTPUT_GAIN,   "norm1.gain",  "H",  PART_ENCODER, VALUE_ONE,    false},
    {PARAMETER_OUTPUT_SHIFT,  "norm1.shift", "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_QUERY_WEIGHT,  "q.weight",    "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_QUERY_BIAS,    "q.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_KEY_WEIGHT,    "k.weight",    "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_KEY_BIAS,      "k.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_VALUE_WEIGHT,  "v.weight",    "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_VALUE_BIAS,    "v.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTPUT_WEIGHT, "o.weight",    "HH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_OUTPUT_BIAS,   "o.bias",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTER_GAIN,    "norm2.gain",  "H",  PART_ENCODER, VALUE_ONE,    false},
    {PARAMETER_OUTER_SHIFT,   "norm2.shift", "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_INNER_WEIGHT,  "up.weight",   "IH", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_INNER_BIAS,    "up.bias",     "I",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_OUTER_WEIGHT,  "down.weight", "HI", PART_ENCODER, VALUE_NORMAL, true},
    {PARAMETER_OUTER_BIAS,    "down.bias",   "H",  PART_ENCODER, VALUE_ZERO,   false},
    {0},
}, after[] = {
    {PARAMETER_FINAL_GAIN,       "final.gain",       "H",  PART_ENCODER, VALUE_ONE,    false},
    {PARAMETER_FINAL_SHIFT,      "final.shift",      "H",  PART_ENCODER, VALUE_ZERO,   false},
    {PARAMETER_POOLER_WEIGHT,    "pool.weight",      "HH", PART_POOLER,  VALUE_NORMAL, true},
    {PARAMETER_POOLER_BIAS,      "pool.bias",        "H",  PART_POOLER,  VALUE_ZERO,   false},
    {PARAMETER_MLM_DENSE_WEIGHT, "mlm.dense.weight", "HH", PART_MLM,     VALUE_NORMAL, true},
    {PARAMETER_MLM_DENSE_BIAS,   "mlm.dense.bias",   "H",  PART_MLM,     VALUE_ZERO,   false},
    {PARAMETER_MLM_GAIN,         "mlm.norm.gain",    "H",  PART_MLM,     VALUE_ONE,    false},
    {PARAMETER_MLM_SHIFT,        "mlm.norm.shift",   "H",  PART_MLM,     VALUE_ZERO,   false},
    {PARAMETER_MLM_BIAS,         "mlm.bias",         "V",  PART_MLM,     VALUE_ZERO,   false},
    {PARAMETER_NSP_WEIGHT,       "nsp.weight",       "2H", PART_NSP,     VALUE_NORMAL, true},
    {PARAMETER_NSP_BIAS,         "nsp.bias",         "2",  PART_NSP,     VALUE_ZERO,   false},
    {0},
};
/* clang-format on */

const struct arch arch_toy = {
    .model_type = "toy",
    .title = "the toy",
    .tokenizer = "BertTokenizer",
    .prefix = "toy.",
    .prefixed = PART_ENCODER,
    .layer = "layers.%u.",
    .activation = "hidden_act",
    .classes = classes,
    .sizes = sizes,
    .reals = reals,
    .onlys = onlys,
    .off = none,
    .prefixes = prefixes,
    .renames = renames,
    .buffers = none,
    .before = before,
    .in_layer = in_layer,
    .after = after,
    .block = {{BLOCK_ATTENTION, NORM_BEFORE}, {BLOCK_FEED, NORM_BEFORE}},
    .blocks = 2,
    .defaults = {.labels = 2,
                 .layer_norm_eps = 1e-6,
                 .initializer_range = 0.02,
                 .classifier_dropout = -1,
                 .choice_dropout = -1,
                 .tied = true},
};
