/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: the header, then the sizes that it speaks of, then the sum of all bytes, then what they say. */
#include "model/data/shard.h"
#include "masks/base/memory.h"
#include <string.h>
#include <xxhash.h>

_Static_assert(sizeof(struct shard_header) == 192, "the layout of a file");
_Static_assert(sizeof(struct sample_record) == 24, "the layout of a file");

static int damaged(const char *path, const char *what, struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s: damaged: %s", path, what);
}

static bool is_signed(const struct shard_header *h)
{
    struct shard_header copy = *h;
    copy.header_sum = (struct shard_sum){0};
    XXH128_hash_t sum = XXH3_128bits(&copy, sizeof copy);
    return shard_sum_equal(h->header_sum, (struct shard_sum){sum.low64, sum.high64});
}

static bool is_sane(const struct shard_header *h)
{
    uint32_t top = h->vocabulary;
    return h->vocabulary && h->vocabulary <= 1u << 30 && h->begin < top && h->end < top &&
           h->mask < top && h->pad < top && h->token_bytes == (top < 65536 ? 2 : 4) &&
           h->part < DATA_PARTS && h->pairing <= PAIRING_FULL && h->length &&
           h->length <= DATA_MAX_LENGTH && h->reserved == 0;
}

static int check_header(const struct shard_header *h, size_t size, const char *path,
                        enum shard_kind kind, struct error *e)
{
    if (size < sizeof *h || memcmp(h->magic, "maskdata", sizeof h->magic) != 0)
        return error_set(e, ERROR_INPUT, "%s: not a file of maskbert prep, or cut", path);
    if (h->version != SHARD_VERSION)
        return error_set(e, ERROR_INPUT,
                         "%s: version %u, %d is expected: run maskbert prep again", path,
                         h->version, SHARD_VERSION);
    if (!is_signed(h) || !is_sane(h))
        return damaged(path, "the header", e);
    return h->kind != kind ? damaged(path, "of another kind than its name says", e) : 0;
}

/* Adds count * size, rounded up to 8; false where that is beyond what a file can have. */
static bool add_array(uint64_t *total, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > INT64_MAX / 8)
        return false;
    *total += (bytes + 7) / 8 * 8;
    return *total <= INT64_MAX / 2;
}

static bool has_size(const struct shard_header *h, uint64_t size)
{
    uint64_t total = sizeof *h;
    if (h->kind == SHARD_SAMPLES)
        return h->samples <= UINT32_MAX &&
               add_array(&total, h->samples, sizeof(struct sample_record)) &&
               add_array(&total, (h->vocabulary + 7u) / 8, 1) && total == size;
    return h->tokens <= SHARD_MAX_TOKENS && h->sentences <= h->tokens &&
           h->documents <= h->sentences &&
           add_array(&total, h->documents + 1, sizeof(uint32_t)) &&
           add_array(&total, h->sentences + 1, sizeof(uint32_t)) &&
           add_array(&total, h->tokens, h->token_bytes) && total == size;
}

static const void *take(const uint8_t **at, uint64_t size)
{
    const void *here = *at;
    *at += (size + 7) / 8 * 8;
    return here;
}

static void point(struct data_shard *s, const uint8_t *at)
{
    const struct shard_header *h = &s->header;
    if (h->kind == SHARD_SAMPLES) {
        s->sample = take(&at, h->samples * sizeof *s->sample);
        s->follows = take(&at, (h->vocabulary + 7u) / 8);
        return;
    }
    s->document = take(&at, (h->documents + 1) * sizeof *s->document);
    s->sentence = take(&at, (h->sentences + 1) * sizeof *s->sentence);
    s->token = at;
}

/* From 0 to `last`, each greater than the one before: no document and no sentence is empty. */
static bool ascends(const uint32_t *offset, uint64_t count, uint64_t last)
{
    bool fine = offset[0] == 0 && offset[count] == last;
    for (uint64_t k = 0; k < count; k++)
        fine &= offset[k] < offset[k + 1];
    return fine;
}

static bool tokens_below(const struct data_shard *s)
{
    uint32_t most = 0;
    for (uint64_t k = 0; k < s->header.tokens; k++) {
        uint32_t token = shard_token(s, k);
        most = token > most ? token : most;
    }
    return s->header.tokens == 0 || most < s->header.vocabulary;
}

/* True if the records are within the totals of the data. The part checks that ranges are within one shard. */
static bool records_inside(const struct data_shard *s)
{
    const struct shard_header *h = &s->header;
    bool fine = true;
    for (uint64_t k = 0; k < h->samples; k++) {
        const struct sample_record *r = &s->sample[k];
        uint64_t others = r->b_count ? 3 : 2;
        fine &= r->a_count && r->a < h->tokens && r->a_count <= h->tokens - r->a &&
                (!r->b_count || (r->b < h->tokens && r->b_count <= h->tokens - r->b)) &&
                (uint64_t)r->a_count + r->b_count + others <= h->length;
    }
    return fine;
}

static int check_body(const struct data_shard *s, const char *path, struct error *e)
{
    const struct shard_header *h = &s->header;
    if (h->kind == SHARD_SAMPLES)
        return records_inside(s) ? 0 : damaged(path, "samples beyond the tokens", e);
    if (!ascends(s->document, h->documents, h->sentences) ||
        !ascends(s->sentence, h->sentences, h->tokens))
        return damaged(path, "documents or sentences do not follow each other", e);
    return tokens_below(s) ? 0 : damaged(path, "tokens beyond the vocabulary", e);
}

int shard_read(const uint8_t *bytes, size_t size, const char *path, enum shard_kind kind,
               struct data_shard *ret, struct error *e)
{
    struct data_shard s = {0};
    memcpy(&s.header, bytes, size < sizeof s.header ? size : sizeof s.header);
    if (check_header(&s.header, size, path, kind, e) < 0)
        return -1;
    if (!has_size(&s.header, size))
        return error_set(e, ERROR_INPUT,
                         "%s: has %zu bytes, which is not what its header says: cut, or longer",
                         path, size);
    XXH128_hash_t sum = XXH3_128bits(bytes + sizeof s.header, size - sizeof s.header);
    if (!shard_sum_equal(s.header.body_sum, (struct shard_sum){sum.low64, sum.high64}))
        return damaged(path, "its bytes are not those that its checksum is of", e);
    point(&s, bytes + sizeof s.header);
    if (check_body(&s, path, e) < 0)
        return -1;
    *ret = s;
    return 0;
}

int shard_open(const char *path, enum shard_kind kind, struct data_shard *ret, struct error *e)
{
    struct file f = {0};
    if (file_open(path, &f, e) < 0)
        return -1;
    if (shard_read(f.bytes, f.size, path, kind, ret, e) < 0) {
        file_close(&f);
        return -1;
    }
    ret->file = f;
    return 0;
}

void shard_close(struct data_shard *s)
{
    file_close(&s->file);
    *s = (struct data_shard){0};
}
