/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/text_reader.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/data/sentences.h"
#include "model/data/stream.h"
#include "model/data/text_check.h"
#include "model/tokenizer/tokenizer.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4 << 20, READ_BYTES = 1 << 20, HEAD_BYTES = 64 << 10 };

struct text_reader {
    const char *const *path;
    uint32_t n_paths, next_path;
    bool split;
    struct byte_stream *stream; /* null: the next path is to be opened */
    bool json, at_end, opens;   /* the next sentence opens a document */
    uint64_t line, taken;       /* lines of this file; bytes of the files before it */
    char *bytes;                /* what was read and not handed on: used .. size */
    size_t used, size, capacity;
    size_t searched; /* up to here there is no newline */
    struct text_block *block;
    struct text_check check; /* of this file; JSON is checked by its parser */
    void (*report)(const char *path, const char *what);
};

void text_block_finish(struct text_block *b)
{
    free(b->bytes);
    free(b->sentence);
    *b = (struct text_block){0};
}

struct text_reader *text_reader_new(const char *const *path, uint32_t n_paths, bool split)
{
    struct text_reader *r = memory_new(1, sizeof *r);
    *r = (struct text_reader){.path = path, .n_paths = n_paths, .split = split};
    return r;
}

void text_reader_destroy(struct text_reader *r)
{
    if (!r)
        return;
    stream_close(r->stream);
    free(r->bytes);
    free(r);
}

void text_reader_on_report(struct text_reader *r,
                           void (*report)(const char *path, const char *what))
{
    r->report = report;
}

uint64_t text_reader_taken(const struct text_reader *r)
{
    return r->taken + (r->stream ? stream_taken(r->stream) : 0);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static void add_sentence(void *context, const char *text, size_t size)
{
    struct text_reader *r = context;
    struct text_block *b = r->block;
    if (size > b->capacity - b->size) {
        b->capacity = 2 * b->capacity + size;
        b->bytes = memory_resize(b->bytes, b->capacity, 1);
    }
    memcpy(b->bytes + b->size, text, size);
    *MEMORY_PUSH(b->sentence, b->count, b->sentence_capacity) =
        (struct text_sentence){b->size, (uint32_t)size, r->opens};
    b->size += size;
    r->opens = false;
}

/* False: the line is blank. */
static bool add_line(struct text_reader *r, const char *text, size_t size)
{
    while (size && is_blank(*text))
        text++, size--;
    while (size && is_blank(text[size - 1]))
        size--;
    if (size && r->split)
        sentences_split(text, size, add_sentence, r);
    else if (size)
        add_sentence(r, text, size);
    return size != 0;
}

static void add_lines(struct text_reader *r, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - text) - at : size - at;
        add_line(r, text + at, length);
        at += length + 1;
    }
}

static int fail_line(const struct text_reader *r, const char *what, struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s:%llu: %s", r->path[r->next_path - 1],
                     (unsigned long long)r->line, what);
}

static int add_json(struct text_reader *r, const char *text, size_t size, struct error *e)
{
    json_error_t why;
    json_t *json = json_load_bytes(text, size, JSON_FROM_LINES, &why);
    const json_t *value = json_object_get(json, "text");
    int result = !json ? fail_line(r, why.text, e)
                 : !json_is_string(value)
                     ? fail_line(r, "an object with a text is expected: {\"text\": \"...\"}", e)
                     : 0;
    r->opens = true;
    if (result == 0)
        add_lines(r, json_string_value(value), json_string_length(value));
    r->opens = true;
    json_decref(json);
    return result;
}

static int take_line(struct text_reader *r, const char *text, size_t size, struct error *e)
{
    r->line++;
    if (size > TOKENIZER_MAX_BYTES)
        return fail_line(r, "a line of more than 2^30 bytes", e);
    if (!r->json) {
        text_check_line(&r->check, text, size);
        if (!add_line(r, text, size))
            r->opens = true;
        return 0;
    }
    size_t blanks = 0;
    while (blanks < size && is_blank(text[blanks]))
        blanks++;
    return blanks == size ? 0 : add_json(r, text, size, e);
}

static int read_more(struct text_reader *r, struct error *e)
{
    if (r->used) {
        memmove(r->bytes, r->bytes + r->used, r->size - r->used);
        r->size -= r->used;
        r->searched -= r->used;
        r->used = 0;
    }
    if (r->size > TOKENIZER_MAX_BYTES) {
        r->line++;
        return fail_line(r, "a line of more than 2^30 bytes", e);
    }
    if (READ_BYTES > r->capacity - r->size) {
        r->capacity = 2 * r->capacity + READ_BYTES;
        r->bytes = memory_resize(r->bytes, r->capacity, 1);
    }
    int64_t got = stream_read(r->stream, r->bytes + r->size, READ_BYTES, e);
    if (got > 0)
        r->size += (size_t)got;
    r->at_end = got == 0;
    return got < 0 ? -1 : 0;
}

/* Reads the first bytes and judges them. A byte order mark of UTF-8 is left out. */
static int read_head(struct text_reader *r, struct error *e)
{
    const char *path = r->path[r->next_path - 1];
    while (r->size < HEAD_BYTES && !r->at_end)
        if (read_more(r, e) < 0)
            return -1;
    if (r->size >= 3 && !memcmp(r->bytes, "\xef\xbb\xbf", 3))
        r->used = r->searched = 3;
    return text_check_head(path, r->bytes, r->size, "a name that ends in ", e);
}

static int open_next(struct text_reader *r, struct error *e)
{
    const char *path = r->path[r->next_path++];
    size_t plain = stream_plain_name(path);
    static const char suffix[] = ".jsonl";
    r->stream = stream_open(path, e);
    r->json = plain > sizeof suffix - 1 &&
              !memcmp(path + plain - (sizeof suffix - 1), suffix, sizeof suffix - 1);
    r->opens = true;
    r->at_end = false;
    r->line = 0;
    r->used = r->size = r->searched = 0;
    r->check = (struct text_check){0};
    return r->stream ? read_head(r, e) : -1;
}

static int end_file(struct text_reader *r, struct error *e)
{
    const char *path = r->path[r->next_path - 1];
    char what[TEXT_CHECK_BYTES];
    r->taken += stream_taken(r->stream);
    stream_close(r->stream);
    r->stream = NULL;
    if (text_check_end(&r->check, path, e) < 0)
        return -1;
    text_check_report(&r->check, what);
    if (*what && r->report)
        r->report(path, what);
    return 0;
}

/* One line, or more bytes, or the end of the file. */
static int advance(struct text_reader *r, struct error *e)
{
    const char *newline = r->size > r->searched
                              ? memchr(r->bytes + r->searched, '\n', r->size - r->searched)
                              : NULL;
    if (newline || (r->at_end && r->used < r->size)) {
        size_t end = newline ? (size_t)(newline - r->bytes) : r->size, begin = r->used;
        r->used = r->searched = newline ? end + 1 : end;
        return take_line(r, r->bytes + begin, end - begin, e);
    }
    r->searched = r->size;
    if (!r->at_end)
        return read_more(r, e);
    return end_file(r, e);
}

int text_reader_next(struct text_reader *r, struct text_block *ret, struct error *e)
{
    r->block = ret;
    ret->size = 0;
    ret->count = 0;
    while (ret->size < BLOCK_BYTES) {
        if (!r->stream && r->next_path == r->n_paths)
            return 0;
        if (!r->stream && open_next(r, e) < 0)
            return -1;
        if (advance(r, e) < 0)
            return -1;
    }
    return 0;
}
