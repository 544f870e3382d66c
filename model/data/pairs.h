/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a document, as ranges of tokens.

   PAIRING_NEXT is create_pretraining_data.py of Google's BERT, rule by rule. Sentences are taken until the target
   length is reached (length - 3; in `short_share` of the documents uniform in 2 .. length - 3) or the document ends.
   A is the first 1 .. n - 1 of these n sentences. B is the rest, or, in half of the cases and where there is one
   sentence only, sentences from a random place of another document (ten tries to find another) until the target
   length is reached; then the sentences that were not used begin the next sample. Beyond length - 3 tokens the longer of the two
   loses tokens at its front or at its end, each with probability 1/2.

   PAIRING_FULL packs whole sentences of a document up to the target (length - 2, or in `short_share` of the documents
   uniform in 2 .. length - 2). A longer sentence is cut into pieces of that size. */
#pragma once
#include "model/data/corpus.h"

struct pairs_rules {
    uint64_t seed;
    double short_share;
    uint32_t length;
    enum data_pairing pairing;
};

struct samples_list {
    struct sample_record *sample;
    size_t count, capacity;
};

/* Adds the samples of a document; `copy` counts the duplicates. A function of rules, corpus, document and copy. */
void pairs_add(const struct pairs_rules *r, const struct corpus *c, uint32_t document,
               uint32_t copy, struct samples_list *ret);
