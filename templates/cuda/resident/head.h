/* SPDX-License-Identifier: Apache-2.0 */
/* Resident family: a head's operands lie whole in shared memory, as rows of halves. Their 16-byte chunks are
   permuted, so that the eight rows of a matrix load are in different banks. A block holds one head or several;
   the warps of a head are a warp group. */
#ifndef MASKC_CUDA_RESIDENT_HEAD_H
#define MASKC_CUDA_RESIDENT_HEAD_H
#include "cuda/common/matrix.h"
#include "cuda/common/work_item.h"

enum {
    RESIDENT_STEPS =
        (HEAD_DIM + 15) / 16,             /* of 16 positions of the head: a product takes one */
    RESIDENT_CHUNKS = 2 * RESIDENT_STEPS, /* of 8 positions, 16 bytes */
    RESIDENT_ROLLED = RESIDENT_STEPS > 8, /* wide heads take a loop over steps */
    RESIDENT_OPERAND = RESIDENT_ROWS * RESIDENT_CHUNKS * 8, /* halves of one operand */
    RESIDENT_WHOLE = (RESIDENT_ROWS + 15) / 16 * 16,        /* rows of whole warp tiles ... */
    RESIDENT_CUT = RESIDENT_WHOLE > RESIDENT_ROWS, /* ... if the last of them have no memory */
    /* Chunks that are permuted among themselves. */
    RESIDENT_MIXED = RESIDENT_CHUNKS % 8 == 0   ? 8
                     : RESIDENT_CHUNKS % 4 == 0 ? 4
                                                : 2,
};

typedef char resident_rows_are_pairs[RESIDENT_ROWS % 2 == 0 && BLOCK_ROWS % 16 == 0 ? 1 : -1];

/* The lane's addresses of fragments at row 0, in bytes from the start of an operand. All others follow by an XOR
   and a constant. */
struct resident_places {
    u32 keys, tail, values;
};

struct resident_head {
    const struct abi_args *a;
    u32 b, h;
    i32 first;  /* tensor row of position 0: 0, or where the packed sequence begins */
    u32 length; /* positions that take part; 0 where the warp group has no head */
    u32 exist;  /* positions that are written */
    u32 warp;   /* within the warp group */
    half_t *shared;
    struct resident_places places;
};

/* The row of a 16 x 8 fragment that the lane holds; its columns are 2 quad_lane() and the next. */
DEVICE u32 resident_row(void)
{
    return lane() / 4;
}

/* ---- operands in shared memory ---- */

/* Halves from the start of an operand to a chunk of row eight + row, where `eight` is a multiple of 8
   and row < 8; `chunks` (even) in a row. */
DEVICE u32 resident_place(u32 eight, u32 row, u32 chunk, u32 chunks)
{
    u32 bits = chunks % 8 == 0 ? 3 : chunks % 4 == 0 ? 2 : 1;
    return 8 * eight * chunks + 8 * (row * chunks + (chunk ^ row >> (3 - bits)));
}

/* Sets the lane's addresses. With RESIDENT_CUT they are unused: each row has its own. */
DEVICE void resident_places_of(struct resident_places *p)
{
    const u32 l = lane(), row = l % 8;
    p->keys = one_value(2 * resident_place(0, row, l / 8, RESIDENT_CHUNKS));
    p->tail = one_value(2 * resident_place(0, row, l / 8 % 2, RESIDENT_CHUNKS));
    p->values = one_value(2 * resident_place(l & 8, row, l / 16, RESIDENT_CHUNKS));
}

