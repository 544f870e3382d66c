/* SPDX-License-Identifier: Apache-2.0 */
/* What one step of training reads: sequences without padding, and targets: rows of the last hidden states with a label
   for each. model/objective/ makes it; model/train/ and the backends read it. */
#pragma once
#include "model/engine/engine.h"
#include <stdint.h>

/* What a target's rows go through. */
enum target_head {
    TARGET_WORDS,  /* the words of the vocabulary */
    TARGET_NEXT,   /* pooled rows, the two labels of next sentences */
    TARGET_POOLED, /* pooled rows, the classifier */
    TARGET_ROWS,   /* plain rows, the classifier */
    TARGET_HEADS
};

struct target_form {
    uint32_t parts;                 /* PART_ bits that the engine needs */
    bool pooled;                    /* the pooler comes first */
    enum parameter_id weight, bias; /* of the linear to the labels; not of words */
};
const struct target_form *target_form(enum target_head head);
/* How many labels the head has. */
uint32_t target_labels(const struct model_config *c, enum target_head head);

/* One loss: the sum of the rows' cross-entropies. */
struct train_target {
    enum target_head head;
    uint32_t count;        /* rows; 0: it adds nothing */
    const uint32_t *row;   /* [count]: rows of the batch, ascending */
    const uint32_t *label; /* [count] */
};

enum { TARGETS_MOST = 4 };

struct train_batch {
    uint32_t sequences, tokens;
    struct sequence *list; /* [sequences] */
    int32_t *offsets; /* [sequences + 1]: rows of sequence s are offsets[s] .. offsets[s+1] */
    uint32_t
        *sample; /* [sequences]: what a sequence's dropout is a function of, with the seed: the
                              same sample has the same bits wherever it stands in whatever batch */
    uint32_t targets;
    struct train_target target[TARGETS_MOST];
};

/* Null: the batch has no target with that head. */
const struct train_target *train_batch_target(const struct train_batch *b,
                                              enum target_head head);
/* Rows of all targets. */
uint64_t train_batch_rows(const struct train_batch *b);

/* Sequences first .. first + count of a batch, as a batch: `*ret` points into *b, only its offsets and rows are its
   own (ret_offsets [count + 1], ret_rows [train_batch_rows() of these]). For accumulation of gradients. */
void train_batch_slice(const struct train_batch *b, uint32_t first, uint32_t count,
                       struct train_batch *ret, int32_t *ret_offsets, uint32_t *ret_rows);
/* A target's rows in the sequences first .. end - 1. */
uint32_t train_target_count(const struct train_batch *b, const struct train_target *t,
                            uint32_t first, uint32_t end);
