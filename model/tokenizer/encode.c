/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens are cut out of the raw text. The rest is the model's. Special tokens come around it, and what is too long
   is cut. */
#include "masks/base/memory.h"
#include "model/tokenizer/encoding.h"
#include "model/tokenizer/pipeline.h"
#include "model/tokenizer/post.h"
#include <stdlib.h>
#include <string.h>

void tokens_finish(struct tokens *t)
{
    free(t->token_ids);
    free(t->span);
    words_finish(&t->words);
    pipeline_destroy(t->memory);
    *t = (struct tokens){0};
}

void encoding_push_text(struct encoding *in, uint32_t token_id, struct span source,
                        const char *text, uint32_t size)
{
    const struct post *p = in->tokenizer->post;
    if (p->trims)
        source = post_trim(p, in->text.bytes, source, post_blanks(text, size),
                           in->tokens->count == in->first);
    tokens_push(in->tokens, token_id, source);
}

void encoding_push_trimmed(struct encoding *in, uint32_t token_id, struct span source)
{
    const char *text = in->tokenizer->vocabulary.token[token_id];
    encoding_push_text(in, token_id, source, text, text ? (uint32_t)strlen(text) : 0);
}

static void encode_part(const struct tokenizer *t, struct text_part part, struct tokens *ret)
{
    struct encoding in = {t, ret, part, ret->count};
    struct added_search m = {.unicode = t->unicode, .text = part.bytes, .size = part.size};
    while (added_next(&t->added, &m)) {
        if (m.done < m.begin)
            t->kind->encode_gap(&in, m.done, m.begin);
        if (m.begin < m.end)
            encoding_push_text(&in, m.token->token_id, (struct span){m.begin, m.end},
                               part.bytes + m.begin, m.end - m.begin);
        m.done = m.end;
    }
    if (m.done < part.size)
        t->kind->encode_gap(&in, m.done, part.size);
}

struct share {
    uint32_t a, b;
};

/* Number of tokens of each part that stay if `capacity` fit: the longer part is cut. If both are cut and `capacity` is
   odd, the odd token is the longer part's with HuggingFace, the first part's with Google. */
static struct share share_tokens(struct share n, uint32_t capacity,
                                 enum tokenizer_compat compat)
{
    if (n.a + n.b <= capacity)
        return n;
    uint32_t half = capacity / 2, rest = capacity - half;
    uint32_t shorter = n.a < n.b ? n.a : n.b;
    if (shorter <= half)
        return n.a <= n.b ? (struct share){n.a, capacity - n.a}
                          : (struct share){capacity - n.b, n.b};
    bool first = compat == TOKENIZER_GOOGLE || n.a > n.b;
    return first ? (struct share){rest, half} : (struct share){half, rest};
}

/* Moves tokens to an earlier place. */
static void move(struct tokens *t, uint32_t to, uint32_t from, uint32_t count)
{
    memmove(t->token_ids + to, t->token_ids + from, count * sizeof *t->token_ids);
    memmove(t->span + to, t->span + from, count * sizeof *t->span);
}

/* Cuts to fewer tokens of A and B. */
static void shorten(struct tokens *t, const struct layout *l, struct share n, struct share keep)
{
    uint32_t a = l->before + keep.a;
    move(t, a, l->before + n.a, l->middle + keep.b);
    move(t, a + l->middle + keep.b, t->count - l->after, l->after);
    t->count = a + l->middle + keep.b + l->after;
    t->cut = true;
}

static void add_specials(struct tokens *t, const struct layout *l, uint32_t first,
                         uint32_t count)
{
    for (uint32_t k = first; k < first + count; k++)
        tokens_push(t, l->token_id[k], (struct span){0, 0});
}

static void describe(struct tokens *t, const struct layout *l, struct share n)
{
    t->first_part = l->specials + (l->a_zero ? n.a : 0) + (l->b_zero ? n.b : 0);
    t->head = l->before;
    t->middle = l->middle;
    t->second = l->before + n.a + l->middle;
    t->tail = l->after;
}

void tokenizer_encode(const struct tokenizer *t, struct text_part a, struct text_part b,
                      uint32_t max_length, struct tokens *ret)
{
    const struct layout *l = b.bytes ? &t->post->pair : &t->post->single;
    uint32_t specials = l->before + l->middle + l->after;
    struct share n = {0, 0};
    ret->count = 0;
    ret->cut = false;
    add_specials(ret, l, 0, l->before);
    encode_part(t, a, ret);
    n.a = ret->count - l->before;
    add_specials(ret, l, l->before, l->middle);
    if (b.bytes)
        encode_part(t, b, ret);
    n.b = ret->count - l->before - n.a - l->middle;
    add_specials(ret, l, l->before + l->middle, l->after);
    uint32_t capacity = max_length > specials ? max_length - specials : 0;
    struct share keep = max_length ? share_tokens(n, capacity, t->compat) : n;
    if (keep.a < n.a || keep.b < n.b)
        shorten(ret, l, n, keep);
    describe(ret, l, keep);
}
