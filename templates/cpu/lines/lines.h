/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, 16 rows of a strip abreast. Each line gives each of them at most one column. Their scores are kept
   line by line, the rows side by side: what goes along a row goes from vector to vector then, and nothing
   across lanes; and what the rows share (where a line begins, whether it covers them) is found out once. */
#ifndef MASKC_CPU_LINES_LINES_H
#define MASKC_CPU_LINES_LINES_H

enum {
    FOUR = 4,
    ALL_FOUR = 15,
    ABREAST = 16,
    ALL_ABREAST = (1 << ABREAST) - 1,
    ROW_VECS = WIDTH / LANES,
    SUM_VECS = VECTOR_BYTES == 64 ? 4 : 2, /* FOUR x SUM_VECS sums stay in registers */
    ROW_SUM_VECS = 4,                      /* of one row */
};

/* A line at the rows abreast: row k of them, if bit k of `rows` is set, sees column + step k. */
struct line_at {
    i64 column, step;
    u32 rows;
};

/* Those that some of the rows see. */
struct lines_here {
    struct line_at at[CHUNK_COLS];
    u32 count;
};

/* A number for each line and row. */
typedef float line_numbers[CHUNK_COLS][ABREAST];

struct lines_item {
    const struct sequence *s;
    const struct abi_item *item;
    const struct abi_line *line;
    u32 lines;
    struct whole whole;
    u32 live;                  /* as struct strip's */
    struct operand operand[2]; /* columns: for S, for dP (forward: for O) */
    struct strip_memory *m;
    struct expected expected;
};

/* Lines and rows alone go ways of their own only there. */
INLINE int plain_softmax(const struct sequence *s)
{
    return IS_SOFTMAX && !SOFT && !(DROPOUT && s->a->keep_below);
}

/* Rows that are taken with one of them: tiles make dot products of 16 rows, for one as for all, vectors of
   four; and of so many one must be a line's for that to pay. */
enum {
    BY_TILES = MATRIX && !DOTS && WALKS_SPLIT,
    TAKEN = BY_TILES ? ABREAST : FOUR,
    ONE_IN = BY_TILES ? 3 : 2,
};

/* Whether lines cover enough of the rows that are taken with theirs, which scattered entries do not;
   lines_scattered() of gen/lowering/diagonal.c says the same. */
static int lines_whole_enough(const struct abi_line *line, u32 lines)
{
    u32 rows = 0, taken = 0;
    for (u32 k = 0; k < lines; k++, line++) {
        rows += line->row_end - line->row_begin;
        taken += (line->row_end + TAKEN - 1) / TAKEN - line->row_begin / TAKEN;
    }
    return ONE_IN * rows >= TAKEN * taken;
}

/* Lines alone, in one block. */
static int lines_alone(const struct abi_plan *p, const struct abi_item *item)
{
    const struct abi_piece *piece = &p->pieces[item->piece];
    return item->pieces == 1 && piece->kind == ABI_DIAGONAL && item->cols <= CHUNK_COLS &&
           !item->resume[0] && !item->partial &&
           lines_whole_enough(p->lines + piece->first, piece->count);
}

static struct lines_item lines_open(const struct sequence *s, const struct abi_plan *p,
                                    const struct abi_item *item, u8 *scratch)
{
    const int transposed = p == &s->a->transposed;
    const struct abi_piece *piece = &p->pieces[item->piece];
    struct lines_item w = {.s = s, .item = item, .lines = piece->count};
    w.line = p->lines + piece->first;
    w.whole = lines_whole(w.line, w.lines, s->length, item->rows);
    w.live = rows_live(s, item);
    w.operand[0] = operand_of(s, transposed ? OPERAND_QUERY : OPERAND_KEY);
    w.operand[1] = operand_of(s, transposed ? OPERAND_GRADIENT : OPERAND_VALUE);
    w.m = (struct strip_memory *)(void *)scratch;
    return w;
}

/* The rows of the next strip will be wanted. */
static void lines_expect(struct lines_item *w, const struct abi_tensor *t)
{
    expect_add(&w->expected, w->s, t, w->item->row0 + STRIP_ROWS, 1, STRIP_ROWS);
}

static const float no_row[WIDTH]; /* zeros, in any format */

/* Lines at the rows from `first` on, of whom `live` has the bits. */
static void lines_at(const struct lines_item *w, u32 first, u32 live, struct lines_here *to)
{
    const struct abi_line *line = w->line;
    to->count = 0;
    if (live == ALL_ABREAST && first >= w->whole.first && first + ABREAST <= w->whole.end) {
        for (u32 k = 0; k < w->lines; k++, line++)
            to->at[k] =
                (struct line_at){line->col0 + line->step * (i64)first, line->step, live};
        to->count = w->lines;
        return;
    }
    for (u32 k = 0; k < w->lines; k++, line++) {
        i64 column = (i64)line->col0 + (i64)line->step * first;
        i64 begin = (i64)line->row_begin - first, end = (i64)line->row_end - first;
        i64 left = w->s->length - column;
        if (line->step || left <= 0)
            end = left < end ? left : end;
        begin = begin < 0 ? 0 : begin;
        end = end < ABREAST ? end : ABREAST;
        u32 rows = begin < end ? (1u << end) - (1u << begin) : 0;
        to->at[to->count] = (struct line_at){column, line->step, rows & live};
        to->count += to->at[to->count].rows != 0;
    }
}

#endif
