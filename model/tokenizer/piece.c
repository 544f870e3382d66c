/* SPDX-License-Identifier: Apache-2.0 */
/* Readable text of a vocabulary's pieces. */
#include "model/tokenizer/base/unicode.h"
#include "model/tokenizer/split/splitter.h"
#include "model/tokenizer/tokenizer.h"
#include <string.h>

static const char mark[] = "\xe2\x96\x81"; /* U+2581, a blank in unigram vocabularies */

/* The byte of a character of GPT-2's alphabet; -1 for other characters. */
static int byte_of(const char *character, uint32_t size)
{
    for (int byte = 0; byte < 256; byte++) {
        char ret[4];
        if (byte_character((uint8_t)byte, ret) == size && !memcmp(ret, character, size))
            return byte;
    }
    return -1;
}

/* Number of bytes of the character at `bytes`. */
static uint32_t character_size(const char *bytes)
{
    uint32_t size = 1;
    while (((uint8_t)bytes[size] & 0xc0) == 0x80)
        size++;
    return size;
}

/* Adds the bytes of a token in GPT-2's alphabet. False if a character is not in it. */
static bool add_bytes(const char *token, struct text *ret)
{
    for (uint32_t size; *token; token += size) {
        size = character_size(token);
        const int byte = size <= 4 ? byte_of(token, size) : -1;
        if (byte < 0)
            return false;
        text_append(ret, &(char){(char)byte}, 1);
    }
    return true;
}

static void add_marked(const char *token, struct text *ret)
{
    for (const char *at; (at = strstr(token, mark)); token = at + sizeof mark - 1) {
        text_append(ret, token, (size_t)(at - token));
        text_append(ret, " ", 1);
    }
    text_append(ret, token, strlen(token));
}

/* Adds the bytes as UTF-8; each part of an incomplete character becomes U+FFFD. */
static void add_valid(const struct text *bytes, struct text *ret)
{
    const uint8_t *at = (const uint8_t *)text_get(bytes), *end = at + bytes->length;
    while (at < end) {
        uint32_t point;
        char character[4];
        at += unicode_decode(at, end, &point);
        text_append(ret, character, unicode_encode(point, character));
    }
}

void tokenizer_piece(const struct tokenizer *t, uint32_t token_id, struct text *ret)
{
    const char *token = token_id < t->vocabulary.count ? t->vocabulary.token[token_id] : NULL;
    struct text bytes = {0};
    if (!token)
        return;
    if (!t->splitters || added_find(&t->added, token))
        text_append(ret, token, strlen(token));
    else if (t->splitters->byte_level && add_bytes(token, &bytes))
        add_valid(&bytes, ret);
    else
        add_marked(token, ret);
    text_finish(&bytes);
}
