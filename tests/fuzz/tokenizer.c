/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer's files, and the same bytes as text and as a pair: numbers are tokens, spans lie inside
   the text, in order, and a limit is kept. */
#include "model/tokenizer/tokenizer.h"
#include "tests/fuzz/check.h"
#include <stdlib.h>

enum { LIMIT = 7 };

static void hold(bool promise)
{
    if (!promise)
        abort();
}

static void check_tokens(const struct tokenizer *t, const struct tokens *k, uint32_t size)
{
    hold(k->head && k->tail && k->head + k->tail <= k->count);
    hold(k->first_part <= k->count && k->second + k->tail <= k->count);
    hold(k->second >= k->head + k->middle);
    for (uint32_t i = 0; i < k->count; i++) {
        hold(k->token_ids[i] < t->vocabulary.count);
        hold(k->span[i].begin <= k->span[i].end && k->span[i].end <= size);
    }
}

static void encode(const struct tokenizer *t, const char *bytes, uint32_t size)
{
    struct tokens tokens = {0};
    struct text_part whole = {bytes, size}, none = {0}, half = {bytes, size / 2};
    tokenizer_encode(t, whole, none, 0, &tokens);
    check_tokens(t, &tokens, size);
    hold(tokens.token_ids[0] == t->begin && tokens.token_ids[tokens.count - 1] == t->end);
    tokenizer_encode(t, whole, half, LIMIT, &tokens);
    check_tokens(t, &tokens, size);
    hold(tokens.count <= LIMIT);
    tokens_finish(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct error e = {0};
    enum tokenizer_compat compat = size & 1 ? TOKENIZER_GOOGLE : TOKENIZER_HF;
    struct tokenizer *t = size && data[0] == '{'
                              ? tokenizer_parse(bytes, size, compat, &e)
                              : tokenizer_new(bytes, size, size & 2, compat, &e);
    if (t)
        encode(t, bytes, (uint32_t)size);
    else
        check_refusal(&e);
    tokenizer_destroy(t);
    return 0;
}
