/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a group as a sequence has them: which columns are below its length, what each warpgroup has there. A step's words
   lie in the lanes of the copying warp: lane l holds word l of struct abi_step. */
#ifndef MASKC_CUDA_HOPPER_INSTANCE_H
#define MASKC_CUDA_HOPPER_INSTANCE_H
#include "cuda/hopper/shape.h"

enum {
    WORD_LIVE = 4,
    WORD_PATTERN = 8,
    WORD_TIMES = 24,
    WORD_RUN = 25,
    STEP_WORDS = sizeof(struct abi_step) / 4,
    INSTANCE_RUN = 1 << 16,
    ABSENT = -64, /* a row before the tensor: zeros */
};

struct copier {
    const struct hopper_args *a;
    const struct kernel_shape *k;
    const struct abi_plan *plan;
    smem_t base;
    struct ring rows, stage;
    struct work_item work;
    u32 row_head, column_head;
    i32 first;       /* tensor row of the sequence */
    u32 clipped;     /* columns past the sequence are outside of the tensor */
    u32 row0, flags; /* lane g: of warpgroup g */
    u32 alive;       /* bit g: warpgroup g has rows that take part */
    u32 in_turn;
};

/* The step that comes next, so often as `times` says. */
struct step_walk {
    u32 step, end; /* behind the current one */
    u32 left;      /* repetitions of the current one */
    u32 time;
    u32 word; /* lane l: its word l */
};

/* A step as this sequence has it. */
struct instance {
    u32 column; /* lane s < slots: the first of slot s, or ABI_GATHERED + index */
    u32 word; /* lane s: columns of slot s that count; lane 8 + 4 g + s: what warpgroup g has there */
    u32 some; /* bit 4 g + s: warpgroup g has something in slot s; 16 bits further: under a pattern */
    u32 whole; /* alike: it has everything; bit 16: all slots are live, and one run */
};

/* The lane, computed at each use: registers are few here. */
DEVICE u32 copy_lane(void)
{
    return opt_barrier(THREAD) % 32;
}

/* The last coordinate of a box: packed sequences are one tensor. */
DEVICE i32 batch_place(const struct copier *c)
{
    return c->a->a.offsets ? 0 : (i32)c->work.b;
}

DEVICE u32 bit_count(u32 x)
{
    u32 count = 0;
    for (; x; x &= x - 1)
        count++;
    return count;
}

/* ---- steps ---- */

DEVICE u32 columns_below(u32 column, u32 length)
{
    return column < length ? bits_between(0, smaller(32, length - column)) : 0;
}

/* The columns of a gathered slot that take part. */
DEVICE u32 gathered_live(const struct copier *c, u32 live, u32 column)
{
    const u32 l = copy_lane(), there = live >> l & 1;
    const u32 at = there ? c->plan->columns[(column & ~ABI_GATHERED) + l] : 0;
    return warp_or((there && at < column_length(&c->work)) << l);
}

DEVICE void instance_slots(const struct copier *c, const struct step_walk *w,
                           struct instance *i)
{
    const u32 l = copy_lane(), gathered = w->word >> 31, slots = c->k->slots;
    u32 live = shuffle_u32(w->word, WORD_LIVE + l % 4);
    i->column = gathered ? w->word : w->word + w->time * slots * SLOT_COLUMNS;
    if (!gathered)
        live &= columns_below(i->column, column_length(&c->work));
    i->word = l < slots ? live : 0;
    const u32 gathers = warp_or((l < slots && gathered) << l);
    NO_UNROLL
    for (u32 s = 0; s < slots; s++) {
        if (!(gathers >> s & 1))
            continue;
        const u32 all = gathered_live(c, shuffle_u32(i->word, s), shuffle_u32(i->column, s));
        i->word = l == s ? all : i->word;
    }
}

/* What each warpgroup has in each slot. */
DEVICE void instance_modes(const struct copier *c, const struct step_walk *w,
                           struct instance *i)
{
    const u32 l = copy_lane(), place = l - WORD_PATTERN, live = shuffle_u32(i->word, l % 4);
    const u32 inside = l >= WORD_PATTERN && l < WORD_TIMES && live && c->alive >> place / 4 & 1;
    const u32 has = inside ? w->word : ABI_SLOT_EMPTY, some = has != ABI_SLOT_EMPTY;
    const u32 patterned = has >= ABI_SLOT_PATTERN;
    const u32 whole = has == ABI_SLOT_FULL && live == 0xffffffffu;
    const u32 gaps = l < c->k->slots && i->word != 0xffffffffu;
    i->word = l < WORD_PATTERN ? i->word : has;
    i->some = warp_or((some | patterned << 16) << place % 16);
    i->whole = warp_or(whole << place % 16);
    if (shuffle_u32(w->word, WORD_RUN) && !ANY(gaps))
        i->whole |= INSTANCE_RUN;
}

DEVICE void walk_load(const struct copier *c, struct step_walk *w)
{
    const u32 l = copy_lane();
    w->word = l < STEP_WORDS ? ((const u32 *)(c->a->steps.steps + w->step))[l] : 0;
    w->left = shuffle_u32(w->word, WORD_TIMES);
    w->time = 0;
    w->step++;
}

/* The next step that has something for a warpgroup of this sequence; 0 at the end. */
DEVICE u32 walk_next(const struct copier *c, struct step_walk *w, struct instance *i)
{
    NO_UNROLL
    while (w->left || w->step < w->end) {
        if (!w->left)
            walk_load(c, w);
        instance_slots(c, w, i);
        instance_modes(c, w, i);
        w->left--;
        w->time++;
        if (i->some)
            return 1;
    }
    return 0;
}

#endif
