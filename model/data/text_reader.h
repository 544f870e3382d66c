/* SPDX-License-Identifier: Apache-2.0 */
/* Text files as documents of sentences, a block of a few megabytes at a time.

   Plain text has a sentence on each line and a blank line between documents; a file's end ends its document, too.
   NAME.jsonl has a document on each line, {"text": "..."}: its lines are sentences, other keys are ignored. With
   `split` a line is a paragraph, which sentences.h cuts. Blanks at both ends of a sentence are removed.
   Bytes that are not UTF-8 are kept, because the tokenizer replaces them, and are reported. JSON with such bytes and
   files that are mostly not text are refused (text_check.h). */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_sentence {
    size_t begin; /* in the block's bytes */
    uint32_t size;
    bool opens; /* it is the first of its document */
};

/* A block of sentences. A zeroed one is empty; its memory is reused when it is filled again. */
struct text_block {
    char *bytes;
    size_t size, capacity;
    struct text_sentence *sentence;
    uint32_t count, sentence_capacity;
};
void text_block_finish(struct text_block *b);

struct text_reader;
/* The paths must outlive it. */
struct text_reader *text_reader_new(const char *const *path, uint32_t n_paths, bool split);
void text_reader_destroy(struct text_reader *r); /* accepts null */

/* Sets the receiver of reports such as "12 bytes are not UTF-8 and were replaced, ..", at most one for each file. */
void text_reader_on_report(struct text_reader *r,
                           void (*report)(const char *path, const char *what));

/* The next sentences, or none at the end of the last file. Errors are "FILE: what" or "FILE:LINE: what". */
int text_reader_next(struct text_reader *r, struct text_block *ret, struct error *e);

/* Bytes read from the files so far. */
uint64_t text_reader_taken(const struct text_reader *r);
