/* SPDX-License-Identifier: Apache-2.0 */
/* Divergence and convergence of lanes. Lanes at the same place together are a path. Paths meet where the code says so
   (BSYNC, WARPSYNC), never by chance: a GPU does not promise more. */
#include "tests/sass/handlers.h"
#include "tests/sass/hopper/hopper.h"

/* Lanes `mask` leave the path for `pc`. */
static void part(struct warp *w, struct path *p, uint32_t mask, uint32_t pc)
{
    if (pc >= w->block->program->count)
        fault(w, "a jump to where no instruction is");
    if (p->mask == mask) {
        p->pc = pc;
        return;
    }
    p->mask &= ~mask;
    w->path[w->paths++] = (struct path){.pc = pc, .mask = mask};
}

static void wait(struct warp *w, struct path *p, uint32_t mask, struct path how)
{
    const uint32_t next = p->pc + 1;
    if (p->mask != mask) {
        p->mask &= ~mask;
        p->pc = next;
        p = &w->path[w->paths++];
    }
    *p = how;
    p->pc = next;
    p->mask = mask;
}

/* ---- convergence barriers ---- */

/* BSSY B, label: the lanes meet there. */
void run_barrier_set(struct warp *w, const struct instruction *i, uint32_t mask)
{
    lanes *b = &w->barrier[i->op[0].index], *t = &w->target[i->op[0].index];
    *b = lanes_choose(lanes_of_mask(mask), splat(mask), *b);
    *t = lanes_choose(lanes_of_mask(mask), splat(i->op[1].value), *t);
}

/* BREAK B: the others need not wait for these lanes. */
void run_barrier_leave(struct warp *w, const struct instruction *i, uint32_t mask)
{
    lanes *b = &w->barrier[i->op[i->operands - 1].index];
    const uint32_t meet = (*b)[first_lane(mask)];
    *b &= ~(lanes_of_mask(meet) & mask);
}

void run_trap(struct warp *w, const struct instruction *i, uint32_t mask)
{
    (void)i, (void)mask;
    fault(w, "the kernel gave up");
}

/* Releases the lanes that wait with path p if all lanes of the barrier, or of BSYNC's mask, have arrived. */
static bool release_barrier(struct warp *w, struct path *p)
{
    const uint32_t lane = first_lane(p->mask), k = p->barrier;
    const uint32_t meet = w->barrier[k][lane] & w->live, target = w->target[k][lane];
    uint32_t here = 0;
    for (uint32_t q = 0; q < w->paths; q++)
        if (w->path[q].waits == CONTROL_SYNC && w->path[q].barrier == k &&
            w->path[q].mask & meet)
            here |= w->path[q].mask;
    if (meet & ~here)
        return false;
    for (uint32_t q = 0; q < w->paths;) {
        struct path *other = &w->path[q];
        if (other != p && other->waits == CONTROL_SYNC && other->barrier == k &&
            other->mask & here) {
            p->mask |= other->mask;
            *other = w->path[--w->paths];
            if (p == &w->path[w->paths])
                p = other;
            continue;
        }
        q++;
    }
    p->waits = 0;
    p->pc = target;
    return true;
}

/* ---- WARPSYNC ---- */

static bool release_warp(struct warp *w, struct path *p)
{
    const uint32_t need = p->sync & w->live, pc = p->pc;
    uint32_t here = 0;
    for (uint32_t q = 0; q < w->paths; q++)
        if (w->path[q].waits == CONTROL_WARP_SYNC)
            here |= w->path[q].mask;
    if (need & ~here)
        return false;
    for (uint32_t q = 0; q < w->paths; q++)
        if (w->path[q].waits == CONTROL_WARP_SYNC && w->path[q].mask & need)
            w->path[q].waits = 0;
    /* those at the same place go on together */
    for (uint32_t q = 0, first = UINT32_MAX; q < w->paths;) {
        if (w->path[q].waits || w->path[q].pc != pc) {
            q++;
        } else if (first == UINT32_MAX) {
            first = q++;
        } else {
            w->path[first].mask |= w->path[q].mask;
            w->path[q] = w->path[--w->paths];
        }
    }
    return true;
}

bool control_release(struct warp *w)
{
    for (uint32_t q = 0; q < w->paths; q++) {
        struct path *p = &w->path[q];
        if ((p->waits == CONTROL_SYNC && release_barrier(w, p)) ||
            (p->waits == CONTROL_WARP_SYNC && release_warp(w, p)))
            return true;
    }
    return false;
}

/* ---- jumps ---- */

