/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a DATA folder as samples: one [CLS] A [SEP] or [CLS] A [SEP] B [SEP] for each record that prep wrote.

   An epoch takes each sample once, in an order that is a function of (seed, epoch). Masks are drawn when a batch is
   made, a function of (seed, epoch, sample). So a batch is a function of (seed, epoch, first, count) and the options.
   Thread-safety: an opened part does not change; each thread has a sample_batch of its own. */
#pragma once
#include "model/data/corpus.h"
#include "model/data/masking.h"
#include "model/gradients/batch.h"

struct samples {
    struct corpus corpus;
    struct data_shard records;
    const struct shard_header
        *header;    /* length, pairing, vocabulary, entropy, seed of prep, .. */
    uint32_t count; /* samples of an epoch */
};

/* Reads and checks all of a part. With a tokenizer its vocabulary must be that of prep; null: any. */
struct samples *samples_open(const char *folder, enum data_part part,
                             const struct tokenizer *tokenizer, struct error *e);
void samples_close(struct samples *s); /* null is fine */

struct sample_options {
    uint64_t seed;
    double probability; /* of masking: 0.15 */
    bool whole_words;
};

/* The targets of a batch: masked words; where samples are pairs, whether B follows A (0) or is random (1). */
enum { SAMPLE_WORDS, SAMPLE_NEXT };

/* A batch with its memory; zeroed: empty. Used again, it allocates no more than its largest batch needs. */
struct sample_batch {
    struct train_batch batch;
    uint32_t *token; /* of all sequences, one behind the other */
    uint32_t masked;
    uint32_t *masked_row, *masked_label; /* of batch.target[SAMPLE_WORDS] */
    uint32_t *next_row, *next_label;     /* of batch.target[SAMPLE_NEXT] */
    uint32_t sequences_capacity, tokens_capacity;
    struct masking_memory memory;
};
void sample_batch_finish(struct sample_batch *b);

/* Samples first .. first + count - 1 in the order of an epoch. Places at or beyond s->count are those of the epochs
   that follow, so that a batch may span two. */
void samples_batch(const struct samples *s, const struct sample_options *o, uint32_t epoch,
                   uint64_t first, uint32_t count, struct sample_batch *ret);
