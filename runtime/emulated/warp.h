/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of a warp that move words between lanes. Each lane brings its part; the last to come
   lets the scheduler do the rest for all of them. */
#pragma once
#include "block.h"

struct word {
    uint32_t value, source, result; /* what the lane gives, whose it wants, and has got */
};

static void meet_exchange(struct thread *t)
{
    for (uint32_t lane = 0; lane < WARP; lane++) {
        struct word *w = t[lane].hand;
        w->result = ((const struct word *)t[w->source % WARP].hand)->value;
    }
}

static void meet_or(struct thread *t)
{
    uint32_t all = 0;
    for (uint32_t lane = 0; lane < WARP; lane++)
        all |= ((const struct word *)t[lane].hand)->value;
    for (uint32_t lane = 0; lane < WARP; lane++)
        ((struct word *)t[lane].hand)->result = all;
}

static void order_warp(struct block *b, uint32_t first); /* hopper_block.h */

/* From here on the lanes see what the others wrote before. */
static void meet_sync(struct thread *t)
{
    struct block *b = the_block;
    b->warp_epoch[(t - b->thread) / WARP]++;
    order_warp(b, (uint32_t)(t - b->thread));
}

static uint32_t reduce_or(uint32_t value, struct place at)
{
    struct word w = {.value = value};
    meet_warp(meet_or, &w, at);
    return w.result;
}

static float exchange_float(float x, uint32_t source, struct place at)
{
    struct word w = {.source = source};
    memcpy(&w.value, &x, 4);
    meet_warp(meet_exchange, &w, at);
    memcpy(&x, &w.result, 4);
    return x;
}

static void sync_warp(struct place at)
{
    meet_warp(meet_sync, NULL, at);
}
