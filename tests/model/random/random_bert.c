/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/random/random_bert.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/checkpoint/init.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/save.h"
#include "model/mask/model_mask.h"
#include "tests/model/random/toy_arch.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* clang-format off */
const struct bert_case bert_cases[] = {
    {"dense",              2, 64, 4, "gelu",     "dense",           "softmax",     0},
    {"heads of 8",         2, 32, 4, "gelu_new", "window(3)",       "softmax",     0},
    {"heads of 26",        1, 130, 5, "relu",    "longformer(5,2)", "softmax",     0},
    {"12 heads, a mask each", 1, 96, 12, "gelu_pytorch_tanh", "dam-s-example", "softmax", 0},
    {"queries that see nothing", 2, 48, 3, "silu", "window(9) - rows(3)", "softmax", 0},
    {"sparsegen",          2, 64, 4, "gelu",     "dense",           "sparsegen=-4", -4},
    {"sparsegen, sparse",  2, 64, 4, "gelu",     "strided(8)",      "sparsegen=-1", -1},
    {"norms first",        2, 64, 4, "gelu",     "longformer(5,2)", "softmax",     0, "toy"},
    {"norms first, heads of 26", 1, 52, 2, "silu", "dense",         "softmax",     0, "toy"},
    {"no dropout after attention, no types", 2, 64, 4, "gelu", "window(5)", "softmax", 0, "distilbert"},
    {"positions behind padding's", 2, 64, 4, "silu", "window(5)",   "softmax",     0, "roberta"},
    {"positions behind padding's, bert's blocks", 1, 52, 2, "gelu", "dense", "softmax", 0, "xlm-roberta"},
    {"a bias by distance",     2, 64, 4, "gelu", "window(40)",      "softmax",     0, "mpnet"},
    {"ModernBERT",             3, 48, 2, "gelu", NULL,              "softmax",     0, "modernbert"},
    {NULL},
};
/* clang-format on */

const struct arch *const arch_own[] = {&arch_toy, NULL};

char random_folder[] = "/tmp/maskbert-encoder-XXXXXX";

bool random_begin(void)
{
    return mkdtemp(random_folder);
}

int random_end(void)
{
    char line[100];
    snprintf(line, sizeof line, "rm -r %s", random_folder);
    return system(line);
}

int random_setup(void **unused)
{
    (void)unused;
    return random_begin() ? 0 : -1;
}

int random_teardown(void **unused)
{
    (void)unused;
    return random_end();
}

static uint64_t random_state = 1;

void random_restart(void)
{
    random_state = 1;
}

uint32_t random_draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % below);
}

/* Adds -0.1 .. 0.1 to what a new model has as 0 or 1 throughout. */
static void shake(struct weights *w)
{
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct parameter *p = &w->tensor[k].parameter;
        float *value = w->tensor[k].own;
        for (uint64_t i = 0; i < p->count && p->first != VALUE_NORMAL_PAD; i++)
            if (p->first != VALUE_NORMAL)
                value[i] += ((float)random_draw(2001) - 1000) / 10000;
    }
}

/* Width of the feed forward: one that is cut into slices, and one that is not. */
static uint32_t intermediate(uint32_t hidden)
{
    return hidden % 64 ? 2 * hidden + 4 : 4 * hidden;
}

static json_t *toy_config(const struct bert_case *k)
{
    return json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s}", "architectures",
                     "ToyForPreTraining", "model_type", "toy", "words", VOCABULARY, "width",
                     (int)k->hidden, "depth", (int)k->layers, "heads", (int)k->heads, "inner",
                     (int)intermediate(k->hidden), "positions", POSITIONS, "hidden_act",
                     k->act);
}

static json_t *bert_config(const struct bert_case *k, uint32_t types)
{
    return json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s}", "architectures",
                     "BertForPreTraining", "model_type", "bert", "vocab_size", VOCABULARY,
                     "hidden_size", (int)k->hidden, "num_hidden_layers", (int)k->layers,
                     "num_attention_heads", (int)k->heads, "intermediate_size",
                     (int)intermediate(k->hidden), "max_position_embeddings", POSITIONS,
                     "type_vocab_size", (int)types, "hidden_act", k->act);
}

