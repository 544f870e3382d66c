/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous parts of sm_90a: mbarriers, named barriers, bulk copies, products of a warpgroup. Warps of such a
   program run apart. Each has a vector clock, which arrivals at barriers publish and waits acquire; races are found by
   these clocks. */
#pragma once
#include "tests/sass/machine.h"

enum {
    MAX_WARPS = 32,
    MAX_MBARRIERS = 96,
    ASYNC =
        MAX_WARPS, /* + an mbarrier: writer of what its bulk copies brought, and its place in a clock */
    CLOCKS = MAX_WARPS + MAX_MBARRIERS,
    NAMED_BARRIERS = 16,
    CHUNK = 16, /* bytes; the unit in which readers are recorded */
    MAP_BYTES = 128,
    MAP_DIMENSIONS = 5,
};

/* Latest moment of each warp that is known, and the latest before a proxy fence. */
struct clocks {
    uint32_t at[CLOCKS], fenced[CLOCKS];
};

/* Last access to each word of shared memory. */
struct trail {
    uint32_t stamp;  /* the writer's moment; 0: never written */
    uint8_t writer;  /* a warp, or ASYNC.. */
    uint8_t copies;  /* bulk copies to it in flight */
    uint8_t stores;  /* bulk stores from it in flight */
    uint8_t generic; /* written by an ordinary store */
};

_Static_assert(sizeof(struct trail) == sizeof(uint64_t), "trails are compared as words");

struct mbarrier {
    uint32_t at, count, left; /* address, arrivals of a phase, arrivals that are missing */
    uint32_t phase;
    bool seen_by_some;           /* a wait has found the last phase ended */
    int64_t bytes;               /* expected and not there yet */
    uint32_t arrived[MAX_WARPS]; /* lanes, in this phase */
    struct clocks next, seen;    /* of this phase, of completed ones */
};

struct named_barrier {
    uint32_t expected, arrived; /* threads; expected 0: no arrivals yet */
    struct clocks next;
};

/* A tensor in device memory and the box that is copied at once. */
struct tensor_map {
    uint32_t magic, rank, element,
        swizzle; /* element in bytes; swizzle: log2 of the chunks that are exchanged */
    uint64_t address;
    uint32_t size[MAP_DIMENSIONS], box[MAP_DIMENSIONS];
    uint64_t stride[MAP_DIMENSIONS]; /* bytes; that of dimension 0 is the element */
};
_Static_assert(sizeof(struct tensor_map) <= MAP_BYTES, "a map fits what CUDA reserves for it");

/* A bulk copy. A plain one has a map of one dimension. */
struct bulk {
    struct tensor_map map;
    int32_t at[MAP_DIMENSIONS];
    uint32_t shared; /* address */
    uint32_t bar;    /* a load's mbarrier: its index */
    uint32_t group;  /* a store's */
};

struct bulks {
    struct bulk *bulk;
    uint32_t count, capacity;
};

/* A product of the warp's 16 rows that was issued and has not been waited for. */
struct product {
    const struct instruction *i;
    uint64_t a, b; /* descriptors; a: unless the first operand is in registers */
    bool adds;     /* to what the sums hold */
    bool done;
    uint32_t group;
    uint32_t changes; /* of shared memory before its operands were checked */
};

struct products;
struct kept;

struct hopper_warp {
    struct bulks stores;
    uint32_t store_groups;
    uint32_t registers; /* of a thread */
    uint64_t issued;    /* hash of its products: the same in all warps of a warpgroup */
    struct products *products;
};

