/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are not UTF-8 text: bytes that decoding replaces are counted, and what is mostly no text is refused with
   the name of its format. */
#pragma once
#include "masks/base/error.h"
#include <stddef.h>
#include <stdint.h>

/* Zeroed: nothing was read. */
struct text_check {
    uint64_t bytes, lines;
    uint64_t replaced,
        first_line;    /* bytes that are not UTF-8, and the line of the first one, from 1 */
    uint64_t controls; /* bytes that no text has, such as zero */
};

/* Looks at the next line, without its newline. */
void text_check_line(struct text_check *c, const char *line, size_t size);

/* Refuses first bytes that are another format or mostly not text. The message expects `unpack` with the suffix for
   gzip and zstd; text in UTF-8 for others, or if `unpack` is null. */
int text_check_head(const char *name, const char *bytes, size_t size, const char *unpack,
                    struct error *e);
/* Refuses lines that are mostly not text. */
int text_check_end(const struct text_check *c, const char *name, struct error *e);

/* "12 bytes are not UTF-8 and were replaced, the first one in line 3"; `ret` stays empty if there is none. */
enum { TEXT_CHECK_BYTES = 128 };
void text_check_report(const struct text_check *c, char ret[TEXT_CHECK_BYTES]);
