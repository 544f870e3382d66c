/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that train one model together: each works on its part of every batch, and sums are taken over all. A rank is a
   process, or whatever an implementation makes of it.

   All ranks call the same functions in the same order, with the same counts. A sum has the same bits on every rank. With
   a power of two of ranks it is a binary tree over their numbers: ranks 0 and 1, 2 and 3, .. are added first.
   Functions return 0, or -1 with *e set. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdint.h>

/* Floats to one rank and from another; `to` and `from` may be the number of ranks: none. */
struct comm_move {
    uint32_t to, from;
    float *sent, *received;
    uint64_t sent_count, received_count;
};

struct comm {
    const char *name;
    uint32_t rank, size; /* rank < size */
    void *context;       /* the implementation's */
    /* x = the sum over ranks of x, in place. */
    int (*sum_f32)(const struct comm *c, float *x, uint64_t count, struct error *e);
    int (*sum_f64)(const struct comm *c, double *x, uint64_t count, struct error *e);
    int (*sum_u64)(const struct comm *c, uint64_t *x, uint64_t count, struct error *e);
    /* Null: the implementation cannot. */
    int (*exchange)(const struct comm *c, const struct comm_move *m, struct error *e);
    /* The same in the memory of a training device (model/comm/nccl/); null: such arrays go by way of the host.
       begin_sum(): x becomes the sum over ranks while the device goes on with other work. The sum starts when the device
       has done the work that it was given before. Nothing may use x until end_sums() has returned. A failure is reported
       there, so that all ranks begin the same sums in the same order, whatever happens to them.
       MPI has none: its sums need the processor, which the backward pass uses.
       end_sums(): waits for all sums that were begun. It hands on failure as comm_agree() does: result, below 0 with *e
       set, is that of the work since the first begin_sum(). */
    void (*begin_sum)(const struct comm *c, float *x, uint64_t count);
    int (*end_sums)(const struct comm *c, int result, struct error *e);
    /* All ranks call it together, also those that move nothing. */
    int (*move_array)(const struct comm *c, const struct comm_move *m, struct error *e);
    /* For waits that are not this comm's, as those of NCCL: warn() tells the others that this rank has failed and comes to an
       agreement, is_warned() whether another one has. Null: it cannot. */
    void (*warn)(const struct comm *c);
    bool (*is_warned)(const struct comm *c);
    /* The last call, or null. Waits for the other ranks unless the run failed on some of them only. */
    void (*close)(const struct comm *c);
};

extern const struct comm comm_alone; /* one rank */

/* Elements that are summed at a time: 16 MB. */
enum { COMM_BUCKET = 1 << 22 };

/* A barrier that hands on failure: with a result below 0 on any rank all return -1 with the same *e. Where all ranks
   failed it is that of rank 0; else that of the first one that did, "rank 1: ..", and of kind ERROR_FALSE. */
int comm_agree(const struct comm *c, int result, struct error *e);
/* The same by severity: where one is above 0 all return -1 with the *e of the first rank whose severity is the highest. */
int comm_agree_worst(const struct comm *c, uint32_t severity, struct error *e);
/* The same for work that only rank 0 does. Bad input stays ERROR_INPUT, without the rank. */
int comm_follow(const struct comm *c, int result, struct error *e);
/* Rank 0's text, which the caller frees, on each rank; text: null on the others. Null with *e set. */
char *comm_share_text(const struct comm *c, const char *text, struct error *e);
