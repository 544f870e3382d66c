/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/base/aligned.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/unicode.h"
#include <stdlib.h>
#include <string.h>

void aligned_finish(struct aligned *a)
{
    free(a->bytes);
    free(a->begin);
    free(a->end);
    *a = (struct aligned){0};
}

static bool reserve(struct aligned *a, uint32_t more)
{
    uint64_t need = (uint64_t)a->size + more, capacity = a->capacity ? a->capacity : 256;
    if (need > ALIGNED_MAX_BYTES)
        return false;
    if (need <= a->capacity)
        return true;
    while (capacity < need)
        capacity *= 2;
    a->capacity = capacity > UINT32_MAX ? UINT32_MAX : (uint32_t)capacity;
    a->bytes = memory_resize(a->bytes, a->capacity, 1);
    a->begin = memory_resize(a->begin, a->capacity, sizeof *a->begin);
    a->end = memory_resize(a->end, a->capacity, sizeof *a->end);
    return true;
}

static inline void put(struct aligned *a, const char *bytes, uint32_t size, struct span source)
{
    for (uint32_t k = 0; k < size; k++) {
        a->bytes[a->size + k] = bytes[k];
        a->begin[a->size + k] = source.begin;
        a->end[a->size + k] = source.end;
    }
    a->size += size;
}

void aligned_add(struct aligned *a, const char *bytes, uint32_t size, struct span source)
{
    if (reserve(a, size))
        put(a, bytes, size, source);
}

void aligned_add_point(struct aligned *a, uint32_t point, struct span source)
{
    char bytes[4];
    aligned_add(a, bytes, unicode_encode(point, bytes), source);
}

void aligned_add_part(struct aligned *a, const struct aligned *from, struct span part)
{
    uint32_t size = part.end - part.begin;
    if (!size || !reserve(a, size))
        return;
    memcpy(a->bytes + a->size, from->bytes + part.begin, size);
    memcpy(a->begin + a->size, from->begin + part.begin, size * sizeof *a->begin);
    memcpy(a->end + a->size, from->end + part.begin, size * sizeof *a->end);
    a->size += size;
}

void aligned_add_text(struct aligned *a, const char *text, uint32_t from, uint32_t to)
{
    const uint8_t *bytes = (const uint8_t *)text;
    if (!reserve(a, to - from))
        return;
    for (uint32_t at = from, n = 1; at < to; at += n) {
        uint32_t point;
        n = unicode_decode(bytes + at, bytes + to, &point);
        bool valid = point != 0xfffd || (n == 3 && bytes[at] == 0xef);
        if (valid && a->size + n <= a->capacity)
            put(a, text + at, n, (struct span){at, at + n});
        else
            aligned_add_point(a, point, (struct span){at, at + n});
    }
}

void changes_add(struct changes *c, uint32_t point, int32_t change)
{
    *MEMORY_PUSH(c->list, c->count, c->capacity) = (struct change){point, change};
}

void changes_finish(struct changes *c)
{
    free(c->list);
    *c = (struct changes){0};
}

/* The byte behind the next `count` characters. */
static uint32_t skip(const struct aligned *from, uint32_t at, int64_t count)
{
    const uint8_t *bytes = (const uint8_t *)from->bytes;
    for (uint32_t point; count > 0 && at < from->size; count--)
        at += unicode_decode(bytes + at, bytes + from->size, &point);
    return at;
}

void aligned_transform(struct aligned *ret, const struct aligned *from, const struct changes *c)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        const struct change *x = &c->list[k];
        uint32_t with = x->change > 0 ? (at ? at - 1 : 0) : at;
        if (with >= from->size) /* no list of a normalizer replaces more than there is */
            with = from->size - 1;
        aligned_add_point(ret, x->point, aligned_source(from, with));
        if (x->change <= 0)
            at = skip(from, at, 1 - (int64_t)x->change);
    }
}

bool unicode_is_blank(uint32_t p)
{
    return (p >= 9 && p <= 13) || p == ' ' || p == 0x85 || p == 0xa0 || p == 0x1680 ||
           (p >= 0x2000 && p <= 0x200a) || p == 0x2028 || p == 0x2029 || p == 0x202f ||
           p == 0x205f || p == 0x3000;
}
