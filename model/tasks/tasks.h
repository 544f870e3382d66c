/* SPDX-License-Identifier: Apache-2.0 */
/* From text to answers: code that the commands and the server share. Texts are tokenized, ordered by length, and
   run in batches of at most `batch_tokens` tokens. Answers are in the order of the texts. */
#pragma once
#include "model/engine/engine.h"

struct task_text {
    struct text_part a, b; /* b: the second part of a pair, or null bytes */
    const uint32_t *
        token_ids; /* the whole sequence, instead of a, b and the prompt; null: a and b are used */
    uint32_t count; /* of token_ids, which are within the limits of the model */
};

/* Names of texts in messages, "UNIT NUMBER"; zeroed: the lines of a file, from 1. */
struct task_names {
    const char *unit;       /* null: "line" */
    const uint32_t *number; /* [texts]; null: from 1 */
};

struct task_options {
    uint32_t max_length; /* tokens; 0: the limit of the model and its tokenizer */
    uint32_t overlap; /* task_answer: tokens that two windows share; 0: the folder's, or 128 */
    uint32_t batch_tokens;   /* 0: 4096 */
    struct text_part prompt; /* goes before part a of each text; null bytes: none */
    uint32_t prompt_tokens;  /* tokens of `prompt` that pooling excludes; 0: none */
    struct task_names names;
    bool *not_finite; /* set where that is why a task fails; or null */
    void (*progress)(void *context, uint64_t done, uint64_t all); /* texts; null: no receiver */
    void *context;
};

/* The most tokens that a text keeps: lengths_text() of the model. */
uint32_t task_longest(const struct engine *g, uint32_t max_length);

/* The tokens of many texts, and the batches that they are run in. */
struct task_batches {
    struct sequence *sequence; /* [texts], in the order given; into token_ids */
    uint32_t *token_ids;       /* all token ids */
    struct token_span *span;   /* their places in the texts */
    uint32_t texts, cut;       /* cut: texts that max_length shortened */
    bool *is_cut;              /* [texts] */
    uint32_t *left_out; /* [texts]: number of first tokens that pooling excludes; null: none */
    uint32_t *order;    /* [texts]: the texts in the order of running, longest first */
    uint32_t *first;    /* [batches + 1]: batch k is order[first[k]] .. order[first[k+1]] */
    uint32_t batches;
};
int task_prepare(const struct engine *g, const struct task_text *text, uint32_t n,
                 const struct task_options *o, struct task_batches *ret, struct error *e);
uint32_t task_budget(const struct task_options *o); /* tokens of a batch */
/* Orders b->sequence, which the caller has filled in, and divides it into batches. */
void task_form(struct task_batches *b, const struct task_options *o);
/* Joins the texts of n task_prepare() results. The parts still belong to the caller. */
void task_join(const struct task_batches *const *part, uint32_t n, const struct task_options *o,
               struct task_batches *ret);
void task_finish(struct task_batches *b); /* accepts a zeroed one */

/* Engine, options and memory of a task. */
struct task_runner {
    const struct engine *engine;
    const struct task_options *options;
    struct engine_workspace *workspace;
};

/* Receiver of each batch after it has run: text[k] is the workspace's sequence k. */
struct task_visitor {
    int (*batch)(void *context, const uint32_t *text, uint32_t n,
                 struct engine_workspace *workspace, struct error *e);
    void *context;
};
int task_run(const struct task_runner *t, const struct task_batches *b,
             const struct task_visitor *visitor, struct error *e);
/* ERROR_FALSE if one of n numbers that the model gives for a text is not finite. The tasks below check their output so. */
int task_check_output(const struct task_options *o, uint32_t text, const float *x, uint64_t n,
                      struct error *e);

/* Way from token vectors to the vector of a sentence. */
struct embedding {
    enum pooling pooling[POOLINGS_MOST]; /* their vectors are concatenated */
    uint32_t poolings;
    struct sentence_dense *const *step; /* then these, in order; null: scale to norm 1 */
    uint32_t steps;
    bool normalize;      /* then scale the whole vector to norm 1 */
    uint32_t dimension;  /* then keep its first numbers; 0: all */
    bool normalize_kept; /* then scale the rest to norm 1 */
};
uint32_t embedding_width(const struct engine *g,
                         const struct embedding *m); /* before the cut */
