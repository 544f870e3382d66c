/* SPDX-License-Identifier: Apache-2.0 */
/* Input of one step of training: sequences without padding, and targets: rows of the last hidden states with a label
   for each. model/objective/ makes it; model/train/ and the backends read it. */
#pragma once
#include "model/engine/engine.h"
#include <stdint.h>

/* Head that a target's rows go through. */
enum target_head {
    TARGET_WORDS,  /* the words of the vocabulary */
    TARGET_NEXT,   /* pooled rows, the two labels of next sentences */
    TARGET_POOLED, /* pooled rows, the classifier */
    TARGET_ROWS,   /* plain rows, the classifier */
    TARGET_SPAN,   /* plain rows, the two labels of spans: start and end */
    TARGET_HEADS
};

struct target_form {
    uint32_t parts;                 /* PART_ bits that the engine needs */
    bool pooled;                    /* the pooler comes first */
    bool drops;                     /* dropout comes before the linear to the labels */
    enum parameter_id weight, bias; /* of the linear to the labels; not of words */
};
const struct target_form *target_form(enum target_head head);
/* Number of labels of the head. */
uint32_t target_labels(const struct model_config *c, enum target_head head);
/* The model's own dropout before the head's linear. */
double target_dropout(const struct model_config *c, enum target_head head);

enum target_loss_kind {
    LOSS_LABELS, /* a row's cross-entropy over the labels; label[k]: its label */
    LOSS_SQUARE, /* (logit - value)^2 of the row's one logit; the head has one label */
    LOSS_CHOICE, /* cross-entropy over the rows of a group (train_batch.group sequences), one logit each; label[k]: 1 for
                    the right row, else 0 */
    LOSS_SPAN, /* mean of two cross-entropies over the rows of a sequence: of the first logit for the start, of the
                  second for the end; label[k]: bit 0 if the start is here, bit 1 if the end is */
};

/* A sum of losses: one for each row (LABELS, SQUARE), each group (CHOICE) or each sequence that has rows (SPAN). */
struct train_target {
    enum target_head head;
    uint32_t count;        /* rows; 0: it adds nothing */
    const uint32_t *row;   /* [count]: rows of the batch, ascending */
    const uint32_t *label; /* [count]; SQUARE: null */
    enum target_loss_kind loss;
    const float *value; /* [count]; only SQUARE */
};

enum { TARGETS_MOST = 4 };

struct train_batch {
    uint32_t sequences, tokens;
    struct sequence *list; /* [sequences] */
    int32_t *offsets; /* [sequences + 1]: rows of sequence s are offsets[s] .. offsets[s+1] */
    /* [sequences]: numbers of the sequences. Dropout depends on them and the seed, not on the place in the batch. The
       objective sets a sequence's index in the data; the trainer adds epoch * sequences of the data, modulo 2^32 */
    uint32_t *sample;
    uint32_t targets;
    struct train_target target[TARGETS_MOST];
    uint32_t group; /* sequences of a sample, which no part of a batch divides; 0 counts as 1 */
};
/* Sequences of a sample, at least 1. */
uint32_t train_batch_group(const struct train_batch *b);

/* Null: the batch has no target with that head. */
const struct train_target *train_batch_target(const struct train_batch *b,
                                              enum target_head head);
/* Rows of all targets. */
uint64_t train_batch_rows(const struct train_batch *b);

/* Sequences first .. first + count of a batch, as a batch: `*ret` points into *b, only its offsets and rows are its
   own (ret_offsets [count + 1], ret_rows [train_batch_rows() of these]). For accumulation of gradients. */
void train_batch_slice(const struct train_batch *b, uint32_t first, uint32_t count,
                       struct train_batch *ret, int32_t *ret_offsets, uint32_t *ret_rows);
/* Where part k of `parts` begins if samples first .. end - 1 are cut into parts of nearly equal numbers of tokens, in order; part
   `parts` begins at `end`. Every part has a sample if there are as many. Parts of equal sizes keep ranks from waiting. */
uint32_t train_batch_cut(const struct train_batch *b, uint32_t first, uint32_t end, uint32_t k,
                         uint32_t parts);
/* Losses of a target in the sequences first .. end - 1, which are whole samples: what the weight of a mean divides by. */
uint32_t train_target_count(const struct train_batch *b, const struct train_target *t,
                            uint32_t first, uint32_t end);

/* Where a target may have a loss: its rows (LABELS, SQUARE), the batch's groups (CHOICE) or sequences (SPAN). */
uint32_t train_target_places(const struct train_batch *b, const struct train_target *t);
/* Rows of a place: numbers first .. end - 1 of the target's. */
struct target_rows {
    uint32_t first, end;
};
struct target_rows train_target_rows(const struct train_batch *b, const struct train_target *t,
                                     uint32_t place);
