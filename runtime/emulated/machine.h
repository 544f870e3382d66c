/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between a kernel's text and the emulated machine. The host compiler compiles the text as an object of its
   own, which is fast, and the text calls the machine through a table. The machine is part of the library. Both sides
   include this file. */
#pragma once
#include <stdint.h>

/* Place in the text, for messages and to distinguish accesses. */
struct place {
    const char *function;
    int line;
};

#define HERE ((struct place){__func__, __LINE__})

/* A warpgroup's product as one thread calls it: d, n / 2 floats, is or grows by a b^T. Without `a` the first operand is in shared
   memory at a_at. transposed: the second one has n contiguous. */
struct emulation_product {
    float *d;
    const uint32_t *a;
    uint64_t a_at, b_at;
    uint32_t n, accumulate, transposed, f16;
};

/* All but the last two are told what the running thread does; they come back when it may go on. Values
   of 16 bits are halves in bf16, or with `f16` in that. */
struct emulation_machine {
    void (*barrier)(struct place at);
    void (*sync_warp)(struct place at);
    float (*exchange)(float x, uint32_t source, struct place at); /* that lane's x */
    uint32_t (*reduce_or)(uint32_t x, struct place at);           /* of all lanes */
    void (*watch_read)(const void *p, uint32_t bytes, struct place at);
    void (*watch_write)(const void *p, uint32_t bytes, struct place at);
    void (*watch_global_read)(const void *p, struct place at);
    void (*watch_global_write)(const void *p);
    void (*multiply)(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, uint32_t f16,
                     struct place at); /* 16 x 8 += 16 x 16 by 16 x 8 */
    void (*multiply_tf32)(float *c, const uint32_t *a, uint32_t b0, uint32_t b1,
                          struct place at);
    void (*load_matrices)(uint32_t *r, const void *row, uint32_t transposed, struct place at);
    void (*start_copy)(void *to, const void *from, uint32_t there, struct place at);
    void (*commit_copies)(void);
    void (*await_copies)(uint32_t left); /* all groups but the newest `left` */
    uint32_t (*half_from)(float x, uint32_t f16);
    float (*float_from)(uint32_t half, uint32_t f16);
    uint32_t (*tf32_from)(float x);
    float (*exp2)(float x);
    float (*log2)(float x);
    /* sm_90: addresses in shared memory are offsets */
    uint32_t (*smem_base)(struct place at);
    const void *(*smem_read)(uint32_t from, uint32_t bytes, struct place at);
    void *(*smem_write)(uint32_t to, uint32_t bytes, struct place at);
    void (*load4)(uint32_t *r, uint32_t row, struct place at);
    void (*store4)(uint32_t row, const uint32_t *x, struct place at);
    void (*mbarrier_init)(uint32_t bar, uint32_t count, struct place at);
    void (*mbarrier_init_fence)(void);
    void (*mbarrier_expect)(uint32_t bar, uint32_t bytes, struct place at);
    void (*mbarrier_arrive)(uint32_t bar, struct place at);
    void (*mbarrier_wait)(uint32_t bar, uint32_t parity, struct place at);
    void (*async_fence)(void);
    void (*group_sync)(uint32_t id, uint32_t threads, struct place at);
    void (*group_arrive)(uint32_t id, uint32_t threads, struct place at);
    void (*tma_load)(uint32_t to, const void *map, uint32_t bar, const int32_t *box,
                     struct place at);
    void (*tma_store)(const void *map, uint32_t from, const int32_t *box, struct place at);
    void (*bulk_load)(uint32_t to, const void *from, uint32_t bytes, uint32_t bar,
                      struct place at);
    void (*bulk_commit)(void);
    void (*bulk_wait)(void);
    void (*wgmma)(const struct emulation_product *p, struct place at);
    void (*wgmma_fence)(struct place at);
    void (*wgmma_commit)(struct place at);
    void (*wgmma_wait)(uint32_t left, struct place at);
    void (*set_registers)(uint32_t n, struct place at);
};

/* A block as its text sees it. */
struct emulation_face {
    uint32_t current, block,
        blocks; /* running thread; number of the block in its wave, and of all there */
    uint32_t wave, waves; /* number of the block's wave, and of all */
    uint8_t *shared;
    const struct emulation_machine *machine;
};

/* The object's one function beside its entries: a thread of the block begins. */
typedef void emulation_enter_fn(const struct emulation_face *f, void *entry, const void *args);
