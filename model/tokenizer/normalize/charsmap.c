/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the replacements that the Rust crate spm_precompiled 0.1 finds. */
#include "model/tokenizer/normalize/charsmap.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/unicode.h"
#include "model/tokenizer/normalize/grapheme.h"
#include <stdlib.h>
#include <string.h>

enum { SHORT_GRAPHEME = 6 };

void charsmap_finish(struct charsmap *c)
{
    free(c->unit);
    free(c->text);
    *c = (struct charsmap){0};
}

static bool is_utf8(const char *bytes, uint32_t size)
{
    const uint8_t *p = (const uint8_t *)bytes;
    for (uint32_t at = 0, n, point; at < size; at += n) {
        n = unicode_decode(p + at, p + size, &point);
        if (point == 0xfffd && (n != 3 || p[at] != 0xef))
            return false;
    }
    return true;
}

int charsmap_read(struct charsmap *ret, const void *bytes, size_t size, struct error *e)
{
    const char *from = bytes;
    uint32_t array = 0;
    if (size >= sizeof array)
        memcpy(&array, from, sizeof array);
    size_t rest = size < sizeof array ? 0 : size - sizeof array;
    if (array < sizeof *ret->unit || array % sizeof *ret->unit || array > rest ||
        rest > UINT32_MAX / 2)
        return error_set(e, ERROR_INPUT, "precompiled_charsmap: its sizes are damaged");
    from += sizeof array;
    ret->n_units = array / (uint32_t)sizeof *ret->unit;
    ret->unit = memory_copy(from, array);
    ret->text_size = (uint32_t)(rest - array);
    ret->text = memory_new((size_t)ret->text_size + 1, 1);
    memcpy(ret->text, from + array, ret->text_size);
    return is_utf8(ret->text, ret->text_size)
               ? 0
               : error_set(e, ERROR_INPUT, "precompiled_charsmap: its text is no UTF-8");
}

static int digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

int charsmap_decode(struct charsmap *ret, const char *base64, struct error *e)
{
    size_t length = strlen(base64), size = 0;
    bool good = length % 4 == 0;
    uint8_t *bytes = memory_new(length / 4 * 3 + 1, 1);
    size_t closing = length && base64[length - 1] == '=' ? 1 : 0;
    closing += closing && length > 1 && base64[length - 2] == '=';
    uint32_t bits = 0;
    for (size_t k = 0; k < length - closing && good; k++) {
        int value = digit(base64[k]);
        good = value >= 0;
        bits = bits << 6 | (uint32_t)(value & 63);
        if (k % 4)
            bytes[size++] = (uint8_t)(bits >> (6 - 2 * (k % 4)));
    }
    int r = good ? charsmap_read(ret, bytes, size, e)
                 : error_set(e, ERROR_INPUT, "precompiled_charsmap: base64 is expected");
    free(bytes);
    return r;
}

static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* Replacement of the shortest entry that is a prefix of bytes[0, size); null if there is none. */
static const char *find(const struct charsmap *c, const char *bytes, uint32_t size)
{
    uint32_t node = offset_of(c->unit[0]);
    for (uint32_t k = 0; k < size && bytes[k]; k++) {
        node ^= (uint8_t)bytes[k];
        if (node >= c->n_units)
            return NULL;
        uint32_t unit = c->unit[node];
        if ((unit & (1u << 31 | 0xff)) != (uint8_t)bytes[k])
            return NULL;
        node ^= offset_of(unit);
        if (!(unit >> 8 & 1))
            continue;
        uint32_t value = node < c->n_units ? c->unit[node] & ~(1u << 31) : UINT32_MAX;
        return value < c->text_size ? c->text + value : NULL;
    }
    return NULL;
}

static uint32_t count_points(const char *bytes, uint32_t size)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < size; k++)
        count += ((uint8_t)bytes[k] & 0xc0) != 0x80;
    return count;
}

/* The new characters and how many more or fewer they are than the old ones. Nothing in place of a text's first
   characters changes nothing: the characters that follow take their places. */
static void replace(struct changes *ret, uint32_t old, const char *by)
{
    const uint8_t *p = (const uint8_t *)by, *end = p + strlen(by);
    int64_t more = -(int64_t)old;
    for (uint32_t point; p < end; more++) {
        p += unicode_decode(p, end, &point);
        changes_add(ret, point, 0);
    }
    for (int64_t k = 0; k < more; k++)
        ret->list[ret->count - 1 - (uint32_t)k].change = 1;
    if (more < 0 && ret->count)
        ret->list[ret->count - 1].change += (int32_t)more;
}

static bool replace_points(const struct charsmap *c, const char *bytes, uint32_t size,
                           struct changes *ret)
{
    const uint8_t *p = (const uint8_t *)bytes;
    bool any = false;
    for (uint32_t at = 0, n, point; at < size; at += n) {
        n = unicode_decode(p + at, p + size, &point);
        const char *by = find(c, bytes + at, n);
        if (by)
            replace(ret, 1, by);
        else
            changes_add(ret, point, 0);
        any |= by != NULL;
    }
    return any;
}

bool charsmap_changes(const struct charsmap *c, const struct aligned *text, struct changes *ret)
{
    bool any = false;
    for (uint32_t at = 0, end; at < text->size; at = end) {
        end = grapheme_end(text->bytes, at, text->size);
        const char *bytes = text->bytes + at;
        const char *by = end - at < SHORT_GRAPHEME ? find(c, bytes, end - at) : NULL;
        if (by)
            replace(ret, count_points(bytes, end - at), by);
        any |= by || replace_points(c, bytes, end - at, ret);
    }
    return any;
}
