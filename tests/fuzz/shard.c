/* SPDX-License-Identifier: Apache-2.0 */
/* A file of maskbert prep, with its sums made right: what is read stays inside the bytes, ids inside the vocabulary,
   samples inside the tokens. */
#include "model/data/shard.h"
#include "masks/base/memory.h"
#include "tests/data/shard_sign.h"
#include "tests/fuzz/check.h"
#include <stdlib.h>

static void hold(bool promise)
{
    if (!promise)
        abort();
}

static void check_tokens(const struct data_shard *s)
{
    const struct shard_header *h = &s->header;
    for (uint64_t k = 0; k < h->documents; k++)
        for (uint32_t j = s->document[k]; j < s->document[k + 1]; j++) {
            hold(j < h->sentences && s->sentence[j] < s->sentence[j + 1]);
            for (uint32_t i = s->sentence[j]; i < s->sentence[j + 1]; i++)
                hold(i < h->tokens && shard_token(s, i) < h->vocabulary);
        }
}

static void check_samples(const struct data_shard *s)
{
    const struct shard_header *h = &s->header;
    for (uint64_t k = 0; k < h->samples; k++) {
        const struct sample_record *r = &s->sample[k];
        hold(r->a_count > 0 && r->a + r->a_count <= h->tokens);
        hold(!r->b_count || r->b + r->b_count <= h->tokens);
        hold((uint64_t)r->a_count + r->b_count + 2 <= h->length);
    }
    uint32_t bits = 0;
    for (uint32_t k = 0; k < h->vocabulary; k++)
        bits += s->follows[k / 8] >> k % 8 & 1;
    hold(bits <= h->vocabulary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = memory_copy(data, size);
    if (size >= sizeof(struct shard_header))
        shard_sign(bytes, size);
    for (int kind = SHARD_TOKENS; kind <= SHARD_SAMPLES; kind++) {
        struct data_shard s = {0};
        struct error e = {0};
        if (shard_read(bytes, size, "shard", (enum shard_kind)kind, &s, &e) < 0)
            check_refusal(&e);
        else if (kind == SHARD_TOKENS)
            check_tokens(&s);
        else
            check_samples(&s);
    }
    free(bytes);
    return 0;
}
