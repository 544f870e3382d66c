/* SPDX-License-Identifier: Apache-2.0 */
/* Split: matches of a pattern, and what becomes of them. */
#include "model/tokenizer/split/behavior.h"
#include "masks/base/memory.h"

struct cutting {
    const struct splitter *splitter;
    struct pieces *ret;
    uint32_t first; /* of ret */
    bool matched;   /* the part before was a match */
};

void pieces_add(struct pieces *p, struct span piece)
{
    if (piece.begin < piece.end)
        *MEMORY_PUSH(p->list, p->count, p->capacity) = piece;
}

/* Takes the next part, a match or what is between matches. With SPLIT_NEXT a match that another one follows stays
   alone. */
static void take(struct cutting *c, struct span part, bool match)
{
    struct pieces *ret = c->ret;
    bool any = ret->count > c->first;
    if (part.begin == part.end)
        return;
    match ^= c->splitter->invert;
    enum split_behavior behavior = c->splitter->behavior;
    bool join = (behavior == SPLIT_JOINED && match == c->matched) ||
                (behavior == SPLIT_PREVIOUS && match && !c->matched) ||
                (behavior == SPLIT_NEXT && !match && c->matched);
    c->matched = match;
    if (behavior == SPLIT_REMOVED && match)
        return;
    if (join && any)
        ret->list[ret->count - 1].end = part.end;
    else
        pieces_add(ret, part);
}

void behavior_cut(const struct splitter *s, const struct aligned *text, struct span part,
                  struct pieces *ret)
{
    struct cutting c = {s, ret, ret->count, false};
    struct span match;
    uint32_t done = part.begin;
    while (expression_next(&s->expression, text->bytes, done, part.end, &match)) {
        take(&c, (struct span){done, match.begin}, false);
        take(&c, match, true);
        done = match.end;
    }
    take(&c, (struct span){done, part.end}, false);
}
