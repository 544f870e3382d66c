/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a group as a sequence has them: which columns are below its length, what each warpgroup has there. A step's words
   are in the lanes of the copying warp: lane l holds word l of struct abi_step. */
#ifndef MASKC_CUDA_HOPPER_INSTANCE_H
#define MASKC_CUDA_HOPPER_INSTANCE_H
#include "cuda/hopper/shape.h"

enum {
    WORD_LIVE = 4,
    WORD_PATTERN = 8,
    WORD_TIMES = 24,
    WORD_RUN = 25,
    STEP_WORDS = sizeof(struct abi_step) / 4,
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
    i32 first; /* tensor row of the sequence */
    i32 batch; /* last coordinate of a box: packed sequences are one tensor */
    u32 whole; /* all rows and columns of the mask take part, and boxes past them are outside of the tensor */
    u32 row0, flags; /* lane g: of warpgroup g */
    u32 alive;       /* bit g: warpgroup g has rows that take part */
    u32 in_turn;
    u32 reciprocal; /* (2^32 - 1) / slice_batch */
};

/* Place in the steps of a group. */
struct step_walk {
    u32 step, end; /* the next step; behind the last */
    u32 left;      /* repetitions of the current one */
    u32 word;      /* lane l: word l of the current one, its columns those of this repetition */
    u32 ahead;     /* lane l: word l of the next one */
};

/* A step as this sequence has it. */
struct instance {
    u32 word; /* lane l < 24: word l, without columns that do not count and warpgroups without rows */
    i32 row;  /* lane s < slots: the tensor row where slot s begins, or ABSENT */
    u32 mode; /* lane WORD_PATTERN + g: of warpgroup g */
    u32 some; /* bit 4 g + s: warpgroup g has something in slot s; 16 bits further: under a pattern */
    u32 gathered; /* bit s: slot s is gathered */
    u32 by_rows;  /* bit s: slot s comes row by row: gathered, or the sequence ends within it */
    u32 run;      /* all columns of all slots count, and are one run */
};

/* The lane, computed at each use: registers are few here. */
DEVICE u32 copy_lane(void)
{
    return opt_barrier(THREAD) % 32;
}

DEVICE u32 bit_count(u32 x)
{
    u32 count = 0;
    for (; x; x &= x - 1)
        count++;
    return count;
}

/* Floats in one plane. dQ writes two: delta, then LSE to base 2. */
DEVICE u64 delta_plane(const struct abi_args *a)
{
    return (u64)a->batch * a->heads * a->delta_rows;
}

/* A bit for each slot. */
DEVICE u32 all_slots(const struct kernel_shape *k)
{
    return (1u << k->slots) - 1;
}

/* ---- lengths ---- */

/* True if the sequence ends with the tensor: columns past it are then outside of the tensor. */
DEVICE u32 ends_with_tensor(const struct copier *c)
{
    const struct abi_args *a = &c->a->a;
#if RECTANGULAR
    return column_length(&c->work) == (c->k->rows_are_keys ? a->queries : a->keys);
#else
    return !a->offsets && c->work.length == a->n;
#endif
}

DEVICE u32 columns_below(u32 column, u32 length)
{
    return column < length ? bits_between(0, smaller(32, length - column)) : 0;
}

/* The columns of a gathered slot that take part. */
DEVICE u32 gathered_live(const struct copier *c, u32 live, u32 column)
{
    const u32 l = copy_lane(), there = live >> l & 1;
    const u32 at = there ? c->plan->columns[(column & ~ABI_GATHERED) + l] : 0;
    return warp_ballot(there && at < column_length(&c->work));
}

/* The lane's word without columns past the sequence. */
DEVICE u32 clip_columns(const struct copier *c, u32 word)
{
    const u32 l = copy_lane(), column = shuffle_u32(word, l % 4);
    const u32 gathers = warp_ballot(l < c->k->slots && word >> 31);
    if (l / 4 == 1 && !(column >> 31))
        word &= columns_below(column, column_length(&c->work));
    NO_UNROLL
    for (u32 s = 0; gathers >> s; s++) {
        const u32 live = shuffle_u32(word, WORD_LIVE + s);
        const u32 all = gathered_live(c, live, shuffle_u32(word, s));
        word = l == WORD_LIVE + s && gathers >> s & 1 ? all : word;
    }
    return word;
}

