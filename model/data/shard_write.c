/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays first, summed on their way to the file, then the header with the sums. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/data/shard.h"
#include "model/tokenizer/tokenizer.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { NARROW_TOKENS = 1 << 16 };

const char *const data_part_names[DATA_PARTS] = {"train", "held-out"};

char *shard_path(const char *folder, enum data_part part, uint32_t index)
{
    struct text t = {0};
    text_add(&t, "%s/%s-%05u.tokens", folder, data_part_names[part], index);
    return text_take(&t);
}

char *samples_path(const char *folder, enum data_part part)
{
    struct text t = {0};
    text_add(&t, "%s/%s.samples", folder, data_part_names[part]);
    return text_take(&t);
}

struct shard_sum shard_vocabulary_sum(const struct tokenizer *t)
{
    XXH3_state_t *state = XXH3_createState();
    XXH3_128bits_reset(state);
    for (uint32_t k = 0; k < t->vocabulary.count; k++) {
        const char *token = t->vocabulary.token[k];
        XXH3_128bits_update(state, token ? token : "\xff", token ? strlen(token) + 1 : 2);
    }
    XXH128_hash_t h = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return (struct shard_sum){h.low64, h.high64};
}

struct shard_writer {
    char *path;
    FILE *file;
    XXH3_state_t *state;
    uint64_t size; /* behind the header */
    int failed;    /* errno */
};

struct shard_writer *shard_writer_new(const char *path)
{
    struct shard_writer *w = memory_new(1, sizeof *w);
    *w = (struct shard_writer){
        .path = memory_text(path), .file = fopen(path, "wbe"), .state = XXH3_createState()};
    XXH3_128bits_reset(w->state);
    if (!w->file || fseek(w->file, sizeof(struct shard_header), SEEK_SET) < 0)
        w->failed = errno;
    return w;
}

void shard_writer_destroy(struct shard_writer *w)
{
    if (!w)
        return;
    if (w->file)
        fclose(w->file);
    XXH3_freeState(w->state);
    free(w->path);
    free(w);
}

void shard_writer_add(struct shard_writer *w, const void *bytes, uint64_t size)
{
    if (!w->failed && fwrite(bytes, 1, size, w->file) != size)
        w->failed = errno;
    XXH3_128bits_update(w->state, bytes, size);
    w->size += size;
}

void shard_writer_pad(struct shard_writer *w)
{
    static const uint8_t zeros[8] = {0};
    shard_writer_add(w, zeros, (8 - w->size % 8) % 8);
}

static void sign_header(struct shard_header *h, XXH3_state_t *state)
{
    XXH128_hash_t body = XXH3_128bits_digest(state);
    memcpy(h->magic, "maskdata", sizeof h->magic);
    h->version = SHARD_VERSION;
    h->body_sum = (struct shard_sum){body.low64, body.high64};
    h->header_sum = (struct shard_sum){0};
    XXH128_hash_t head = XXH3_128bits(h, sizeof *h);
    h->header_sum = (struct shard_sum){head.low64, head.high64};
}

int shard_writer_end(struct shard_writer *w, struct shard_header *h, struct error *e)
{
    sign_header(h, w->state);
    if (!w->failed &&
        (fseek(w->file, 0, SEEK_SET) < 0 || fwrite(h, 1, sizeof *h, w->file) != sizeof *h))
        w->failed = errno;
    if (w->file && fclose(w->file) != 0 && !w->failed)
        w->failed = errno;
    w->file = NULL;
    int r = !w->failed ? 0
                       : error_set(e, ERROR_UNAVAILABLE, "%s: cannot be written: %s", w->path,
                                   strerror(w->failed));
    shard_writer_destroy(w);
    return r;
}

static void add_narrow(struct shard_writer *w, const uint32_t *token, uint64_t count)
{
    uint16_t *narrow = memory_new(NARROW_TOKENS, sizeof *narrow);
    for (uint64_t k = 0; k < count; k += NARROW_TOKENS) {
        uint64_t n = count - k < NARROW_TOKENS ? count - k : NARROW_TOKENS;
        for (uint64_t j = 0; j < n; j++)
            narrow[j] = (uint16_t)token[k + j];
        shard_writer_add(w, narrow, n * sizeof *narrow);
    }
    free(narrow);
}

int shard_write(const char *path, struct shard_header *h, const uint32_t *document,
                const uint32_t *sentence, const uint32_t *token, struct error *e)
{
    struct shard_writer *w = shard_writer_new(path);
    shard_writer_add(w, document, (h->documents + 1) * sizeof *document);
    shard_writer_pad(w);
    shard_writer_add(w, sentence, (h->sentences + 1) * sizeof *sentence);
    shard_writer_pad(w);
    if (h->token_bytes == 2)
        add_narrow(w, token, h->tokens);
    else
        shard_writer_add(w, token, h->tokens * sizeof *token);
    shard_writer_pad(w);
    return shard_writer_end(w, h, e);
}
