/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens first, then, from the files that were just written, samples. */
#include "model/data/prepare.h"
#include "masks/base/folder.h"
#include "masks/base/memory.h"
#include "model/data/collect.h"
#include "model/data/pairs.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RUNS = 64, RUN_DOCUMENTS = 64 };

static struct shard_header base_header(const struct prepare_options *o)
{
    const struct tokenizer *t = o->tokenizer;
    return (struct shard_header){.vocabulary_sum = shard_vocabulary_sum(t),
                                 .vocabulary = t->vocabulary.count,
                                 .token_bytes = t->vocabulary.count < 65536 ? 2 : 4,
                                 .begin = t->begin,
                                 .end = t->end,
                                 .mask = (uint32_t)t->mask,
                                 .pad = t->pad,
                                 .length = o->length,
                                 .pairing = o->pairing,
                                 .dupe = o->dupe,
                                 .short_share = o->short_share,
                                 .held_out = o->held_out,
                                 .seed = o->seed};
}

/* Bit t: token t continues a word (tokenizer_follows()). */
static uint8_t *list_follows(const struct tokenizer *t)
{
    uint8_t *bits = memory_new((t->vocabulary.count + 7u) / 8, 1);
    for (uint32_t k = 0; k < t->vocabulary.count; k++)
        if (tokenizer_follows(t, k))
            bits[k / 8] |= (uint8_t)(1u << k % 8);
    return bits;
}

static void count_samples(uint32_t length, const struct samples_list *list,
                          struct prepare_part *p)
{
    p->samples += list->count;
    for (size_t k = 0; k < list->count; k++) {
        const struct sample_record *r = &list->sample[k];
        uint32_t tokens = r->a_count + 2 + (r->b_count ? r->b_count + 1u : 0);
        p->sample_tokens += tokens;
        p->random += r->random;
        p->length_bin[((uint64_t)tokens - 1) * DATA_BINS / length]++;
    }
}

/* The samples of all documents: RUNS at a time are drawn by threads and written in order. */
struct sampling {
    const struct prepare_options *options;
    const struct corpus *corpus;
    struct samples_list run[RUNS];
    struct shard_writer *writer;
    struct prepare_part *part;
};

static void draw_runs(struct sampling *x, uint32_t first, uint32_t copy)
{
    const struct prepare_options *o = x->options;
    const struct pairs_rules rules = {o->seed, o->short_share, o->length, o->pairing};
    uint64_t documents = corpus_documents(x->corpus);
    int threads = o->threads ? (int)o->threads : omp_get_max_threads();
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (uint32_t run = 0; run < RUNS; run++) {
        uint64_t from = first + (uint64_t)run * RUN_DOCUMENTS, to = from + RUN_DOCUMENTS;
        x->run[run].count = 0;
        for (uint64_t k = from; k < to && k < documents; k++)
            pairs_add(&rules, x->corpus, (uint32_t)k, copy, &x->run[run]);
    }
}

static void write_runs(struct sampling *x)
{
    for (uint32_t run = 0; run < RUNS; run++) {
        const struct samples_list *list = &x->run[run];
        shard_writer_add(x->writer, list->sample, list->count * sizeof *list->sample);
        count_samples(x->options->length, list, x->part);
    }
}

static int draw_all(struct sampling *x, uint32_t copies, struct error *e)
{
    const struct prepare_options *o = x->options;
    uint64_t documents = corpus_documents(x->corpus);
    for (uint32_t copy = 0; copy < copies; copy++)
        for (uint64_t k = 0; k < documents; k += RUNS * RUN_DOCUMENTS) {
            const struct prepare_progress now = {0, documents, corpus_tokens(x->corpus),
                                                 copy + 1};
            if (o->progress && !o->progress(&now))
                return error_set(e, ERROR_UNAVAILABLE, "interrupted");
            draw_runs(x, (uint32_t)k, copy);
            write_runs(x);
        }
    return x->part->samples > UINT32_MAX
               ? error_set(e, ERROR_INPUT,
                           "more than 2^32 samples: a smaller --dupe is expected")
               : 0;
}