/* The head of this thread's warp group; `index` counts sequences, then heads. */
DEVICE struct resident_head resident_head_at(const struct abi_args *a, u32 index, u32 heads,
                                             u32 warps, u32 halves)
{
    struct resident_head head;
    u32 warp_group = heads > 1 ? THREAD / 32 / warps : 0, at = index + warp_group,
        there = at < a->slice_batch * a->heads;
    u32 sequence = there ? at / a->heads : 0;
    head.a = a;
    head.b = a->first_batch + sequence;
    head.h = there ? at - sequence * a->heads : 0;
    head.first = 0;
    head.length = head.exist = there ? smaller(opt_barrier(a->n), RESIDENT_ROWS) : 0;
    head.warp = heads > 1 ? THREAD / 32 % warps : THREAD / 32;
    head.shared = SHARED_HALF() + warp_group * halves;
    if (a->offsets && there) {
        head.first = a->offsets[head.b];
        head.length = head.exist =
            clamp_length(a->offsets[head.b + 1] - a->offsets[head.b], head.exist);
    } else if (a->length && there) {
        head.length = clamp_length(a->length[head.b], head.exist);
    }
    resident_places_of(&head.places);
    return head;
}

/* Index of position 0 of the head. Optimisation barriers keep products of strides out of registers. */
DEVICE i64 resident_element(const struct abi_tensor *t, const struct resident_head *head)
{
    return opt_barrier(head->b) * t->batch + (i64)head->first * t->row +
           head_in(head->a, t, opt_barrier(head->h)) * t->head;
}

/* Its address. */
DEVICE u8 *resident_data(const struct abi_tensor *t, const struct resident_head *head)
{
    return (u8 *)t->data + resident_element(t, head) * 2;
}

/* The row to load: the last one for rows beyond it, whose entries nothing uses. */
DEVICE u32 resident_there(u32 row)
{
    return RESIDENT_CUT && row >= RESIDENT_ROWS ? RESIDENT_ROWS - 1 : row;
}

/* resident_place of row row + low, row a multiple of 8 and low < 8; of the last row for rows beyond it. */
DEVICE u32 resident_place_there(u32 row, u32 low, u32 chunk, u32 chunks)
{
    u32 at = resident_there(row + low);
    return RESIDENT_CUT ? resident_place(at & ~7u, at & 7, chunk, chunks)
                        : resident_place(row, low, chunk, chunks);
}

/* resident_fetch of all rows, where a thread keeps its chunk of a row and its place: no tests, and constant steps in shared
   memory. `step`: threads. */
DEVICE void resident_fetch_whole(u32 operand, u32 count, const u8 *ahead[],
                                 const struct abi_tensor *const t[], half_t *to, u32 step)
{
    const u32 rows =
        opt_barrier(step / RESIDENT_CHUNKS); /* strides are computed here, not early */
    UNROLL
    for (u32 k = 0; k < RESIDENT_OPERAND / (8 * step); k++) {
        UNROLL
        for (u32 x = 0; x < count; x++) {
            copy_async_16(to + (operand + x) * RESIDENT_OPERAND + 8 * k * step, ahead[x], 1);
            ahead[x] += (i64)rows * t[x]->row * 2;
        }
    }
}

/* Starts copies of the sequence's rows of `count` operands, from `operand` on. Rows up to the next multiple of
   16 and positions beyond the head dimension become zeros. */
DEVICE void resident_fetch(u32 operand, u32 count, const struct abi_tensor *const t[],
                           const struct resident_head *head, u32 warps)
{
    enum { MOST = 4 };
    const u32 rows = smaller((head->length + 15) / 16 * 16, RESIDENT_ROWS), step = 32 * warps;
    const u32 straight =
        step % RESIDENT_CHUNKS == 0; /* a thread keeps its chunk of a row ... */
    const u32 whole =
        step % (8 * RESIDENT_CHUNKS) == 0; /* ... and its place in the permutation */
    const u32 begin = 32 * head->warp + lane(), row0 = begin / RESIDENT_CHUNKS;
    const u8 *from[MOST], *ahead[MOST];
    u32 ahead_place =
        resident_place(row0 & ~7u, row0 & 7, begin % RESIDENT_CHUNKS, RESIDENT_CHUNKS);
    UNROLL
    for (u32 x = 0; x < count; x++) {
        from[x] = resident_data(t[x], head);
        ahead[x] = from[x] + (i64)row0 * t[x]->row * 2 + 16 * (begin % RESIDENT_CHUNKS);
    }
    if (whole && HEAD_DIM % 8 == 0 && RESIDENT_OPERAND % (8 * step) == 0 &&
        HEAD_DIM > 8 * (RESIDENT_CHUNKS - 1) && head->length >= RESIDENT_ROWS) {
        resident_fetch_whole(operand, count, ahead, t, head->shared + ahead_place, step);
        return;
    }
    NO_UNROLL
    for (u32 k = begin; k < rows * RESIDENT_CHUNKS; k += step) {
        u32 row = k / RESIDENT_CHUNKS,
            chunk = straight ? begin % RESIDENT_CHUNKS : k % RESIDENT_CHUNKS;
        u32 there = row < head->length && 8 * chunk < HEAD_DIM;
        u32 place =
            whole ? ahead_place : resident_place(row & ~7u, row & 7, chunk, RESIDENT_CHUNKS);
        UNROLL
        for (u32 x = 0; x < count; x++) {
            const u8 *at = from[x] + (i64)row * t[x]->row * 2 + 16 * chunk;
            copy_async_16(head->shared + (operand + x) * RESIDENT_OPERAND + place,
                          straight ? ahead[x] : at, there);
            ahead[x] += (i64)(step / RESIDENT_CHUNKS) * t[x]->row * 2;
        }
        ahead_place += step * 8;
    }
}

