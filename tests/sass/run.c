/* SPDX-License-Identifier: Apache-2.0 */
/* A block from its first instruction to its last. Warps run one after another, in an order that is drawn, each until
   all its lanes wait for other warps; so do the paths of a warp. */
#include "tests/sass/hopper/hopper.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void fault(const struct warp *w, const char *what, ...)
{
    const struct block *b = w->block;
    const struct instruction *i = w->now;
    char *to = b->fault;
    va_list list;
    int used = snprintf(to, FAULT_TEXT, "%s: block %u, warp %u: ", b->program->entry, b->index,
                        w->index);
    if (i)
        used += snprintf(to + used, FAULT_TEXT - (size_t)used, "at /*%04x*/ %.*s: ", i->address,
                         (int)strcspn(i->text, ";\n"), i->text);
    va_start(list, what);
    if (used < FAULT_TEXT)
        vsnprintf(to + used, FAULT_TEXT - (size_t)used, what, list);
    va_end(list);
    longjmp(*b->fault_at, 1);
}

uint32_t block_draw(struct block *b, uint32_t below)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((b->random >> 33) % below);
}

static uint32_t guarded(const struct warp *w, const struct instruction *i, uint32_t mask)
{
    return i->guard.kind == OPERAND_NONE ? mask : mask & predicate_of(w, &i->guard);
}

static void note_issue(struct warp *w, uint32_t pc)
{
    struct block *b = w->block;
    if (b->counts)
        b->counts[pc]++;
    if (b->trace)
        b->trace(b->trace_to, w->index, pc);
    if (!b->left--)
        fault(w, "the block does not come to an end");
}

/* A GPU waits within the instruction for a while: a poll that fails is not counted. */
static void forget_issue(const struct warp *w, uint32_t pc)
{
    if (w->block->counts)
        w->block->counts[pc]--;
}

/* setmaxnreg has taken the others away. */
static void check_registers(const struct warp *w, const struct instruction *i, uint32_t mask)
{
    if (mask && w->block->hopper && i->needs > hopper_of(w)->registers)
        fault(w, "R%u of a warp that has %u registers", i->needs - 1u, hopper_of(w)->registers);
}

/* The path goes on until it parts, waits or ends. */
static void run_path(struct warp *w, struct path *p)
{
    const struct program *program = w->block->program;
    for (;;) {
        const uint32_t pc = p->pc;
        if (pc >= program->count)
            fault(w, "the code's end was passed");
        const struct instruction *i = &program->code[pc];
        w->now = i;
        note_issue(w, pc);
        const uint32_t mask = guarded(w, i, p->mask);
        check_registers(w, i, mask);
        scoreboard_issue(w, i, mask);
        cost_issue(w, i, mask);
        if (i->control == CONTROL_NONE) {
            if (mask)
                i->run(w, i, mask);
            p->pc = pc + 1;
            if (w->yields) {
                p->polled = true;
                forget_issue(w, pc);
                return;
            }
        } else if (!mask) {
            p->pc = pc + 1;
        } else {
            const uint32_t paths = w->paths;
            control(w, p, i, mask);
            if (w->paths != paths || p->waits)
                return;
        }
    }
}

/* Paths that can run; *polled: how many of those would ask again for what was not there. */
static uint32_t ready_paths(const struct warp *w, uint32_t *ready, uint32_t *polled)
{
    uint32_t count = 0;
    *polled = 0;
    for (uint32_t k = 0; k < w->paths; k++) {
        if (w->path[k].polled)
            ++*polled;
        else if (!w->path[k].waits)
            ready[count++] = k;
    }
    return count;
}

static bool waits_for_others(const struct warp *w)
{
    const uint8_t waits = w->path[0].waits;
    return w->paths == 1 && (waits == CONTROL_BLOCK_SYNC || waits == CONTROL_NAMED_SYNC);
}

/* Until every lane waits for other warps or has ended. */
static void run_warp(struct warp *w)
{
    const bool lived = w->paths != 0;
    for (uint32_t k = 0; k < w->paths; k++)
        w->path[k].polled = false;
    while (w->paths) {
        uint32_t ready[32], polled;
        const uint32_t count = ready_paths(w, ready, &polled);
        w->yields = false;
        if (count)
            run_path(w, &w->path[ready[count > 1 ? block_draw(w->block, count) : 0]]);
        else if (waits_for_others(w))
            return;
        else if (!control_release(w)) {
            if (!polled)
                fault(w, "the warp's lanes wait for each other");
            return;
        }
    }
    if (lived && w->block->hopper)
        hopper_end(w);
}

static void start_warp(struct block *b, uint32_t index)
{
    struct warp *w = &b->warp[index];
    w->block = b;
    w->index = index;
    w->live = ALL_LANES;
    w->p[TRUE_PREDICATE] = w->up[TRUE_PREDICATE] = ALL_LANES;
    w->paths = 1;
    w->path[0] = (struct path){.mask = ALL_LANES};
}

/* In an order of their own each time. */
static void run_warps(struct block *b)
{
    const uint32_t first = block_draw(b, b->warps), step = block_draw(b, 2) ? 1 : b->warps - 1;
    for (uint32_t k = 0, at = first; k < b->warps; k++, at = (at + step) % b->warps)
        run_warp(&b->warp[at]);
}

/* Whether every warp has ended, or waits at the block's barrier; *alive: some has not ended. */
static bool all_wait(const struct block *b, bool *alive)
{
    bool all = true;
    *alive = false;
    for (uint32_t k = 0; k < b->warps; k++) {
        if (!b->warp[k].paths)
            continue;
        *alive = true;
        all = all && b->warp[k].paths == 1 && b->warp[k].path[0].waits == CONTROL_BLOCK_SYNC;
    }
    return all;
}

/* Opens the block's barrier. */
static void open_barrier(struct block *b)
{
    for (uint32_t k = 0; k < b->warps; k++) {
        if (!b->warp[k].paths)
            continue;
        b->opened = b->warp[k].path[0].pc - 1;
        b->warp[k].path[0].waits = 0;
        if (b->hopper)
            clocks_acquire(&b->warp[k], &b->hopper->all.next);
    }
    b->epoch++;
    cost_barrier(b);
}

/* False: the block has ended. */
static bool advance(struct block *b)
{
    bool alive;
    if (all_wait(b, &alive) && alive)
        open_barrier(b);
    else if (alive)
        hopper_advance(b);
    return alive;
}

static void finish(struct block *b)
{
    cost_end(b);
    for (uint32_t k = 0; k < b->warps; k++) {
        free(b->warp[k].copy);
        free(b->warp[k].local);
    }
    free(b->warp);
    free(b->shared);
    shadow_destroy(b->shadow);
    hopper_destroy(b->hopper, b->warps);
}

int block_run(struct block *b)
{
    jmp_buf at;
    volatile int r = 0;
    b->warp = aligned_alloc(256, b->warps * ((sizeof *b->warp + 255) / 256 * 256));
    memset(b->warp, 0, b->warps * sizeof *b->warp);
    b->shared = calloc(b->shared_bytes + 16, 1);
    b->shadow = shadow_new(b->shared_bytes);
    b->hopper = b->program->apart ? hopper_new(b) : NULL;
    for (uint32_t k = 0; k < b->warps; k++)
        start_warp(b, k);
    b->fault_at = &at;
    if (setjmp(at))
        r = -1;
    else
        do
            run_warps(b);
        while (advance(b));
    finish(b);
    return r;
}
