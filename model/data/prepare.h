/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert prep: text to a DATA folder. The same bytes for any number of threads: text is read in blocks, threads
   tokenise runs of sentences, and their tokens are stored in the text's order. A document is held out where a number
   drawn from (seed, XXH3-64 of its tokens) is below the share, so that equal documents are on the same side. */
#pragma once
#include "model/data/shard.h"
#include "model/tokenizer/tokenizer.h"

struct prepare_progress {
    uint64_t bytes, documents, tokens; /* read; bytes of packed files as they are on disk */
    uint32_t round; /* over the documents, to draw samples; 0: text is being read */
};

struct prepare_options {
    const char *const *path;
    uint32_t n_paths;
    const struct tokenizer *tokenizer; /* has a [MASK] */
    const char *folder;                /* must not be there */
    enum data_pairing pairing;
    uint32_t length, dupe, threads; /* 0 threads: all */
    double short_share, held_out;
    uint64_t seed;
    bool split;
    uint64_t shard_tokens; /* a shard ends with the document that reaches so many; 0: 2^25 */
    /* Called after each block and each round over the documents. False ends prep and removes its files. May be null. */
    bool (*progress)(const struct prepare_progress *p);
    /* Receives what text_reader.h reports of a file. Or null. */
    void (*report)(const char *path, const char *what);
};

/* Samples with fewer than DATA_BINS-ths of the length, and so on: bin k holds those in (k, k + 1] * length / DATA_BINS. */
enum { DATA_BINS = 8 };
struct prepare_part {
    uint64_t documents, sentences, tokens, samples, random;
    uint64_t sample_tokens; /* of all samples, [CLS] and [SEP] included */
    uint64_t length_bin[DATA_BINS];
    uint64_t longest_sentence, single; /* single: documents of one sentence */
    uint32_t shards;
    double entropy; /* of the tokens, in nats */
};
struct prepare_stats {
    struct prepare_part part[DATA_PARTS];
    uint64_t bytes, empty; /* documents without a token, which are left out */
    uint64_t unknown;      /* [UNK] among all tokens */
};

/* Writes the folder whole or not at all. */
int data_prepare(const struct prepare_options *o, struct prepare_stats *ret, struct error *e);
