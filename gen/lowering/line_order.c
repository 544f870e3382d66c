/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a piece's lines. Each draft is sorted, and most drafts are thrown away: so lines are packed into
   integers, which are sorted digit by digit. */
#include "gen/lowering/lowering.h"
#include "masks/base/memory.h"
#include <stdlib.h>

enum { DIGIT = 7, DIGITS = 1 << DIGIT, ROW_BITS = 7, END_BITS = 8 };
_Static_assert(ABI_MAX_BLOCK_ROWS <= 1 << ROW_BITS, "a row fits its bits");

/* col0, the column at row 0, is above -ABI_MAX_BLOCK_ROWS. */
static uint64_t place_of(const struct abi_line *l)
{
    return (uint64_t)((int64_t)l->col0 + ABI_MAX_BLOCK_ROWS);
}

/* Bits of the largest place. */
static uint32_t place_bits(const struct abi_line *lines, uint64_t count)
{
    uint64_t any = 1;
    for (uint64_t k = 0; k < count; k++)
        any |= place_of(&lines[k]);
    return 64 - (uint32_t)__builtin_clzll(any);
}

/* Sorts keys by one digit, stably. */
static void sort_digit(const uint64_t *from, uint64_t count, uint32_t shift, uint64_t *to)
{
    uint32_t next[DIGITS] = {0}, first = 0;
    for (uint64_t k = 0; k < count; k++)
        next[from[k] >> shift & (DIGITS - 1)]++;
    for (uint32_t d = 0; d < DIGITS; d++) {
        uint32_t here = next[d];
        next[d] = first;
        first += here;
    }
    for (uint64_t k = 0; k < count; k++)
        to[next[from[k] >> shift & (DIGITS - 1)]++] = from[k];
}

/* A key has, from high to low bits: step, place, first row, end. */
void lines_sort(struct abi_line *lines, uint64_t count)
{
    const uint32_t wide = place_bits(lines, count), top = END_BITS + ROW_BITS + wide;
    uint64_t *keys = memory_resize(NULL, 2 * count + 1, sizeof *keys);
    uint64_t *from = keys, *to = keys + count;
    for (uint64_t k = 0; k < count; k++)
        from[k] = (uint64_t)!lines[k].step << top |
                  place_of(&lines[k]) << (END_BITS + ROW_BITS) |
                  lines[k].row_begin << END_BITS | lines[k].row_end;
    for (uint32_t shift = END_BITS; shift <= top; shift += DIGIT) {
        uint64_t *swap = from;
        sort_digit(from, count, shift, to);
        from = to;
        to = swap;
    }
    for (uint64_t k = 0; k < count; k++) {
        const uint64_t place = from[k] >> (END_BITS + ROW_BITS) & (((uint64_t)1 << wide) - 1);
        lines[k] = (struct abi_line){
            (i32)((int64_t)place - ABI_MAX_BLOCK_ROWS), !(from[k] >> top),
            from[k] >> END_BITS & ((1 << ROW_BITS) - 1), from[k] & ((1 << END_BITS) - 1)};
    }
    free(keys);
}
