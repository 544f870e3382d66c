/* SPDX-License-Identifier: Apache-2.0 */
/* The corpus of the reader of shards: shard_seeds FOLDER writes small .tokens and .samples files. */
#include "model/data/shard.h"
#include <stdio.h>
#include <string.h>

static const uint32_t documents[] = {0, 2, 3}, sentences[] = {0, 2, 5, 6},
                      tokens[] = {9, 8, 7, 6, 5, 9};
static const struct sample_record samples[] = {
    {0, 3, 2, 2, 0}, {2, 5, 3, 1, 1}, {1, 0, 4, 0, 0}};

static int write_seed(const char *folder, const char *name, bool wide, enum shard_kind kind,
                      struct error *e)
{
    char path[4096];
    static const uint8_t follows[8] = {1, 2};
    struct shard_header h = {.kind = kind,
                             .vocabulary = wide ? 70000 : 10,
                             .token_bytes = wide ? 4 : 2,
                             .begin = 2,
                             .end = 3,
                             .mask = 4,
                             .length = 16,
                             .dupe = 1,
                             .documents = 2,
                             .sentences = 3,
                             .tokens = 6,
                             .samples = kind == SHARD_SAMPLES ? 3 : 0,
                             .shard = 1};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (kind == SHARD_TOKENS)
        return shard_write(path, &h, documents, sentences, tokens, e);
    struct shard_writer *w = shard_writer_new(path);
    shard_writer_add(w, samples, sizeof samples);
    shard_writer_add(w, follows, 8);
    return shard_writer_end(w, &h, e);
}

int main(int count, char **argument)
{
    struct error e = {0};
    if (count != 2) {
        fprintf(stderr, "usage: shard_seeds FOLDER\n");
        return 2;
    }
    if (write_seed(argument[1], "narrow.tokens", false, SHARD_TOKENS, &e) < 0 ||
        write_seed(argument[1], "wide.tokens", true, SHARD_TOKENS, &e) < 0 ||
        write_seed(argument[1], "pairs.samples", false, SHARD_SAMPLES, &e) < 0) {
        fprintf(stderr, "shard_seeds: %s\n", e.text);
        return 2;
    }
    return 0;
}