uint32_t embedding_size(const struct engine *g, const struct embedding *m);
/* Normalizes and cuts x [embedding_width()]: x[0 .. embedding_size()) is the result. */
void embedding_cut(const struct engine *g, const struct embedding *m, float *x);

/* Sentence vectors: [n, embedding_size()] f32. Pooling other than none. */
int task_embed(const struct task_runner *t, const struct task_batches *b,
               const struct embedding *how, float *ret, struct error *e);

/* The likeliest words for each [MASK] of a text, best first. */
struct task_word {
    uint32_t token_id;
    float probability;
};
struct task_gap {
    uint32_t text, token;   /* the text, and the token in it */
    struct task_word *word; /* [top] */
};
struct task_gaps {
    struct task_gap *gap; /* by text and token */
    uint32_t gaps, capacity, top;
};
int task_fill(const struct task_runner *t, const struct task_batches *b, uint32_t top,
              struct task_gaps *ret, struct error *e);
void task_gaps_finish(struct task_gaps *g);

/* Output of a classifier. By problem_type the values are probabilities (softmax for one label, sigmoid for many)
   or numbers (regression); a single label has a sigmoid unless problem_type is "regression". A token classifier has a row for each token, multiple choice one value for each text. A
   model of pre-training or next sentences predicts whether the second part follows the first: labels "next" and
   "not_next". */
enum task_kind {
    TASK_SINGLE,
    TASK_MULTI,
    TASK_REGRESSION,
    TASK_TOKENS,
    TASK_CHOICE,
    TASK_NEXT
};
enum task_kind task_kind(const struct model_config *c); /* by architecture and problem_type */
/* True if a number can be read from the one label's logit: without a problem_type, too, transformers trains such a head for
   regression. */
bool task_gives_number(const struct model_config *c);
/* The parts that task_classify needs, and the name of a label. */
uint32_t task_classify_parts(enum task_kind kind);
const char *task_label(const struct model_config *c, uint32_t label, char buffer[24]);
struct task_labels {
    enum task_kind kind;
    uint32_t labels;
    uint64_t *first; /* [texts + 1]: rows of text k are first[k] .. first[k+1] */
    float *value;    /* [rows, labels] */
};
int task_classify(const struct task_runner *t, const struct task_batches *b,
                  struct task_labels *ret, struct error *e);
void task_labels_finish(struct task_labels *l);

/* The classifier's logit for each text, [texts]. Models of texts with one label. */
int task_logits(const struct task_runner *t, const struct task_batches *b, float *ret,
                struct error *e);

/* Span of text b that answers question a. A text that is too long is read in windows of
   o->max_length tokens (0: those that the folder's fine-tuning kept, else 384 or the limit of its texts) that overlap by
   o->overlap; see model/engine/lengths.h and model/base/windows.h. */
struct task_span {
    uint32_t begin, end; /* bytes of b */
    float score;         /* logit of the start plus logit of the end */
    float probability;   /* among the returned spans of the text */
};
struct task_spans {
    uint32_t texts, top;
    struct task_span *span; /* [texts, top], best first */
    uint32_t *count;        /* [texts]: number of spans found */
    float *no_answer;       /* [texts]: score of [CLS], the least of the windows; SQuAD 2 */
    uint32_t cut, cut_to;   /* questions that were cut to cut_to tokens */
};
/* Score of no answer minus that of the best answer to question k; without an answer that of no answer. */
double task_no_answer_lead(const struct task_spans *s, uint32_t k);
/* True if no answer to question k is to be given: there is none, or the lead is above the threshold (--null-threshold). */
bool task_is_withheld(const struct task_spans *s, uint32_t k, double threshold);
int task_answer(const struct task_runner *t, const struct task_text *text, uint32_t n,
                uint32_t top, struct task_spans *ret, struct error *e);
void task_spans_finish(struct task_spans *s);
