/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of any length, from a stream or a file. Input that is mostly not text is refused; stderr says at the end how many
   bytes are not UTF-8. */
#pragma once
#include "masks/base/error.h"
#include "model/data/text_check.h"
#include "model/tokenizer/tokenizer.h"
#include <stdio.h>

struct input_lines {
    struct text_part *line; /* without the newline; into the block */
    uint32_t count, capacity;
    char *block;
    size_t size, used, block_capacity;
    bool at_end, looked; /* looked: the first bytes were judged */
    struct text_check check;
};

/* The next lines, up to a few megabytes of them, or none at the end of the stream. A line beyond
   TOKENIZER_MAX_BYTES is an error. */
int input_next(struct input_lines *in, FILE *from, struct error *e);
void input_finish(struct input_lines *in);

/* The two sides of a line's first tab; b's bytes are null where there is none. */
void input_parts(struct text_part line, struct text_part *a, struct text_part *b);

/* All lines of a file (null: of stdin), in memory. */
struct input_text {
    struct text_part *line;
    uint32_t count, capacity;
    char *bytes;
};
int input_read(const char *path, struct input_text *ret, struct error *e);
void input_text_finish(struct input_text *t); /* a zeroed one is fine */
