/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/normalize/expression.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/unicode.h"
#include <stdlib.h>
#include <string.h>

static const char gpt2_text[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
/* The same language, as some files spell it. */
static const char gpt2_short[] =
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

void expression_finish(struct expression *p)
{
    free(p->text);
    *p = (struct expression){0};
}

static int read_text(struct expression *ret, const char *text)
{
    ret->kind = EXPRESSION_TEXT;
    ret->text = memory_text(text);
    ret->size = (uint32_t)strlen(text);
    return 0;
}

/* The least count of the quantifier behind the character: 1 for "+", N for "{N,}"; 0: something else. */
static uint32_t read_least(const char *text)
{
    char *end;
    if (!strcmp(text, "+"))
        return 1;
    if (*text != '{' || text[1] < '1' || text[1] > '9')
        return 0;
    unsigned long least = strtoul(text + 1, &end, 10);
    return strcmp(end, ",}") != 0 || least > UINT16_MAX ? 0 : (uint32_t)least;
}

static int read_regex(struct expression *ret, const char *text, struct error *e)
{
    static const char special[] = "\\.+*?()|[]{}^$";
    if (!strcmp(text, gpt2_text) || !strcmp(text, gpt2_short)) {
        ret->kind = EXPRESSION_GPT2;
        return 0;
    }
    if (*text && !strpbrk(text, special))
        return read_text(ret, text);
    bool blank = !strncmp(text, "\\s", 2);
    uint32_t size = 2;
    if (!blank && *text && !strchr(special, *text))
        size = unicode_decode((const uint8_t *)text, (const uint8_t *)text + strlen(text),
                              &ret->point);
    ret->kind = EXPRESSION_REPEATED;
    ret->least = blank || ret->point ? read_least(text + size) : 0;
    return ret->least ? 0
                      : error_set(e, ERROR_INPUT,
                                  "the regular expression '%.60s' is not supported", text);
}

int expression_read(struct expression *ret, const json_t *object, struct error *e)
{
    const char *text = json_string_value(json_object_get(object, "String"));
    const char *regex = json_string_value(json_object_get(object, "Regex"));
    if (regex && !text)
        return read_regex(ret, regex, e);
    if (!text || !*text)
        return error_set(e, ERROR_INPUT, "pattern: a String or a Regex is expected");
    return read_text(ret, text);
}

static bool next_text(const struct expression *p, const char *bytes, uint32_t at, uint32_t size,
                      struct span *ret)
{
    const char *found = at < size ? memmem(bytes + at, size - at, p->text, p->size) : NULL;
    if (!found)
        return false;
    ret->begin = (uint32_t)(found - bytes);
    ret->end = ret->begin + p->size;
    return true;
}

static bool next_repeated(const struct expression *p, const char *bytes, uint32_t at,
                          uint32_t size, struct span *ret)
{
    const uint8_t *b = (const uint8_t *)bytes;
    uint32_t count = 0;
    *ret = (struct span){at, at};
    for (uint32_t n, point; at < size; at += n) {
        n = unicode_decode(b + at, b + size, &point);
        if (p->point ? point == p->point : unicode_is_blank(point)) {
            ret->begin = count++ ? ret->begin : at;
            ret->end = at + n;
        } else if (count >= p->least) {
            return true;
        } else {
            count = 0;
        }
    }
    return count >= p->least;
}

bool expression_next(const struct expression *p, const char *bytes, uint32_t at, uint32_t size,
                     struct span *ret)
{
    if (p->kind == EXPRESSION_TEXT)
        return next_text(p, bytes, at, size, ret);
    if (p->kind == EXPRESSION_REPEATED)
        return next_repeated(p, bytes, at, size, ret);
    if (at >= size)
        return false;
    *ret = (struct span){at, gpt2_word(bytes, at, size)};
    return true;
}