/* Warpgroups without rows that take part, and slots without columns that do, have nothing. */
DEVICE u32 clip_step(const struct copier *c, u32 word)
{
    const u32 l = copy_lane(), clipped = clip_columns(c, word);
    const u32 live = shuffle_u32(clipped, WORD_LIVE + l % 4);
    const u32 place = l - WORD_PATTERN;
    return l < WORD_PATTERN || (live && c->alive >> place / 4 % 4 & 1) ? clipped
                                                                       : ABI_SLOT_EMPTY;
}

/* ---- steps ---- */

/* Mode of a warpgroup in a step. If in_turn, each takes part in every step, even without entries. */
DEVICE u32 step_mode(u32 some, u32 patterned, u32 in_turn, u32 clear)
{
    return some || in_turn ? MODE_SOME | clear | some << MODE_SLOTS | patterned << MODE_PATTERNS
                           : MODE_NOTHING;
}

DEVICE void find_modes(const struct copier *c, struct instance *i)
{
    const u32 g = c->k->warpgroups > 1 ? copy_lane() % 4 : 0; /* that the lane speaks for */
    const u32 all = all_slots(c->k);
    const u32 has = warp_ballot(i->word != 0),
              patterned = warp_ballot(i->word >= ABI_SLOT_PATTERN);
    const u32 full = (warp_ballot(i->word == 0xffffffffu) >> WORD_LIVE & all) == all;
    i->some = (has >> WORD_PATTERN & 0xffff) | patterned >> WORD_PATTERN << 16;
    i->run = i->run && full;
    const u32 some = i->some >> 4 * g & 15, under = i->some >> 16 >> 4 * g & 15;
    const u32 clear = !full || shuffle_u32(c->flags, g) & ROWS_CROSS;
    i->mode = some == all && !under && !clear
                  ? MODE_WHOLE
                  : step_mode(some, under, c->in_turn, clear ? MODE_CLEAR : 0);
}

/* Where slots begin, and which of them come row by row. */
DEVICE void find_slots(const struct copier *c, struct instance *i)
{
    const u32 l = copy_lane(), live = shuffle_u32(i->word, WORD_LIVE + l % 4);
    const u32 inside = l < c->k->slots && live, gathered = i->word >> 31;
    i->row = inside ? c->first + (i32)i->word : ABSENT;
    i->gathered = i->by_rows = warp_ballot(inside && gathered);
    if (!c->whole && !ends_with_tensor(c))
        i->by_rows |= warp_ballot(inside && !gathered &&
                                  i->word + SLOT_COLUMNS > column_length(&c->work));
}

DEVICE void find_instance(const struct copier *c, const struct step_walk *w, struct instance *i)
{
    i->word = c->whole ? w->word : clip_step(c, w->word);
    i->run = shuffle_u32(w->word, WORD_RUN);
    find_modes(c, i);
    find_slots(c, i);
}

/* The lane's word of the next step. */
DEVICE u32 word_ahead(const struct copier *c, const struct step_walk *w)
{
    const u32 l = copy_lane();
    return w->step < w->end && l < STEP_WORDS ? ((const u32 *)(c->a->steps.steps + w->step))[l]
                                              : 0;
}

DEVICE struct step_walk walk_start(const struct copier *c, const struct abi_group *group)
{
    struct step_walk w = {group->step, group->step + group->steps, 0, 0, 0};
    w.ahead = word_ahead(c, &w);
    return w;
}

/* The next step that has something for a warpgroup of this sequence; 0 at the end. */
DEVICE u32 walk_next(const struct copier *c, struct step_walk *w, struct instance *i)
{
    const u32 further = c->k->slots * SLOT_COLUMNS;
    NO_UNROLL
    do {
        if (w->left) {
            const u32 on = copy_lane() < c->k->slots ? further : 0;
            w->left--;
            w->word += on;
            i->word += on;
            i->row += (i32)on;
            if (c->whole)
                return 1;
        } else {
            if (w->step == w->end)
                return 0;
            w->word = w->ahead;
            w->left = shuffle_u32(w->word, WORD_TIMES) - 1;
            w->step++;
            w->ahead = word_ahead(c, w);
        }
        find_instance(c, w, i);
    } while (!i->some);
    return 1;
}

/* No step of the group follows. */
DEVICE u32 walk_ended(const struct step_walk *w)
{
    return !w->left && w->step == w->end;
}

#endif
