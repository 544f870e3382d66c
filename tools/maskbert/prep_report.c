/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/prep_report.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

enum { BAR = 40 };

static void print_table(const struct prepare_stats *s)
{
    printf("%-9s %12s %12s %14s %12s %9s\n", "", "documents", "sentences", "tokens", "samples",
           "shards");
    for (int k = 0; k < DATA_PARTS; k++) {
        const struct prepare_part *p = &s->part[k];
        printf("%-9s %12" PRIu64 " %12" PRIu64 " %14" PRIu64 " %12" PRIu64 " %9" PRIu32 "\n",
               data_part_names[k], p->documents, p->sentences, p->tokens, p->samples,
               p->shards);
    }
}

static void print_histogram(const struct prepare_options *o, const struct prepare_part *p)
{
    printf("\ntraining samples by length\n");
    for (uint32_t k = 0; k < DATA_BINS; k++) {
        double share = p->samples ? (double)p->length_bin[k] / (double)p->samples : 0;
        printf("%7u .. %-7u %12" PRIu64 " %5.1f %% ", k * o->length / DATA_BINS + 1,
               (k + 1) * o->length / DATA_BINS, p->length_bin[k], 100 * share);
        for (int j = 0; j < (int)(share * BAR + 0.5); j++)
            putchar('#');
        putchar('\n');
    }
}

static void print_details(const struct prepare_options *o, const struct prepare_stats *s)
{
    const struct prepare_part *p = &s->part[DATA_TRAIN];
    uint64_t all = p->tokens + s->part[DATA_HELD_OUT].tokens;
    print_histogram(o, p);
    printf("\nunigram entropy of the training tokens: %.6f nats\n", p->entropy);
    printf("tokens a sample %.1f, tokens a sentence %.1f, the longest %" PRIu64 "\n",
           (double)p->sample_tokens / (double)p->samples,
           (double)p->tokens / (double)p->sentences, p->longest_sentence);
    if (o->pairing == PAIRING_NEXT)
        printf("random next sentences: %.2f %%\n",
               100 * (double)p->random / (double)p->samples);
    printf("[UNK]: %.4f %% of the tokens; documents of one sentence: %" PRIu64
           "; without a token, left out: %" PRIu64 "\n",
           100 * (double)s->unknown / (double)all, p->single, s->empty);
}

static json_t *part_json(const struct prepare_part *p)
{
    json_t *bins = json_array();
    for (int k = 0; k < DATA_BINS; k++)
        json_array_append_new(bins, json_integer((json_int_t)p->length_bin[k]));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:f, s:o}", "documents",
                     (json_int_t)p->documents, "sentences", (json_int_t)p->sentences, "tokens",
                     (json_int_t)p->tokens, "samples", (json_int_t)p->samples, "sample_tokens",
                     (json_int_t)p->sample_tokens, "random_next", (json_int_t)p->random,
                     "one_sentence", (json_int_t)p->single, "longest_sentence",
                     (json_int_t)p->longest_sentence, "shards", (int)p->shards, "entropy",
                     p->entropy, "lengths", bins);
}

static void print_json(const struct prepare_options *o, const struct prepare_stats *s)
{
    json_t *json = json_pack("{s:i, s:s, s:i, s:I, s:I, s:o, s:o}", "length", (int)o->length,
                             "pairing", o->pairing == PAIRING_NEXT ? "nsp" : "full", "dupe",
                             (int)o->dupe, "bytes", (json_int_t)s->bytes, "unknown",
                             (json_int_t)s->unknown, "train", part_json(&s->part[DATA_TRAIN]),
                             "held_out", part_json(&s->part[DATA_HELD_OUT]));
    json_dumpf(json, stdout, JSON_REAL_PRECISION(17) | JSON_COMPACT);
    putchar('\n');
    json_decref(json);
}

void prep_report(const struct options *o, const struct prepare_options *p,
                 const struct prepare_stats *s)
{
    if (s->part[DATA_HELD_OUT].documents == 1 && p->pairing == PAIRING_NEXT)
        fprintf(stderr, "maskbert: one document is held out: its random next sentences are of "
                        "itself\n");
    if (o->json) {
        print_json(p, s);
        return;
    }
    print_table(s);
    if (o->stats)
        print_details(p, s);
}
