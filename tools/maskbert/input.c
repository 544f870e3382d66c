/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/input.h"
#include "masks/base/memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4 << 20 };

void input_finish(struct input_lines *in)
{
    free(in->line);
    free(in->block);
    *in = (struct input_lines){0};
}

static void add_line(struct input_lines *in, size_t begin, size_t end)
{
    *MEMORY_PUSH(in->line, in->count, in->capacity) =
        (struct text_part){in->block + begin, (uint32_t)(end - begin)};
}

/* Reads until the block holds a whole line and BLOCK_BYTES, or the stream ends. */
static int fill(struct input_lines *in, FILE *from, struct error *e)
{
    size_t searched = 0;
    while (!in->at_end) {
        bool whole =
            searched < in->size && memrchr(in->block + searched, '\n', in->size - searched);
        if (in->size >= BLOCK_BYTES && whole)
            return 0;
        searched = whole ? 0 : in->size;
        if (in->size > TOKENIZER_MAX_BYTES)
            return error_set(e, ERROR_INPUT, "stdin: a line of more than %d bytes",
                             TOKENIZER_MAX_BYTES);
        if (in->size + BLOCK_BYTES > in->block_capacity) {
            in->block_capacity = 2 * in->block_capacity + BLOCK_BYTES;
            in->block = memory_resize(in->block, in->block_capacity, 1);
        }
        size_t got = fread(in->block + in->size, 1, BLOCK_BYTES, from);
        in->size += got;
        in->at_end = got == 0;
        if (ferror(from))
            return error_set(e, ERROR_INPUT, "stdin: cannot be read");
    }
    return 0;
}

/* Moves the unused bytes to the front of the block. */
static void drop_used(struct input_lines *in)
{
    if (in->used < in->size)
        memmove(in->block, in->block + in->used, in->size - in->used);
    in->size -= in->used;
    in->used = 0;
}

static void print_report(const struct text_check *c, const char *name)
{
    char what[TEXT_CHECK_BYTES];
    text_check_report(c, what);
    if (*what)
        fprintf(stderr, "maskbert: %s: %s\n", name, what);
}

/* Judges the lines of the block together with those before it. */
static int check_lines(struct input_lines *in, struct error *e)
{
    for (uint32_t k = 0; k < in->count; k++)
        text_check_line(&in->check, in->line[k].bytes, in->line[k].size);
    if (text_check_end(&in->check, "stdin", e) < 0)
        return -1;
    if (in->at_end && !in->count)
        print_report(&in->check, "stdin");
    return 0;
}

int input_next(struct input_lines *in, FILE *from, struct error *e)
{
    in->count = 0;
    drop_used(in);
    if (fill(in, from, e) < 0)
        return -1;
    if (!in->looked && text_check_head("stdin", in->block, in->size, NULL, e) < 0)
        return -1;
    in->looked = true;
    const char *newline;
    while (in->used < in->size &&
           (newline = memchr(in->block + in->used, '\n', in->size - in->used))) {
        add_line(in, in->used, (size_t)(newline - in->block));
        in->used = (size_t)(newline - in->block) + 1;
    }
    if (in->at_end && in->used < in->size) { /* a last line without a newline */
        add_line(in, in->used, in->size);
        in->used = in->size;
    }
    return check_lines(in, e);
}

static int read_stream(FILE *from, const char *name, char **ret, size_t *ret_size,
                       struct error *e)
{
    size_t size = 0, capacity = 0, got;
    char *bytes = NULL;
    do {
        if (size + BLOCK_BYTES > capacity) {
            capacity = 2 * capacity + BLOCK_BYTES;
            bytes = memory_resize(bytes, capacity, 1);
        }
        got = fread(bytes + size, 1, BLOCK_BYTES, from);
        size += got;
    } while (got);
    *ret = bytes;
    *ret_size = size;
    return ferror(from) ? error_set(e, ERROR_INPUT, "%s: cannot be read", name) : 0;
}

static int split(struct input_text *t, size_t size, const char *name, struct error *e)
{
    struct text_check check = {0};
    if (text_check_head(name, t->bytes, size, NULL, e) < 0)
        return -1;
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(t->bytes + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - t->bytes) - at : size - at;
        if (length > TOKENIZER_MAX_BYTES || t->count == INT32_MAX)
            return error_set(e, ERROR_INPUT,
                             "%s: a line of more than %d bytes, or too many lines", name,
                             TOKENIZER_MAX_BYTES);
        *MEMORY_PUSH(t->line, t->count, t->capacity) =
            (struct text_part){t->bytes + at, (uint32_t)length};
        text_check_line(&check, t->bytes + at, length);
        at += length + 1;
    }
    if (text_check_end(&check, name, e) < 0)
        return -1;
    print_report(&check, name);
    return 0;
}

int input_read(const char *path, struct input_text *ret, struct error *e)
{
    struct input_text t = {0};
    const char *name = path ? path : "stdin";
    FILE *from = path ? fopen(path, "rbe") : stdin;
    size_t size;
    if (!from)
        return error_set(e, ERROR_INPUT, "%s: %s", path, strerror(errno));
    int r = read_stream(from, name, &t.bytes, &size, e);
    if (from != stdin)
        fclose(from);
    if (r == 0)
        r = split(&t, size, name, e);
    if (r < 0)
        input_text_finish(&t);
    else
        *ret = t;
    return r;
}

void input_text_finish(struct input_text *t)
{
    free(t->line);
    free(t->bytes);
    *t = (struct input_text){0};
}

void input_parts(struct text_part line, struct text_part *a, struct text_part *b)
{
    const char *tab = memchr(line.bytes, '\t', line.size);
    *a = line;
    *b = (struct text_part){0};
    if (!tab)
        return;
    a->size = (uint32_t)(tab - line.bytes);
    *b = (struct text_part){tab + 1, line.size - a->size - 1};
}
