/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/normalize/normalizer.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/unicode.h"
#include <stdlib.h>
#include <string.h>

void normalizers_finish(struct normalizers *n)
{
    for (uint32_t k = 0; k < n->count; k++) {
        expression_finish(&n->list[k].expression);
        charsmap_finish(&n->list[k].charsmap);
        free(n->list[k].content);
    }
    free(n->list);
    *n = (struct normalizers){0};
}

void normalizing_finish(struct normalizing *m)
{
    aligned_finish(&m->text);
    aligned_finish(&m->other);
    changes_finish(&m->changes);
}

/* m->other becomes the text. */
static void swap(struct normalizing *m)
{
    struct aligned old = m->text;
    m->text = m->other;
    m->other = old;
}

static void apply(struct normalizing *m)
{
    m->other.size = 0;
    aligned_transform(&m->other, &m->text, &m->changes);
    swap(m);
}

static void lower(struct normalizing *m)
{
    const uint8_t *bytes = (const uint8_t *)m->text.bytes;
    uint32_t low[UNICODE_MAX_LOWER];
    for (uint32_t at = 0, point; at < m->text.size;) {
        at += unicode_decode(bytes + at, bytes + m->text.size, &point);
        uint32_t n = unicode_lower(point, low);
        for (uint32_t k = 0; k < n; k++)
            changes_add(&m->changes, low[k], k > 0);
    }
    apply(m);
}

/* Bytes of the text without the blanks at its ends. */
static struct span find_middle(const struct aligned *text, bool left, bool right)
{
    const uint8_t *p = (const uint8_t *)text->bytes, *end = p + text->size;
    struct span middle = {text->size, 0};
    for (uint32_t at = 0, n, point; at < text->size; at += n) {
        n = unicode_decode(p + at, end, &point);
        if (unicode_is_blank(point))
            continue;
        middle.begin = at < middle.begin ? at : middle.begin;
        middle.end = at + n;
    }
    if (!left)
        middle.begin = 0;
    if (!right)
        middle.end = text->size;
    if (middle.end < middle.begin)
        middle.end = middle.begin;
    return middle;
}

static void cut(struct normalizing *m, struct span part)
{
    m->other.size = 0;
    aligned_add_part(&m->other, &m->text, part);
    swap(m);
}

static void prepend(struct normalizing *m, const char *content)
{
    if (!m->text.size)
        return;
    m->other.size = 0;
    aligned_add(&m->other, content, (uint32_t)strlen(content), aligned_source(&m->text, 0));
    aligned_add_part(&m->other, &m->text, (struct span){0, m->text.size});
    swap(m);
}

/* Replaces each match. The replacement has the source of the match's last character. */
static void replace(struct normalizing *m, const struct expression *p, const char *content)
{
    struct span match;
    uint32_t done = 0, size = (uint32_t)strlen(content);
    m->other.size = 0;
    while (expression_next(p, m->text.bytes, done, m->text.size, &match)) {
        aligned_add_part(&m->other, &m->text, (struct span){done, match.begin});
        aligned_add(&m->other, content, size, aligned_source(&m->text, match.end - 1));
        done = match.end;
    }
    if (!done)
        return;
    aligned_add_part(&m->other, &m->text, (struct span){done, m->text.size});
    swap(m);
}

static void run(const struct normalizer *n, struct normalizing *m)
{
    m->changes.count = 0;
    switch (n->kind) {
    case NORMALIZER_FORM:
        if (form_holds(n->form, &m->text))
            return;
        form_changes(n->form, &m->text, &m->changes);
        apply(m);
        return;
    case NORMALIZER_LOWERCASE:
        lower(m);
        return;
    case NORMALIZER_TRIM:
        cut(m, find_middle(&m->text, n->left, n->right));
        return;
    case NORMALIZER_PREPEND:
        prepend(m, n->content);
        return;
    case NORMALIZER_REPLACE:
        replace(m, &n->expression, n->content);
        return;
    case NORMALIZER_CHARSMAP:
        if (charsmap_changes(&n->charsmap, &m->text, &m->changes))
            apply(m);
        return;
    }
}

void normalizers_run(const struct normalizers *n, struct normalizing *m)
{
    for (uint32_t k = 0; k < n->count; k++)
        run(&n->list[k], m);
}
