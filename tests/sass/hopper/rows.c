/* SPDX-License-Identifier: Apache-2.0 */
/* See rows.h. A first operand comes from LDSM (rows of Q, K, dO) or from packed results, never from either: where both
   reach the same HGMMA, the loop's second turn reads what the first left. */
#include "tests/sass/hopper/rows.h"
#include "tests/sass/handlers.h"
#include <stdio.h>
#include <stdlib.h>

enum { REGISTERS = 256, WORDS = REGISTERS / 64 };

/* Registers with a value that LDSM loaded, and that something else wrote, before an instruction. */
struct reach {
    uint64_t loaded[WORDS], other[WORDS];
    bool seen;
};

static void define(struct reach *r, uint32_t index, bool loads, bool always)
{
    const uint64_t bit = UINT64_C(1) << index % 64;
    uint64_t *mine = loads ? r->loaded : r->other, *its = loads ? r->other : r->loaded;
    mine[index / 64] |= bit;
    if (always)
        its[index / 64] &= ~bit;
}

/* Marks the registers that the instruction defines. */
static void define_results(struct reach *r, const struct instruction *i)
{
    const bool always = i->guard.kind == OPERAND_NONE, loads = i->run == run_load_matrix;
    if (i->run == run_product_issue) {
        for (uint32_t k = 0; k < i->bytes * 4u && i->op[0].index + k < REGISTERS; k++)
            define(r, i->op[0].index + k, false, always);
        return;
    }
    for (uint32_t k = 0; k < i->n_results; k++)
        if (i->result[k] < REGISTERS)
            define(r, i->result[k], loads, always);
}

/* True if `to` has changed. */
static bool merge(struct reach *to, const struct reach *from)
{
    bool changed = !to->seen;
    for (uint32_t k = 0; k < WORDS; k++) {
        changed |= (from->loaded[k] & ~to->loaded[k]) || (from->other[k] & ~to->other[k]);
        to->loaded[k] |= from->loaded[k];
        to->other[k] |= from->other[k];
    }
    to->seen = true;
    return changed;
}

static bool is_call(const struct instruction *i)
{
    const char *at = strstr(i->text, "CALL");
    return at && at < i->text + strcspn(i->text, ";");
}

static bool falls_through(const struct instruction *i)
{
    if (i->guard.kind != OPERAND_NONE)
        return true;
    return i->control == CONTROL_BRANCH
               ? i->operands > 1 || is_call(i)
               : i->control != CONTROL_INDIRECT && i->control != CONTROL_RETURN &&
                     i->control != CONTROL_EXIT;
}

/* Where BSYNC goes: the label of the last BSSY of its barrier. */
static uint32_t meeting_place(const struct program *p, uint32_t at)
{
    for (uint32_t k = at; k-- > 0;)
        if (p->code[k].run == run_barrier_set &&
            p->code[k].op[0].index == p->code[at].op[0].index)
            return p->code[k].op[1].value;
    return at + 1;
}

/* Indices of what may follow instruction k; the program's count: none. */
static void successors(const struct program *p, uint32_t k, uint32_t ret[2])
{
    const struct instruction *i = &p->code[k];
    ret[0] = falls_through(i) ? k + 1 : p->count;
    ret[1] = i->control == CONTROL_BRANCH ? i->op[i->operands - 1].value
             : i->control == CONTROL_SYNC ? meeting_place(p, k)
                                          : p->count;
}

static bool pass(const struct program *p, struct reach *before)
{
    bool changed = false;
    for (uint32_t k = 0; k < p->count; k++) {
        struct reach after = before[k];
        uint32_t next[2];
        if (!after.seen)
            continue;
        define_results(&after, &p->code[k]);
        successors(p, k, next);
        for (uint32_t s = 0; s < 2; s++)
            if (next[s] < p->count)
                changed |= merge(&before[next[s]], &after);
    }
    return changed;
}

static int check_product(const struct instruction *i, const struct reach *before, char *why,
                         size_t capacity)
{
    for (uint32_t r = i->op[1].index; r < i->op[1].index + 4u && r < REGISTERS; r++) {
        if (!(before->loaded[r / 64] & before->other[r / 64] & UINT64_C(1) << r % 64))
            continue;
        snprintf(why, capacity, "/*%04x*/ %.*s: R%u was loaded by LDSM, and others write it",
                 i->address, (int)strcspn(i->text, ";\n"), i->text, r);
        return -1;
    }
    return 0;
}

int rows_check(const struct program *p, char *why, size_t capacity)
{
    struct reach *before = calloc(p->count ? p->count : 1, sizeof *before);
    int r = 0;
    before[0].seen = true;
    while (pass(p, before))
        ;
    for (uint32_t k = 0; k < p->count && r == 0; k++)
        if (p->code[k].run == run_product_issue && p->code[k].op[1].kind == OPERAND_REGISTER)
            r = check_product(&p->code[k], &before[k], why, capacity);
    free(before);
    return r;
}