/* BRA [P,] label; .DIV UR: where not all those lanes are here, .CONV: where they are; .U: where all lanes go, else none
   does; .U.ANY: where any lane goes, all do. */
static void branch(struct warp *w, struct path *p, const struct instruction *i, uint32_t mask)
{
    const struct operand *condition = i->operands > 1 ? &i->op[0] : NULL;
    const uint32_t target = i->op[i->operands - 1].value;
    uint32_t taken = mask;
    if (has(i, MODIFIER_DIV) || has(i, MODIFIER_CONV)) {
        const bool whole = !(word_of(w, condition)[0] & w->live & ~mask);
        taken = whole == has(i, MODIFIER_CONV) ? mask : 0;
    } else if (has(i, MODIFIER_ANY)) {
        taken = p->mask; /* .U.ANY: where any lane goes, all do */
    } else if (has(i, MODIFIER_U)) {
        const uint32_t goes = condition ? mask & predicate_of(w, condition) : mask;
        taken = goes == p->mask ? mask : 0; /* .U: all lanes go, or none */
    } else if (condition) {
        taken &= predicate_of(w, condition);
    }
    const uint32_t pc = p->pc;
    if (taken != p->mask)
        p->pc = pc + 1;
    if (taken)
        part(w, p, taken, target);
}

/* BRX R -offset, RET R: addresses of the function, each lane its own. */
static void jump_to_registers(struct warp *w, struct path *p, const struct instruction *i,
                              uint32_t mask)
{
    const lanes at = word_of(w, &i->op[0]);
    const bool relative = i->control == CONTROL_INDIRECT;
    const uint32_t base = relative ? i->address + 16 + i->op[1].value : 0;
    p->pc++;
    while (mask) {
        const uint32_t address = at[first_lane(mask)] + base;
        const uint32_t same = mask_of((lanes)(at + base == splat(address))) & mask;
        const bool last = same == p->mask;
        part(w, p, same, address / 16);
        mask &= ~same;
        if (last)
            return;
    }
}

static void end_lanes(struct warp *w, struct path *p, uint32_t mask)
{
    w->live &= ~mask;
    p->mask &= ~mask;
    p->pc++;
    if (!p->mask)
        *p = w->path[--w->paths];
}

/* BAR.SYNC id, threads: of some of the block's warps. */
static void wait_for_some(struct warp *w, struct path *p, const struct instruction *i,
                          uint32_t lane)
{
    const uint32_t id = word_of(w, &i->op[0])[lane];
    p->waits = CONTROL_NAMED_SYNC;
    p->barrier = (uint8_t)id;
    p->pc++;
    if (named_arrive(w, id, word_of(w, &i->op[1])[lane]))
        named_open(w->block, id);
}

static void wait_for_block(struct warp *w, struct path *p, const struct instruction *i,
                           uint32_t mask)
{
    if (mask != w->live)
        fault(w, "some lanes of the warp are at a barrier that the others are not at");
    if (i->operands == 2) {
        wait_for_some(w, p, i, first_lane(mask));
        return;
    }
    if (i->op[0].kind != OPERAND_IMMEDIATE || i->op[0].value != 0)
        fault(w, "a barrier other than 0 without a count is not known");
    if (w->block->hopper)
        clocks_release(w, &w->block->hopper->all.next);
    p->waits = CONTROL_BLOCK_SYNC;
    p->pc++;
}

void control(struct warp *w, struct path *p, const struct instruction *i, uint32_t mask)
{
    switch ((enum control_kind)i->control) {
    case CONTROL_BRANCH:
        branch(w, p, i, mask);
        return;
    case CONTROL_INDIRECT:
    case CONTROL_RETURN:
        jump_to_registers(w, p, i, mask);
        return;
    case CONTROL_EXIT:
        end_lanes(w, p, mask);
        return;
    case CONTROL_SYNC:
        wait(w, p, mask, (struct path){.waits = CONTROL_SYNC, .barrier = i->op[0].index});
        return;
    case CONTROL_WARP_SYNC:
        wait(w, p, mask,
             (struct path){.waits = CONTROL_WARP_SYNC,
                           .sync = i->operands && i->op[0].kind != OPERAND_LABEL
                                       ? word_of(w, &i->op[0])[first_lane(mask)]
                                       : ALL_LANES});
        return;
    case CONTROL_BLOCK_SYNC:
        wait_for_block(w, p, i, mask);
        return;
    case CONTROL_NAMED_SYNC:
    case CONTROL_NONE:
        return;
    }
}
