/* SPDX-License-Identifier: Apache-2.0 */
/* sentencepiece.bpe.model, and texts by the tokenizer that it gives. */
#include "model/tokenizer/sentencepiece.h"
#include "model/tokenizer/tokenizer.h"
#include "tests/fuzz/check.h"
#include <stdlib.h>
#include <string.h>

static void encode(const struct tokenizer *t, const char *bytes, uint32_t size)
{
    struct tokens tokens = {0};
    tokenizer_encode(t, (struct text_part){bytes, size}, (struct text_part){0}, 0, &tokens);
    for (uint32_t k = 0; k < tokens.count; k++)
        if (tokens.token_ids[k] >= t->vocabulary.count || tokens.span[k].end > size)
            abort();
    tokens_finish(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error e = {0};
    json_t *json = sentencepiece_parse(data, size, size & 1, &e);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (json && !text)
        abort();
    struct tokenizer *t = text ? tokenizer_parse(text, strlen(text), TOKENIZER_HF, &e) : NULL;
    if (t)
        encode(t, (const char *)data, (uint32_t)size);
    else
        check_refusal(&e);
    tokenizer_destroy(t);
    free(text);
    json_decref(json);
    return 0;
}