static int end_samples(struct sampling *x, enum data_part part, struct error *e)
{
    const struct prepare_options *o = x->options;
    const struct prepare_part *p = x->part;
    struct shard_header h = base_header(o);
    uint8_t *follows = list_follows(o->tokenizer);
    h.kind = SHARD_SAMPLES;
    h.part = part;
    h.shard = p->shards;
    h.tokens_sum = corpus_sum(x->corpus);
    h.entropy = p->entropy;
    h.documents = p->documents;
    h.sentences = p->sentences;
    h.tokens = p->tokens;
    h.samples = p->samples;
    shard_writer_pad(x->writer);
    shard_writer_add(x->writer, follows, (h.vocabulary + 7u) / 8);
    shard_writer_pad(x->writer);
    free(follows);
    return shard_writer_end(x->writer, &h, e);
}

static int write_samples(const struct prepare_options *o, const char *folder,
                         const struct corpus *c, enum data_part part, struct prepare_part *p,
                         struct error *e)
{
    char *path = samples_path(folder, part);
    struct sampling x = {
        .options = o, .corpus = c, .writer = shard_writer_new(path), .part = p};
    int r = draw_all(&x, part == DATA_TRAIN ? o->dupe : 1, e);
    if (r == 0)
        r = end_samples(&x, part, e);
    else
        shard_writer_destroy(x.writer);
    for (uint32_t run = 0; run < RUNS; run++)
        free(x.run[run].sample);
    free(path);
    return r;
}

static int make_samples(const struct prepare_options *o, const char *folder,
                        enum data_part part, struct prepare_part *p, struct error *e)
{
    struct corpus c = {0};
    if (!p->shards)
        return 0;
    if (p->documents > UINT32_MAX)
        return error_set(e, ERROR_INPUT, "more than 2^32 documents");
    int r = corpus_open(folder, part, p->shards, &c, e);
    if (r == 0)
        r = write_samples(o, folder, &c, part, p, e);
    corpus_close(&c);
    return r;
}

static int check_text(const struct prepare_options *o, const struct prepare_stats *s,
                      struct error *e)
{
    const struct prepare_part *p = s->part;
    if (!p[DATA_TRAIN].tokens && !p[DATA_HELD_OUT].tokens)
        return error_set(e, ERROR_INPUT, "%s%s: no text in it", o->path[0],
                         o->n_paths > 1 ? " and the others" : "");
    if (!p[DATA_TRAIN].tokens)
        return error_set(e, ERROR_INPUT,
                         "--held-out %g leaves no document to train on: %llu in all",
                         o->held_out, (unsigned long long)p[DATA_HELD_OUT].documents);
    if (o->pairing == PAIRING_NEXT && p[DATA_TRAIN].documents < 2)
        return error_set(e, ERROR_INPUT,
                         "one document to train on: random next sentences need a second one (a "
                         "blank line between documents), or --pairing full");
    return 0;
}

static int prepare_into(const struct prepare_options *o, const char *folder,
                        struct prepare_stats *ret, struct error *e)
{
    const struct shard_header base = base_header(o);
    int r = data_collect(o, folder, &base, ret, e);
    if (r == 0)
        r = check_text(o, ret, e);
    for (int k = 0; r == 0 && k < DATA_PARTS; k++)
        r = make_samples(o, folder, (enum data_part)k, &ret->part[k], e);
    return r;
}

int data_prepare(const struct prepare_options *o, struct prepare_stats *ret, struct error *e)
{
    struct folder folder;
    struct stat status;
    struct prepare_stats stats = {0};
    if (lstat(o->folder, &status) == 0)
        return error_set(e, ERROR_INPUT, "%s: is there already; a new name is expected",
                         o->folder);
    int r = folder_begin(o->folder, &folder, e);
    if (r == 0)
        r = prepare_into(o, folder.aside, &stats, e);
    r = folder_end(&folder, r, e);
    if (r == 0)
        *ret = stats;
    return r;
}