static json_t *distilbert_config(const struct bert_case *k)
{
    return json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s}", "architectures",
                     "DistilBertForMaskedLM", "model_type", "distilbert", "vocab_size",
                     VOCABULARY, "dim", (int)k->hidden, "n_layers", (int)k->layers, "n_heads",
                     (int)k->heads, "hidden_dim", (int)intermediate(k->hidden),
                     "max_position_embeddings", POSITIONS, "activation", k->act);
}

static void make_model(json_t *json)
{
    struct model_config c = {0};
    struct weights w = {0};
    struct error e = {0};
    if (config_parse(json, &c, &e) < 0)
        fail_msg("%s", e.text);
    json_decref(json);
    weights_begin(&c, config_parts(&c), &w);
    weights_initialise(&w, &c, 0.2, 3);
    shake(&w);
    if (model_save(random_folder, &c, &w, ELEMENT_F32, &e) < 0)
        fail_msg("%s", e.text);
    weights_finish(&w);
    config_finish(&c);
}

void random_model(uint32_t layers, uint32_t hidden, uint32_t heads, uint32_t types,
                  const char *act)
{
    const struct bert_case k = {.layers = layers, .hidden = hidden, .heads = heads, .act = act};
    make_model(bert_config(&k, types));
}

static json_t *roberta_config(const struct bert_case *k)
{
    const bool mpnet = !strcmp(k->type, "mpnet"); /* its padding is token 1 */
    const int before = mpnet ? 2 : 4;
    const char *class = mpnet             ? "MPNetForMaskedLM"
                        : *k->type == 'x' ? "XLMRobertaForMaskedLM"
                                          : "RobertaForMaskedLM";
    json_t *c = bert_config(k, 1);
    json_object_set_new(c, "model_type", json_string(k->type));
    json_object_set_new(c, "architectures", json_pack("[s]", class));
    json_object_set_new(c, "pad_token_id", json_integer(3));
    json_object_set_new(c, "max_position_embeddings", json_integer(POSITIONS + before));
    return c;
}

/* With biases in odd places. */
static json_t *modernbert_config(const struct bert_case *k)
{
    return json_pack(
        "{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:s, s:s, s:f}",
        "architectures", "ModernBertForMaskedLM", "model_type", "modernbert", "vocab_size",
        VOCABULARY, "hidden_size", (int)k->hidden, "num_hidden_layers", (int)k->layers,
        "num_attention_heads", (int)k->heads, "intermediate_size", (int)intermediate(k->hidden),
        "max_position_embeddings", POSITIONS, "pad_token_id", 3, "local_attention", 11,
        "global_attn_every_n_layers", 2, "attention_bias", 1, "classifier_pooling", "mean",
        "hidden_activation", k->act, "local_rope_theta", 300.0);
}

static json_t *config_of(const struct bert_case *c)
{
    const char *type = c->type ? c->type : "bert";
    return !strcmp(type, "bert")         ? bert_config(c, 2)
           : !strcmp(type, "toy")        ? toy_config(c)
           : !strcmp(type, "distilbert") ? distilbert_config(c)
           : !strcmp(type, "modernbert") ? modernbert_config(c)
                                         : roberta_config(c);
}

void random_model_of(const struct bert_case *c)
{
    make_model(config_of(c));
}

void random_head(const struct bert_case *c, const char *class, uint32_t labels)
{
    json_t *json = config_of(c);
    json_object_set_new(json, "architectures", json_pack("[s]", class));
    json_object_set_new(json, "num_labels", json_integer(labels));
    make_model(json);
}

void random_classifier(uint32_t layers, uint32_t hidden, uint32_t heads, const char *act)
{
    const struct bert_case k = {.layers = layers, .hidden = hidden, .heads = heads, .act = act};
    random_head(&k, "BertForSequenceClassification", LABELS);
}