struct hopper {
    bool early; /* copies and products happen at issue; else as late as possible */
    uint32_t events,
        quiet;        /* events of this round that other warps may wait for; rounds without */
    uint32_t changes; /* of shared memory so far */
    uint32_t moment;  /* of bulk copies: their place in clocks */
    uint32_t pool;    /* registers that setmaxnreg released: of a thread of each warp */
    struct clocks knows[MAX_WARPS];
    struct hopper_warp warp[MAX_WARPS];
    struct mbarrier mbarrier[MAX_MBARRIERS];
    uint32_t mbarriers;
    struct named_barrier named[NAMED_BARRIERS], all; /* all: the barrier of all threads */
    struct bulks loads;
    struct trail *trail; /* of words */
    uint32_t *readers;   /* [chunk][warps]: the moment of each warp's last read */
    struct kept *kept;   /* operands of products as floats */
};

struct hopper *hopper_new(const struct block *b);
void hopper_destroy(struct hopper *h, uint32_t warps);

/* True for instructions that make warps run apart. */
bool runs_apart(const struct instruction *i);

/* Ends a round. Where no warp can go on, bulk copies land; without any it faults. */
void hopper_advance(struct block *b);

/* Faults where a warp that has ended leaves something in flight. */
void hopper_end(struct warp *w);

/* ---- clocks ---- */

void clocks_join(struct clocks *to, const struct clocks *from);
/* Publishes the warp's knowledge through `to`, and starts its next moment. */
void clocks_release(struct warp *w, struct clocks *to);
void clocks_acquire(struct warp *w, const struct clocks *from);
/* fence.proxy.async: bulk copies and products may read the stores that the warp knows of. */
void clocks_fence(struct warp *w);

/* ---- trail of shared memory ---- */

void trail_read(struct warp *w, uint32_t at, uint32_t bytes);
void trail_write(struct warp *w, uint32_t at, uint32_t bytes);
/* Read by a product or a bulk store. */
void trail_read_async(struct warp *w, uint32_t at, uint32_t bytes);
void trail_store(struct block *b, uint32_t at, uint32_t bytes, int by);
void trail_copy_begins(struct warp *w, uint32_t at, uint32_t bytes);
void trail_copy_ends(struct hopper *h, uint32_t at, uint32_t bytes, uint32_t mbarrier);

/* ---- barriers ---- */

/* An arrival of BAR.SYNC or BAR.ARV. True if the barrier is complete: named_open lets its warps go on. */
bool named_arrive(struct warp *w, uint32_t id, uint32_t threads);
void named_open(struct block *b, uint32_t id);
/* The mbarrier's index; faults where none is. */
uint32_t mbarrier_index(const struct warp *w, uint32_t at);
/* Bytes of a bulk copy have landed. */
void mbarrier_complete(struct warp *w, uint32_t index, uint32_t bytes);

/* ---- bulk copies ---- */

void bulk_land(struct block *b, uint32_t which);
/* All but the newest n groups of the warp's stores. */
void bulk_wait(struct warp *w, uint32_t newest);

/* ---- tensor maps ---- */

/* As cuTensorMapEncodeTiled: 0, or CUDA_ERROR_INVALID_VALUE. */
struct map_request {
    int type, interleave, swizzle, fill;
    uint32_t rank;
    void *address;
    const uint64_t *size, *stride; /* strides of dimensions 1 and up, bytes */
    const uint32_t *box, *step;
};
int map_encode(void *to, const struct map_request *r);

bool map_is_valid(const struct tensor_map *m);

/* Calls `each` for each chunk of a box; the first `inside` bytes of it are within the tensor. */
struct map_piece {
    uint64_t device;
    uint32_t shared, inside;
};
typedef void map_visit(void *to, const struct map_piece *p);
void map_pieces(const struct bulk *b, map_visit *each, void *to);

/* Bytes of a box. */
uint32_t map_bytes(const struct tensor_map *m);

/* ---- products ---- */

/* Faults where an instruction reads sums of a product in flight, or writes what one uses. */
void products_watch(struct warp *w, const struct instruction *i);
void products_destroy(struct products *p);
bool products_pending(const struct hopper_warp *w);

static inline struct hopper_warp *hopper_of(const struct warp *w)
{
    return &w->block->hopper->warp[w->index];
}
