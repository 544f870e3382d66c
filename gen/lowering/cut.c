/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/lowering/cut.h"
#include "masks/base/memory.h"
#include <string.h>

static u32 *cut_word(const struct cut *c, uint32_t at, uint32_t r)
{
    return &c->bits[(size_t)at * c->s->block_rows + r];
}

/* Place of the tile right of place `at`, or n_touched, where all bits are off. */
static uint32_t next_place(const struct cut *c, uint32_t at)
{
    const struct row_block *s = c->s;
    bool there = at + 1 < s->n_touched && s->touched[at + 1] == s->touched[at] + 1;
    return there ? at + 1 : s->n_touched;
}

/* An entry: bit `bit` of row r of the tile at place `at`. */
struct start {
    uint32_t at, r, bit;
};

/* Rows that a line from an entry covers. With `take` they are switched off. */
static uint32_t follow(struct cut *c, struct start s, uint32_t step, bool take)
{
    uint32_t length = 0;
    for (; s.r < c->s->rows && *cut_word(c, s.at, s.r) >> s.bit & 1; s.r++, length++) {
        if (take)
            *cut_word(c, s.at, s.r) &= ~((u32)1 << s.bit);
        s.bit += step;
        if (s.bit == ABI_TILE_COLS) {
            s.at = next_place(c, s.at);
            s.bit = 0;
        }
    }
    return length;
}

static void add_line(struct cut *c, struct draft *d, struct start s, uint32_t step,
                     uint32_t length)
{
    int64_t column = (int64_t)c->s->touched[s.at] * ABI_TILE_COLS + s.bit;
    follow(c, s, step, true);
    c->starts[s.at]++;
    *MEMORY_PUSH(d->lines, d->n_lines, d->lines_capacity) =
        (struct abi_line){(i32)(column - (int64_t)step * s.r), step, s.r, s.r + length};
}

/* 32 bits of row r, `shift` columns right of place `at`. */
static u32 cut_window(const struct cut *c, uint32_t at, uint32_t r, uint32_t shift)
{
    for (; shift >= ABI_TILE_COLS; shift -= ABI_TILE_COLS)
        at = next_place(c, at);
    u64 low = *cut_word(c, at, r);
    if (shift && at < c->s->n_touched)
        low |= (u64)*cut_word(c, next_place(c, at), r) << 32;
    return (u32)(low >> shift);
}

/* Entries of row r that begin lines of at least `least` rows along or down, 32 at a time. */
static u32 long_enough(const struct cut *c, uint32_t at, uint32_t r, uint32_t least)
{
    u32 along = *cut_word(c, at, r), down = along;
    for (uint32_t k = 1; k < least && (along | down); k++) {
        along &= along ? cut_window(c, at, r + k, k) : 0;
        down &= *cut_word(c, at, r + k);
    }
    return along | down;
}

/* Lines of at least `least` rows, from the top down. A line that is taken shortens others, so each
   is followed again before it is taken. */
static void cut_long_lines(struct cut *c, struct draft *d, uint32_t least)
{
    const struct row_block *s = c->s;
    for (uint32_t at = 0; at < s->n_touched; at++) {
        for (uint32_t r = 0; c->chosen[at] && r + least <= s->rows; r++) {
            u32 left = *cut_word(c, at, r) ? long_enough(c, at, r, least) : 0;
            for (; left; left &= left - 1) {
                const struct start start = {at, r, (uint32_t)__builtin_ctz(left)};
                uint32_t along = follow(c, start, 1, false);
                uint32_t down = follow(c, start, 0, false);
                uint32_t length = along >= down ? along : down;
                if (length >= least)
                    add_line(c, d, start, along >= down, length);
            }
        }
    }
}

void cut_lines(struct cut *c, struct draft *d)
{
    const struct row_block *s = c->s;
    for (uint32_t at = 0; at < s->n_touched; at++) {
        c->starts[at] = 0;
        const u32 *open = row_block_tile(s, s->open, s->touched[at]);
        size_t bytes = s->block_rows * sizeof *open;
        if (c->chosen[at])
            memcpy(cut_word(c, at, 0), open, bytes);
        else
            memset(cut_word(c, at, 0), 0, bytes);
    }
    cut_long_lines(c, d, s->rows);
    cut_long_lines(c, d, s->rows / 4 + 1);
    cut_long_lines(c, d, 1);
}
