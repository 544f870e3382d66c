/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/tokenizer/bpe/bpe.h"
#include "model/tokenizer/bpe/merge.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MERGES = 1 << 24 };

static void reserve(struct bpe *b, size_t merges)
{
    b->capacity = 16;
    while (b->capacity < 2 * merges)
        b->capacity *= 2;
    b->merge = memory_new(b->capacity, sizeof *b->merge);
    for (uint32_t k = 0; k < b->capacity; k++)
        b->merge[k].first = BPE_FREE;
}

static int find(const struct bpe *b, const char *text, uint32_t size, uint32_t *ret,
                struct error *e)
{
    int64_t found = vocabulary_find_part(b->vocabulary, text, size);
    if (found < 0)
        return error_set(e, ERROR_INPUT, "'%.*s' is not in the vocabulary",
                         size < 60 ? (int)size : 60, text);
    *ret = (uint32_t)found;
    return 0;
}

/* Adds a merge. The later of two equal merges counts. */
static int add_merge(struct bpe *b, const char *first, uint32_t first_size, const char *second,
                     uint32_t second_size, struct error *e)
{
    struct bpe_merge m = {.rank = b->n_merges};
    uint32_t size = first_size + second_size;
    char *both = memory_new(size + 1, 1);
    memcpy(both, first, first_size);
    memcpy(both + first_size, second, second_size);
    int r = find(b, first, first_size, &m.first, e);
    if (r == 0)
        r = find(b, second, second_size, &m.second, e);
    if (r == 0)
        r = find(b, both, size, &m.token_id, e);
    free(both);
    if (r < 0)
        return error_prefix(e, "merge %u", b->n_merges);
    *bpe_slot(b, m.first, m.second) = m;
    b->n_merges++;
    return 0;
}

/* "FIRST SECOND" */
static int add_line(struct bpe *b, const char *line, size_t size, struct error *e)
{
    const char *blank = memchr(line, ' ', size);
    size_t first = blank ? (size_t)(blank - line) : 0;
    if (!blank || memchr(blank + 1, ' ', size - first - 1))
        return error_set(e, ERROR_INPUT, "merge %u: two tokens are expected", b->n_merges);
    return add_merge(b, line, (uint32_t)first, blank + 1, (uint32_t)(size - first - 1), e);
}

static int add_entry(struct bpe *b, const json_t *entry, struct error *e)
{
    static const char version[] = "#version";
    const char *line = json_string_value(entry);
    if (line && !strncmp(line, version, sizeof version - 1))
        return 0;
    if (line)
        return add_line(b, line, strlen(line), e);
    const char *first = json_string_value(json_array_get(entry, 0));
    const char *second = json_string_value(json_array_get(entry, 1));
    if (!first || !second || json_array_size(entry) != 2)
        return error_set(e, ERROR_INPUT, "merge %u: two tokens are expected", b->n_merges);
    return add_merge(b, first, (uint32_t)strlen(first), second, (uint32_t)strlen(second), e);
}

static int add_list(struct bpe *b, const json_t *list, struct error *e)
{
    if (!json_is_array(list) || json_array_size(list) > MAX_MERGES)
        return error_set(e, ERROR_INPUT, "merges: a list of at most %d is expected",
                         MAX_MERGES);
    reserve(b, json_array_size(list));
    for (size_t k = 0; k < json_array_size(list); k++)
        if (add_entry(b, json_array_get(list, k), e) < 0)
            return -1;
    return 0;
}

static void find_spare(struct bpe *b)
{
    for (int k = 0; k < 256; k++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)k);
        b->spare[k] = vocabulary_find(b->vocabulary, name);
    }
}

static void begin(struct bpe *b, const struct vocabulary *v)
{
    *b = (struct bpe){.vocabulary = v, .unknown = -1};
    for (int k = 0; k < 256; k++)
        b->spare[k] = b->byte[k] = -1;
}

/* Settings that no model of ours has: they must be off. */
static int refuse_others(const json_t *model, struct error *e)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    double dropout = 0;
    if (json_take_real(model, "dropout", &dropout, e) < 0)
        return -1;
    if (dropout != 0)
        return error_set(e, ERROR_INPUT, "dropout is not supported");
    for (size_t k = 0; k < sizeof affixes / sizeof *affixes; k++) {
        const char *text = "";
        if (json_take_text(model, affixes[k], &text, e) < 0)
            return -1;
        if (*text)
            return error_set(e, ERROR_INPUT, "%s '%.20s' is not supported", affixes[k], text);
    }
    return 0;
}

static int read_options(struct bpe *b, const json_t *model, struct error *e)
{
    const char *unknown = NULL;
    bool fallback = false;
    if (refuse_others(model, e) < 0 || json_take_text(model, "unk_token", &unknown, e) < 0 ||
        json_take_bool(model, "fuse_unk", &b->fuse_unknown, e) < 0 ||
        json_take_bool(model, "byte_fallback", &fallback, e) < 0 ||
        json_take_bool(model, "ignore_merges", &b->ignore_merges, e) < 0)
        return -1;
    if (unknown && (b->unknown = vocabulary_find(b->vocabulary, unknown)) < 0)
        return error_set(e, ERROR_INPUT, "unk_token '%.60s' is not in the vocabulary", unknown);
    if (fallback)
        find_spare(b);
    return 0;
}

int bpe_read(struct bpe *ret, const struct vocabulary *v, const json_t *model, struct error *e)
{
    begin(ret, v);
    if (read_options(ret, model, e) < 0)
        return -1;
    return add_list(ret, json_object_get(model, "merges"), e);
}

int bpe_parse(struct bpe *ret, const struct vocabulary *v, const char *merges, size_t size,
              struct error *e)
{
    static const char version[] = "#version";
    size_t lines = 1;
    begin(ret, v);
    for (size_t at = 0; at < size; at++)
        lines += merges[at] == '\n';
    if (lines > MAX_MERGES)
        return error_set(e, ERROR_INPUT, "more than %d merges", MAX_MERGES);
    reserve(ret, lines);
    for (size_t at = 0; at < size;) {
        const char *end = memchr(merges + at, '\n', size - at);
        size_t length = end ? (size_t)(end - merges) - at : size - at, next = at + length + 1;
        length -= length && merges[at + length - 1] == '\r';
        bool is_version =
            length >= sizeof version - 1 && !memcmp(merges + at, version, sizeof version - 1);
        if (!is_version && add_line(ret, merges + at, length, e) < 0)
            return -1;
        at = next;
    }
    return 0;
}
