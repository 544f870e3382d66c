/* SPDX-License-Identifier: Apache-2.0 */
/* BPE and unigram, read from their files. */
#include "masks/base/memory.h"
#include "model/tokenizer/bpe/bpe.h"
#include "model/tokenizer/normalize/normalizer.h"
#include "model/tokenizer/pipeline.h"
#include "model/tokenizer/split/splitter.h"
#include "model/tokenizer/unigram/unigram.h"
#include "model/tokenizer/vocabulary_read.h"
#include <string.h>

int vocabulary_read(struct vocabulary *ret, const json_t *object, const char *name,
                    struct error *e)
{
    const char *token;
    json_t *number, *list = (json_t *)(uintptr_t)object;
    if (!json_object_size(list))
        return error_set(e, ERROR_INPUT, "%s: an object is expected", name);
    json_object_foreach(list, token, number)
    {
        if (!json_is_integer(number) || json_integer_value(number) < 0)
            return error_set(e, ERROR_INPUT, "%s: '%.60s' has no number", name, token);
        if (vocabulary_add(ret, token, strlen(token), (uint64_t)json_integer_value(number), e) <
            0)
            return error_prefix(e, "%s", name);
    }
    return 0;
}

static int read_parts(struct tokenizer *t, const json_t *json, struct error *e)
{
    t->normalizers = memory_new(1, sizeof *t->normalizers);
    t->splitters = memory_new(1, sizeof *t->splitters);
    if (normalizers_read(t->normalizers, json_object_get(json, "normalizer"), e) < 0)
        return -1;
    return splitters_read(t->splitters, json_object_get(json, "pre_tokenizer"), e);
}

/* With ByteLevel, pieces stay raw bytes if every byte has a token and ignore_merges is off; otherwise bytes are mapped to
   characters first. */
static void choose_bytes(struct tokenizer *t)
{
    bool all = t->splitters->byte_level && !t->bpe->ignore_merges;
    for (uint32_t k = 0; k < 256; k++) {
        char character[4];
        uint32_t size = byte_character((uint8_t)k, character);
        t->bpe->byte[k] = vocabulary_find_part(&t->vocabulary, character, size);
        all &= t->bpe->byte[k] >= 0;
    }
    t->bpe->bytes = all;
    t->splitters->mapped = t->splitters->byte_level && !all;
}

static int read_bpe(struct tokenizer *t, const json_t *json, struct error *e)
{
    const json_t *model = json_object_get(json, "model");
    t->bpe = memory_new(1, sizeof *t->bpe);
    if (read_parts(t, json, e) < 0)
        return -1;
    if (vocabulary_read(&t->vocabulary, json_object_get(model, "vocab"), "vocab", e) < 0 ||
        vocabulary_index(&t->vocabulary, NULL, e) < 0 ||
        bpe_read(t->bpe, &t->vocabulary, model, e) < 0)
        return error_prefix(e, "model BPE");
    choose_bytes(t);
    return 0;
}

int bpe_read_files(struct tokenizer *t, const json_t *vocabulary, const char *merges,
                   size_t size, struct error *e)
{
    t->bpe = memory_new(1, sizeof *t->bpe);
    t->normalizers = memory_new(1, sizeof *t->normalizers);
    t->splitters = memory_new(1, sizeof *t->splitters);
    json_t *bytes = json_pack("{s:s, s:b}", "type", "ByteLevel", "add_prefix_space", 0);
    int r = splitters_read(t->splitters, bytes, e);
    json_decref(bytes);
    if (r < 0 || vocabulary_read(&t->vocabulary, vocabulary, "vocab.json", e) < 0 ||
        vocabulary_index(&t->vocabulary, NULL, e) < 0)
        return -1;
    if (bpe_parse(t->bpe, &t->vocabulary, merges, size, e) < 0)
        return error_prefix(e, "merges.txt");
    choose_bytes(t);
    return 0;
}

static int read_unigram(struct tokenizer *t, const json_t *json, struct error *e)
{
    t->unigram = memory_new(1, sizeof *t->unigram);
    if (read_parts(t, json, e) < 0)
        return -1;
    if (unigram_read(t->unigram, &t->vocabulary, json_object_get(json, "model"), e) < 0)
        return error_prefix(e, "model Unigram");
    t->splitters->mapped = t->splitters->byte_level;
    return 0;
}

bool tokenizer_follows(const struct tokenizer *t, uint32_t token_id)
{
    static const char *const blanks[] = {"\xc4\xa0", "\xe2\x96\x81"};
    const char *token = t->vocabulary.token[token_id];
    if (!token)
        return false;
    if (t->kind == &tokenizer_wordpiece)
        return !strncmp(token, "##", 2) && token[2];
    for (size_t k = 0; k < sizeof blanks / sizeof *blanks; k++)
        if (!strncmp(token, blanks[k], strlen(blanks[k])))
            return false;
    return !added_find(&t->added, token);
}

const struct tokenizer_kind tokenizer_bpe = {"BPE", read_bpe, pipeline_gap, pipeline_bpe};
const struct tokenizer_kind tokenizer_unigram = {"Unigram", read_unigram, pipeline_gap,
                                                 pipeline_unigram};
