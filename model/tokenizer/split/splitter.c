/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/split/splitter.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/unicode.h"
#include "model/tokenizer/base/word_class.h"
#include "model/tokenizer/split/behavior.h"
#include <stdlib.h>
#include <string.h>

void splitters_finish(struct splitters *s)
{
    for (uint32_t k = 0; k < s->count; k++)
        expression_finish(&s->list[k].expression);
    free(s->list);
    *s = (struct splitters){0};
}

void splitting_finish(struct splitting *m)
{
    free(m->pieces.list);
    free(m->next.list);
    aligned_finish(&m->buffer[0]);
    aligned_finish(&m->buffer[1]);
}

void splitters_prefix(struct splitters *s, bool add_prefix_space)
{
    for (uint32_t k = 0; k < s->count; k++)
        if (s->list[k].kind == SPLITTER_BYTE_LEVEL)
            s->list[k].prepend = add_prefix_space ? PREPEND_ALWAYS : PREPEND_NEVER;
}

uint32_t byte_character(uint8_t byte, char ret[4])
{
    bool plain = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    uint32_t point = plain          ? byte
                     : byte <= ' '  ? 0x100u + byte
                     : byte == 0xad ? 0x143u
                                    : 0x121u + (byte - 0x7fu);
    return unicode_encode(point, ret);
}

static uint32_t class_of(uint32_t point)
{
    return unicode_is_word(point) ? 2 : unicode_is_blank(point) ? 0 : 1;
}

static uint32_t is_visible(uint32_t point)
{
    return !unicode_is_blank(point);
}

/* Runs of characters of one class; class 0 goes. */
static void cut_classes(const struct aligned *text, struct span part,
                        uint32_t (*class)(uint32_t), struct pieces *ret)
{
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    uint32_t begin = part.begin, last = 0;
    for (uint32_t at = part.begin, n, point; at < part.end; at += n) {
        n = unicode_decode(bytes + at, bytes + part.end, &point);
        uint32_t now = class(point);
        if (now == last)
            continue;
        if (last)
            pieces_add(ret, (struct span){begin, at});
        begin = at;
        last = now;
    }
    if (last)
        pieces_add(ret, (struct span){begin, part.end});
}

static void cut_words(const struct aligned *text, struct span part, struct pieces *ret)
{
    for (uint32_t at = part.begin, end; at < part.end; at = end) {
        end = gpt2_word(text->bytes, at, part.end);
        pieces_add(ret, (struct span){at, end});
    }
}

/* Each mark begins a piece. */
static void cut_marks(const struct splitter *s, const struct aligned *text, struct span part,
                      struct pieces *ret)
{
    uint32_t size = (uint32_t)strlen(s->mark), begin = part.begin;
    for (uint32_t at = part.begin; at < part.end;) {
        const char *found = memmem(text->bytes + at, part.end - at, s->mark, size);
        uint32_t next = found ? (uint32_t)(found - text->bytes) : part.end;
        if (next > begin)
            pieces_add(ret, (struct span){begin, next});
        begin = next;
        at = next + size;
    }
    if (begin < part.end)
        pieces_add(ret, (struct span){begin, part.end});
}

static void cut(const struct splitter *s, const struct aligned *text, struct span part,
                struct pieces *ret)
{
    switch (s->kind) {
    case SPLITTER_BLANKS:
        cut_classes(text, part, is_visible, ret);
        return;
    case SPLITTER_WORDS:
        cut_classes(text, part, class_of, ret);
        return;
    case SPLITTER_EXPRESSION:
        behavior_cut(s, text, part, ret);
        return;
    case SPLITTER_METASPACE:
    case SPLITTER_BYTE_LEVEL:
        if (!s->cuts)
            pieces_add(ret, part);
        else if (s->kind == SPLITTER_METASPACE)
            cut_marks(s, text, part, ret);
        else
            cut_words(text, part, ret);
    }
}

/* The mark or the blank that comes before the piece, or nothing. */
static const char *prefix_of(const struct splitter *s, const struct aligned *text,
                             struct span part)
{
    const char *mark = s->kind == SPLITTER_METASPACE ? s->mark : " ";
    uint32_t size = (uint32_t)strlen(mark);
    bool there = part.end - part.begin >= size && !memcmp(text->bytes + part.begin, mark, size);
    bool blank = s->kind == SPLITTER_METASPACE && text->bytes[part.begin] == ' ';
    bool wanted = s->prepend == PREPEND_ALWAYS ||
                  (s->prepend == PREPEND_FIRST && text->begin[part.begin] == 0);
    return wanted && !there && !blank ? mark : "";
}

/* Appends the piece with its prefix, blanks as marks. */
static void rewrite(const struct splitter *s, const struct aligned *text, struct span part,
                    struct aligned *ret)
{
    const char *prefix = prefix_of(s, text, part);
    uint32_t size = (uint32_t)strlen(s->mark);
    aligned_add(ret, prefix, (uint32_t)strlen(prefix), aligned_source(text, part.begin));
    if (s->kind != SPLITTER_METASPACE) {
        aligned_add_part(ret, text, part);
        return;
    }
    for (uint32_t at = part.begin, next; at < part.end; at = next + 1) {
        const char *found = memchr(text->bytes + at, ' ', part.end - at);
        next = found ? (uint32_t)(found - text->bytes) : part.end;
        aligned_add_part(ret, text, (struct span){at, next});
        if (found)
            aligned_add(ret, s->mark, size, aligned_source(text, next));
    }
}

static bool needs_rewriting(const struct splitter *s, const struct splitting *m)
{
    bool any = s->kind == SPLITTER_METASPACE;
    for (uint32_t k = 0; k < m->pieces.count && s->kind == SPLITTER_BYTE_LEVEL && !any; k++)
        any = *prefix_of(s, m->text, m->pieces.list[k]) != 0;
    return any;
}

static struct aligned *other_buffer(struct splitting *m)
{
    struct aligned *ret = &m->buffer[m->text == &m->buffer[0]];
    ret->size = 0;
    return ret;
}

static void swap(struct splitting *m)
{
    struct pieces old = m->pieces;
    m->pieces = m->next;
    m->next = old;
}

static void run(const struct splitter *s, struct splitting *m)
{
    struct aligned *to = needs_rewriting(s, m) ? other_buffer(m) : NULL;
    m->next.count = 0;
    for (uint32_t k = 0; k < m->pieces.count; k++) {
        struct span part = m->pieces.list[k];
        if (to) {
            uint32_t begin = to->size;
            rewrite(s, m->text, part, to);
            part = (struct span){begin, to->size};
        }
        cut(s, to ? to : m->text, part, &m->next);
    }
    m->text = to ? to : m->text;
    swap(m);
}

/* Every byte of the pieces as a character. */
static void map_bytes(struct splitting *m)
{
    struct aligned *to = other_buffer(m);
    for (uint32_t k = 0; k < m->pieces.count; k++) {
        struct span *part = &m->pieces.list[k];
        uint32_t begin = to->size;
        for (uint32_t at = part->begin; at < part->end; at++) {
            char character[4];
            uint32_t size = byte_character((uint8_t)m->text->bytes[at], character);
            aligned_add(to, character, size, aligned_source(m->text, at));
        }
        *part = (struct span){begin, to->size};
    }
    m->text = to;
}

void splitters_run(const struct splitters *s, const struct aligned *text, struct span part,
                   struct splitting *m)
{
    m->text = text;
    m->pieces.count = 0;
    pieces_add(&m->pieces, part);
    for (uint32_t k = 0; k < s->count; k++)
        run(&s->list[k], m);
    if (s->mapped)
        map_bytes(m);
}
