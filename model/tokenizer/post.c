/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/post.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/unicode.h"
#include <stdlib.h>

enum { BYTE_BLANK = 0x120 }; /* stands for a blank in GPT-2's alphabet */

void post_finish(struct post *p)
{
    free(p->single.token_id);
    free(p->pair.token_id);
    *p = (struct post){0};
}

static struct layout build(uint32_t begin, uint32_t end, uint32_t middle, bool zero)
{
    struct layout l = {.token_id = memory_new(middle + 2, sizeof *l.token_id),
                       .before = 1,
                       .middle = middle,
                       .after = 1,
                       .specials = zero ? middle + 2 : middle + 1,
                       .a_zero = true,
                       .b_zero = zero};
    l.token_id[0] = begin;
    for (uint32_t k = 1; k < middle + 2; k++)
        l.token_id[k] = end;
    return l;
}

void post_build(struct post *ret, uint32_t begin, uint32_t end, bool roberta)
{
    free(ret->single.token_id);
    free(ret->pair.token_id);
    ret->single = build(begin, end, 0, true);
    ret->pair = build(begin, end, roberta ? 2 : 1, roberta);
}

uint32_t post_largest(const struct post *p)
{
    const struct layout *both[] = {&p->single, &p->pair};
    uint32_t most = 0;
    for (int l = 0; l < 2; l++)
        for (uint32_t k = 0; k < both[l]->before + both[l]->middle + both[l]->after; k++)
            most = both[l]->token_id[k] > most ? both[l]->token_id[k] : most;
    return most;
}

static bool is_blank(uint32_t point)
{
    return point == BYTE_BLANK || unicode_is_blank(point);
}

struct blanks post_blanks(const char *bytes, uint32_t size)
{
    const uint8_t *p = (const uint8_t *)bytes;
    struct blanks ret = {0, 0};
    bool any = false; /* a character that is no blank came */
    for (uint32_t at = 0, point; at < size;) {
        at += unicode_decode(p + at, p + size, &point);
        bool blank = is_blank(point);
        any |= !blank;
        ret.before += !any;
        ret.after = blank ? ret.after + 1 : 0;
    }
    return ret;
}

static uint32_t count_points(const char *text, uint32_t from, uint32_t to)
{
    const uint8_t *p = (const uint8_t *)text;
    uint32_t count = 0;
    for (uint32_t point; from < to; count++)
        from += unicode_decode(p + from, p + to, &point);
    return count;
}

/* The byte behind the next `count` characters. */
static uint32_t skip(const char *text, uint32_t from, uint32_t to, uint32_t count)
{
    const uint8_t *p = (const uint8_t *)text;
    for (uint32_t point; count && from < to; count--)
        from += unicode_decode(p + from, p + to, &point);
    return from;
}

struct span post_trim(const struct post *p, const char *text, struct span token,
                      struct blanks blanks, bool first)
{
    if (!blanks.before && !blanks.after)
        return token;
    first |= token.begin == 0;
    if (first && p->prefix && blanks.before == 1)
        blanks.before = 0;
    uint32_t all = count_points(text, token.begin, token.end), begin = token.begin;
    token.begin = skip(text, begin, token.end, blanks.before);
    if (blanks.after > all && count_points(text, 0, begin) + all < blanks.after)
        return token;
    uint32_t end = skip(text, begin, token.end, blanks.after < all ? all - blanks.after : 0);
    token.end = end > token.begin ? end : token.begin;
    return token;
}