/* ---- fragments from shared memory ---- */

/* Bytes from row 0 of the first operand to a row of another. */
DEVICE u32 resident_bytes(u32 operand, u32 row)
{
    return 2 * (operand * RESIDENT_OPERAND + row * RESIDENT_CHUNKS * 8);
}

/* The address of a chunk from that of chunk 0 of the same row. */
DEVICE u32 resident_at_chunk(u32 place, u32 chunk)
{
    return (place ^ 16 * (chunk % RESIDENT_MIXED)) +
           16 * (chunk / RESIDENT_MIXED * RESIDENT_MIXED);
}

/* Rows row .. row + 7, chunks chunk .. chunk + 3: the second operand of two products that sum along the head.
   Chunks beyond the last repeat others; the caller leaves them out. */
DEVICE void resident_load_keys(u32 r[4], const struct resident_head *head, u32 operand, u32 row,
                               u32 chunk)
{
    u32 at = chunk + lane() / 8;
    u32 first = RESIDENT_CHUNKS % 4 && chunk + 4 > RESIDENT_CHUNKS ? head->places.tail
                                                                   : head->places.keys;
    shared_at place = shared_address(head->shared) + resident_at_chunk(first, chunk) +
                      resident_bytes(operand, row);
    if (RESIDENT_CHUNKS % 4 && at >= RESIDENT_CHUNKS)
        at -= 2;
    if (RESIDENT_CUT)
        place = shared_address(head->shared + operand * RESIDENT_OPERAND +
                               resident_place_there(row, lane() % 8, at, RESIDENT_CHUNKS));
    matrix_load4(r, place);
}

/* The lane's address for a matrix load of rows row .. row + 15, chunks chunk and chunk + 1. */
DEVICE shared_at resident_rows_place(const struct resident_head *head, u32 operand, u32 row,
                                     u32 chunk)
{
    const u32 l = lane();
    if (RESIDENT_CUT)
        return shared_address(
            head->shared + operand * RESIDENT_OPERAND +
            resident_place_there(row + (l & 8), l % 8, chunk + l / 16, RESIDENT_CHUNKS));
    return shared_address(head->shared) + resident_at_chunk(head->places.values, chunk) +
           resident_bytes(operand, row);
}

/* Rows row .. row + 15, chunks chunk and chunk + 1: the second operand of two products that sum over rows. */
DEVICE void resident_load_values(u32 r[4], const struct resident_head *head, u32 operand,
                                 u32 row, u32 chunk)
{
    matrix_load4_transposed(r, resident_rows_place(head, operand, row, chunk));
}

/* Rows row .. row + 15, chunks chunk and chunk + 1: the first operand. */
DEVICE void resident_load_rows(struct frag_a *a, const struct resident_head *head, u32 operand,
                               u32 row, u32 chunk)
{
    matrix_load4(a->x, resident_rows_place(head, operand, row, chunk));
}

#endif
