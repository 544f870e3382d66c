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

struct output {
    FILE *file;
    XXH3_state_t *state;
    bool failed;
};

static void put(struct output *o, const void *bytes, uint64_t size)
{
    o->failed = o->failed || fwrite(bytes, 1, size, o->file) != size;
    XXH3_128bits_update(o->state, bytes, size);
}

static void put_array(struct output *o, const void *bytes, uint64_t size)
{
    static const uint8_t zeros[8] = {0};
    put(o, bytes, size);
    put(o, zeros, (8 - size % 8) % 8);
}

static void put_narrow(struct output *o, const uint32_t *token, uint64_t count)
{
    uint16_t *narrow = memory_new(NARROW_TOKENS, sizeof *narrow);
    for (uint64_t k = 0; k < count; k += NARROW_TOKENS) {
        uint64_t n = count - k < NARROW_TOKENS ? count - k : NARROW_TOKENS;
        for (uint64_t j = 0; j < n; j++)
            narrow[j] = (uint16_t)token[k + j];
        put(o, narrow, n * sizeof *narrow);
    }
    static const uint8_t zeros[8] = {0};
    put(o, zeros, (8 - count * sizeof *narrow % 8) % 8);
    free(narrow);
}

static void put_body(struct output *o, const struct shard_header *h, const void *a,
                     const void *b, const uint32_t *c)
{
    if (h->kind == SHARD_SAMPLES) {
        put_array(o, a, h->samples * sizeof(struct sample_record));
        put_array(o, b, (h->vocabulary + 7) / 8);
        return;
    }
    put_array(o, a, (h->documents + 1) * sizeof(uint32_t));
    put_array(o, b, (h->sentences + 1) * sizeof(uint32_t));
    if (h->token_bytes == 2)
        put_narrow(o, c, h->tokens);
    else
        put_array(o, c, h->tokens * sizeof(uint32_t));
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

int shard_write(const char *path, struct shard_header *h, const void *a, const void *b,
                const uint32_t *c, struct error *e)
{
    struct output o = {fopen(path, "wbe"), XXH3_createState(), false};
    XXH3_128bits_reset(o.state);
    o.failed = !o.file;
    if (o.file) {
        o.failed = fseek(o.file, sizeof *h, SEEK_SET) < 0;
        put_body(&o, h, a, b, c);
        sign_header(h, o.state);
        o.failed = o.failed || fseek(o.file, 0, SEEK_SET) < 0 ||
                   fwrite(h, 1, sizeof *h, o.file) != sizeof *h;
        int code = o.failed ? errno : 0;
        o.failed = fclose(o.file) != 0 || o.failed;
        errno = code ? code : errno;
    }
    XXH3_freeState(o.state);
    return o.failed ? error_set(e, ERROR_UNAVAILABLE, "%s: cannot be written: %s", path,
                                strerror(errno))
                    : 0;
}