void batch_suit(struct batch *b, const struct model_config *c)
{
    for (uint32_t k = 0; k < SEQUENCES && c->types == 1; k++)
        b->list[k].first_part = b->list[k].count;
}

void batch_make(struct batch *b)
{
    static const uint32_t length[SEQUENCES] = {5, POSITIONS,     1,  17, 16,
                                               2, POSITIONS - 1, 33, 64};
    for (uint32_t k = 0; k < SEQUENCES; k++) {
        for (uint32_t i = 0; i < length[k]; i++)
            b->token_ids[k][i] = random_draw(VOCABULARY);
        uint32_t first = k % 2 ? length[k] : (length[k] + 1) / 2;
        b->list[k] = (struct sequence){b->token_ids[k], length[k], first};
    }
}

uint32_t batch_tokens(const struct batch *b)
{
    uint32_t tokens = 0;
    for (uint32_t k = 0; k < SEQUENCES; k++)
        tokens += b->list[k].count;
    return tokens;
}

void batch_encode(const struct engine *g, const struct sequence *list, uint32_t n,
                  struct engine_workspace *workspace)
{
    struct error e = {0};
    if (engine_encode(g, list, n, workspace, &e) < 0)
        fail_msg("%s", e.text);
}

float *workspace_rows(const struct engine *g, struct engine_workspace *workspace)
{
    struct error e = {0};
    if (engine_fetch(g, workspace, &e) < 0)
        fail_msg("%s", e.text);
    float *ret = memory_new((size_t)workspace->tokens * g->config.hidden, sizeof *ret);
    for (uint32_t r = 0; r < workspace->tokens; r++)
        engine_row(g, workspace, r, ret + (size_t)r * g->config.hidden);
    return ret;
}

float *batch_rows(const struct engine *g, const struct sequence *list, uint32_t n)
{
    struct engine_workspace workspace = {0};
    batch_encode(g, list, n, &workspace);
    float *ret = workspace_rows(g, &workspace);
    engine_workspace_finish(&workspace);
    return ret;
}

struct mask *random_mask(const char *mask, const struct model_config *c, struct error *e)
{
    return mask ? model_mask(mask, c, e) : model_mask_own(c, e);
}

double *plain_rows(const struct engine *g, const char *mask, const char *transform,
                   double lambda, const struct batch *b)
{
    struct error e = {0};
    struct mask *m = random_mask(mask, &g->config, &e);
    struct plain_bert plain = {&g->config, &g->weights, m, strcmp(transform, "softmax") != 0,
                               lambda};
    uint32_t h = g->config.hidden, at = 0;
    double *ret = memory_new((size_t)SEQUENCES * POSITIONS * h, sizeof *ret);
    for (uint32_t k = 0; k < SEQUENCES; k++) {
        double *x = plain_hidden(&plain, &b->list[k]);
        memcpy(ret + (size_t)at * h, x, (size_t)b->list[k].count * h * sizeof *x);
        at += b->list[k].count;
        free(x);
    }
    mask_destroy(m);
    return ret;
}

/* NaN fails both. */
void must_be_close(const char *name, const float *ours, const double *truth, size_t count,
                   double worst_allowed, double rms_allowed)
{
    double worst = 0, largest = 0, errors = 0, squares = 0;
    for (size_t k = 0; k < count; k++) {
        double error = fabs((double)ours[k] - truth[k]);
        worst = error <= worst ? worst : error;
        largest = fmax(largest, fabs(truth[k]));
        errors += error * error;
        squares += truth[k] * truth[k];
    }
    if (!(worst <= worst_allowed * largest))
        fail_msg("%s: off by %g of the largest value, at most %g", name, worst / largest,
                 worst_allowed);
    if (!(sqrt(errors) <= rms_allowed * sqrt(squares)))
        fail_msg("%s: rms error %g, at most %g", name, sqrt(errors / squares), rms_allowed);
}

double worst_of(const float *a, const float *b, size_t count)
{
    double worst = 0;
    for (size_t k = 0; k < count; k++) {
        double error = fabs((double)a[k] - (double)b[k]);
        worst = error <= worst ? worst : error;
    }
    return worst;
}
