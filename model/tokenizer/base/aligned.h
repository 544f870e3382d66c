/* SPDX-License-Identifier: Apache-2.0 */
/* A text on its way through normalizers and pre-tokenizers. Every byte knows the source bytes of the character that it
   came from, as the alignments of NormalizedString in the library tokenizers do. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct aligned {           /* zeroed: empty */
    char *bytes;           /* UTF-8 */
    uint32_t *begin, *end; /* of each byte, in the source */
    uint32_t size, capacity;
};

struct span {
    uint32_t begin, end;
};

enum { ALIGNED_MAX_BYTES = 0xc0000000 }; /* what is added beyond is left out */

void aligned_finish(struct aligned *a);
void aligned_add(struct aligned *a, const char *bytes, uint32_t size, struct span source);
void aligned_add_point(struct aligned *a, uint32_t point, struct span source);
/* Appends from->bytes[begin, end) with its alignment. */
void aligned_add_part(struct aligned *a, const struct aligned *from, struct span part);
/* Appends text[from, to). Each maximal invalid part of UTF-8 becomes U+FFFD. */
void aligned_add_text(struct aligned *a, const char *text, uint32_t from, uint32_t to);

/* The source of the byte's character. */
static inline struct span aligned_source(const struct aligned *a, uint32_t at)
{
    return (struct span){a->begin[at], a->end[at]};
}

/* A character of a new text. */
struct change {
    uint32_t point;
    int32_t
        change; /* 0: replaces a character; -n: replaces one and removes n more; 1: inserted */
};

struct changes { /* zeroed: empty */
    struct change *list;
    uint32_t count, capacity;
};

void changes_add(struct changes *c, uint32_t point, int32_t change);
void changes_finish(struct changes *c);

/* Appends the new characters to *ret, aligned with the old ones as transform() of NormalizedString does. */
void aligned_transform(struct aligned *ret, const struct aligned *from,
                       const struct changes *c);

/* True for the characters that Rust's is_whitespace() accepts. */
bool unicode_is_blank(uint32_t point);
