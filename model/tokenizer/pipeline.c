/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/pipeline.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/symbols.h"
#include "model/tokenizer/bpe/bpe.h"
#include "model/tokenizer/normalize/normalizer.h"
#include "model/tokenizer/split/splitter.h"
#include "model/tokenizer/unigram/unigram.h"
#include <stdlib.h>

struct pipeline_memory {
    struct normalizing normalizing;
    struct splitting splitting;
    struct symbols symbols; /* of the last piece */
    struct bpe_memory *bpe;
    struct unigram_memory *unigram;
};

void pipeline_destroy(struct pipeline_memory *m)
{
    if (!m)
        return;
    normalizing_finish(&m->normalizing);
    splitting_finish(&m->splitting);
    free(m->symbols.list);
    bpe_memory_destroy(m->bpe);
    unigram_memory_destroy(m->unigram);
    free(m);
}

void pipeline_bpe(const struct tokenizer *t, const char *bytes, uint32_t size,
                  struct pipeline_memory *m)
{
    bpe_encode(t->bpe, bytes, size, &m->bpe, &m->symbols);
}

void pipeline_unigram(const struct tokenizer *t, const char *bytes, uint32_t size,
                      struct pipeline_memory *m)
{
    unigram_encode(t->unigram, bytes, size, &m->unigram, &m->symbols);
}

/* The tokens of a part of the normalised text. */
static void encode_part(struct encoding *in, struct pipeline_memory *m, struct span part)
{
    const struct tokenizer *t = in->tokenizer;
    struct splitting *s = &m->splitting;
    if (part.begin == part.end)
        return;
    splitters_run(t->splitters, &m->normalizing.text, part, s);
    for (uint32_t k = 0; k < s->pieces.count; k++) {
        struct span piece = s->pieces.list[k];
        t->kind->encode_piece(t, s->text->bytes + piece.begin, piece.end - piece.begin, m);
        for (uint32_t i = 0; i < m->symbols.count; i++) {
            struct symbol x = m->symbols.list[i];
            uint32_t begin = piece.begin + x.begin, end = piece.begin + x.end;
            struct span source = {s->text->begin[begin], s->text->end[end - 1]};
            if (x.token_id == t->unknown && t->unigram)
                encoding_push_text(in, x.token_id, source, s->text->bytes + begin, end - begin);
            else
                encoding_push(in, x.token_id, source);
        }
    }
}

void pipeline_gap(struct encoding *in, uint32_t from, uint32_t to)
{
    const struct tokenizer *t = in->tokenizer;
    struct pipeline_memory *m = in->tokens->memory;
    if (!m)
        m = in->tokens->memory = memory_new(1, sizeof *m);
    struct aligned *text = &m->normalizing.text;
    text->size = 0;
    aligned_add_text(text, in->text.bytes, from, to);
    normalizers_run(t->normalizers, &m->normalizing);
    struct added_search search = {
        .unicode = t->unicode, .text = text->bytes, .size = text->size, .normalized = true};
    while (t->added.has_normalized && added_next(&t->added, &search)) {
        encode_part(in, m, (struct span){search.done, search.begin});
        if (search.begin < search.end)
            encoding_push_text(
                in, search.token->token_id,
                (struct span){text->begin[search.begin], text->end[search.end - 1]},
                text->bytes + search.begin, search.end - search.begin);
        search.done = search.end;
    }
    encode_part(in, m, (struct span){search.done, text->size});
}

char *pipeline_normalise(const struct normalizers *n, const char *text, uint32_t size,
                         uint32_t *ret_size)
{
    struct normalizing m = {0};
    aligned_add_text(&m.text, text, 0, size);
    normalizers_run(n, &m);
    char *ret = memory_copy(m.text.bytes, m.text.size);
    *ret_size = m.text.size;
    normalizing_finish(&m);
    return ret;
}
