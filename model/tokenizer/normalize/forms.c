/* SPDX-License-Identifier: Apache-2.0 */
/* Decomposition, the order of combining characters, composition: each character keeps the change that tells which
   characters of the old text it stands for. See the crate unicode-normalization-alignments 0.1. */
#include "model/tokenizer/normalize/forms.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/unicode.h"
#include <stdlib.h>
#include <utf8proc.h>

enum { LONGEST = 18 }; /* characters of a decomposition: U+FDFA */

enum {
    L_FIRST = 0x1100,
    L_LAST = 0x1112,
    V_FIRST = 0x1161,
    V_LAST = 0x1175,
    T_BASE = 0x11a7,
    T_LAST = 0x11c2,
    S_FIRST = 0xac00,
    S_LAST = 0xd7a3,
    VOWELS = 21,
    TAILS = 28,
};

struct former {
    const uint8_t *flags;
    bool compatible, compose;
    struct changes *ret;
    uint32_t pending; /* from here on combining characters of *ret wait for their order */
    bool has_starter;
    uint32_t starter; /* the last starter, which what follows may be composed with */
    uint8_t last;     /* class of the last character behind it that stayed; 0: none did */
};

/* Characters whose decomposition is newer than the crate's tables. */
static bool is_new(uint32_t p)
{
    return p == 0x11938 || (p >= 0x1e030 && p <= 0x1e06d) || p == 0x32ff ||
           (p >= 0xa7f2 && p <= 0xa7f4) || p == 0xab69 || (p >= 0x10781 && p <= 0x107ba) ||
           p == 0x1f16c || (p >= 0x1fbf0 && p <= 0x1fbf9);
}

static uint8_t class_of(const struct former *f, uint32_t point)
{
    return f->flags[point] & POINT_COMBINING ? (uint8_t)unicode_combining_class(point) : 0;
}

static uint32_t decompose(const struct former *f, uint32_t point, uint32_t ret[LONGEST])
{
    utf8proc_int32_t part[LONGEST];
    utf8proc_ssize_t n = 0;
    if (f->flags[point] & POINT_DECOMPOSED || (f->compatible && !is_new(point)))
        n = utf8proc_decompose_char(
            (utf8proc_int32_t)point, part, LONGEST,
            f->compatible ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE, NULL);
    if (n < 1 || n > LONGEST || (n == 1 && part[0] == (utf8proc_int32_t)point) ||
        (!f->compatible && !(f->flags[point] & POINT_DECOMPOSED))) {
        ret[0] = point;
        return 1;
    }
    for (utf8proc_ssize_t k = 0; k < n; k++)
        ret[k] = (uint32_t)part[k];
    return (uint32_t)n;
}

static uint32_t compose_hangul(uint32_t a, uint32_t b)
{
    if (a >= L_FIRST && a <= L_LAST && b >= V_FIRST && b <= V_LAST)
        return S_FIRST + ((a - L_FIRST) * VOWELS + (b - V_FIRST)) * TAILS;
    bool open = a >= S_FIRST && a <= S_LAST && (a - S_FIRST) % TAILS == 0;
    return open && b > T_BASE && b <= T_LAST ? a + (b - T_BASE) : 0;
}

/* The character that a and b compose; 0: none. */
static uint32_t compose(const struct former *f, uint32_t a, uint32_t b)
{
    uint32_t hangul = compose_hangul(a, b);
    utf8proc_int32_t pair[4] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b};
    if (hangul || a < 0x3c || b < 0x300 || (b >= V_FIRST && b <= T_LAST))
        return hangul;
    if (utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) != 1)
        return 0;
    return f->flags[pair[0]] & POINT_DECOMPOSED ? (uint32_t)pair[0] : 0;
}

struct combining {
    struct change change;
    uint8_t class;
    uint32_t at;
};

static int by_class(const void *a, const void *b)
{
    const struct combining *x = a, *y = b;
    return x->class != y->class ? x->class - y->class : x->at < y->at ? -1 : x->at > y->at;
}

/* Sorts list[begin, end) by class; equal ones keep their order. */
static void order(const struct former *f, uint32_t begin, uint32_t end)
{
    struct change *list = f->ret->list + begin;
    uint32_t n = end - begin;
    if (n < 2)
        return;
    struct combining *sorted = memory_new(n, sizeof *sorted);
    for (uint32_t k = 0; k < n; k++)
        sorted[k] = (struct combining){list[k], class_of(f, list[k].point), k};
    qsort(sorted, n, sizeof *sorted, by_class);
    for (uint32_t k = 0; k < n; k++)
        list[k] = sorted[k].change;
    free(sorted);
}

/* Joins x with the last starter, or keeps it in list[*count]. */
static void compose_next(struct former *f, struct change x, uint32_t *count)
{
    struct change *list = f->ret->list;
    uint8_t class = class_of(f, x.point);
    bool blocked = f->last && f->last >= class;
    uint32_t joined =
        f->has_starter && !blocked ? compose(f, list[f->starter].point, x.point) : 0;
    if (joined) {
        list[f->starter].point = joined;
        list[f->starter].change += x.change - 1;
        return;
    }
    if (!class) {
        f->has_starter = true;
        f->starter = *count;
        f->last = 0;
    } else if (f->has_starter) {
        f->last = class;
    }
    list[(*count)++] = x;
}

static void compose_all(struct former *f, uint32_t begin)
{
    uint32_t count = begin, all = f->ret->count;
    for (uint32_t k = begin; k < all; k++)
        compose_next(f, f->ret->list[k], &count);
    f->ret->count = count;
}

static void add_decomposed(struct former *f, uint32_t point)
{
    uint32_t part[LONGEST], n = point < 0x80 ? 1 : decompose(f, point, part);
    if (point < 0x80)
        part[0] = point;
    for (uint32_t k = 0; k < n; k++) {
        if (!class_of(f, part[k])) {
            order(f, f->pending, f->ret->count);
            f->pending = f->ret->count + 1;
        }
        changes_add(f->ret, part[k], k > 0);
    }
}

void form_changes(enum unicode_form form, const struct aligned *text, struct changes *ret)
{
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    struct former f = {.flags = unicode_get(UNICODE_HF)->flags,
                       .compatible = form == FORM_NFKD || form == FORM_NFKC,
                       .compose = form == FORM_NFC || form == FORM_NFKC,
                       .ret = ret,
                       .pending = ret->count};
    uint32_t begin = ret->count;
    for (uint32_t at = 0, point; at < text->size;) {
        at += unicode_decode(bytes + at, bytes + text->size, &point);
        add_decomposed(&f, point);
    }
    order(&f, f.pending, ret->count);
    if (f.compose)
        compose_all(&f, begin);
}

bool form_holds(enum unicode_form form, const struct aligned *text)
{
    for (uint32_t k = 0; k < text->size; k++)
        if ((uint8_t)text->bytes[k] >= (form == FORM_NFC ? 0xcc : 0x80))
            return false;
    return true;
}
