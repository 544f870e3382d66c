/* SPDX-License-Identifier: Apache-2.0 */
/* How a launch is shared: threads take whole heads, or the items of each phase, by the work list's predicted
   costs. Every item writes outputs of its own in an order of its own, so results do not depend on who
   takes it. */
#include "runtime/device/cpu_share.h"
#include <omp.h>

/* One for each thread that owns heads, or two for each phase. */
enum { MOST_QUEUES = MOST_OWNERS };
typedef char queues_for_phases[MOST_QUEUES >= 2 * EMIT_MAX_PHASES ? 1 : -1];

/* How threads divide a phase. Most of the cost, at the front, goes to them in one range each, the same from
   launch to launch: a core finds in its cache what it used before, and items that share a head's keys and
   values stay together. The rest goes to whoever is free. */
struct share {
    u64 begin, end; /* this thread's range */
    u64 rest;       /* indices from here on are taken one by one */
};

static struct share share_heads(u64 count, u64 thread, u64 threads)
{
    return (struct share){count * thread / threads, count * (thread + 1) / threads, count};
}

static struct share share_work(const struct abi_plan *p, u64 each, u64 thread, u64 threads)
{
    enum { REST = 10 }; /* a tenth of the cost */
    struct share s = {0};
    u64 total = 0, before = 0;
    for (u32 w = 0; w < p->works; w++)
        total += p->items[p->work[w].item].cost;
    u64 fixed = total - total / REST;
    for (u32 w = 0; w < p->works && before < fixed; w++) {
        s.begin += before * threads < fixed * thread ? each : 0;
        s.end += before * threads < fixed * (thread + 1) ? each : 0;
        s.rest += each;
        before += p->items[p->work[w].item].cost;
    }
    return s;
}

static struct share share_of(const struct abi_args *a, enum abi_over over, u64 thread,
                             u64 threads)
{
    if (over == ABI_OVER_HEADS)
        return share_heads(indices(a, over), thread, threads);
    return share_work(plan_of(a, over), indices_each(a, over), thread, threads);
}

/* ---- plans with split items ---- */

/* A head's works with split items, or its other ones: first .. first + count - 1. */
static u64 part_of(const struct abi_plan *p, u32 h, u64 each, bool split, u64 *first)
{
    const u64 items = p->heads[h].items * each, splits = p->heads[h].splits * each;
    *first += split ? 0 : splits;
    return split ? splits : items - splits;
}

/* One of the two parts, of all heads. */
static void run_part(const struct abi_args *a, entry_fn *entry, enum abi_over over, bool split,
                     struct queue *q, u8 *scratch)
{
    const struct abi_plan *p = plan_of(a, over);
    const u64 each = indices_each(a, over);
    u64 before = 0, at = 0, k = queue_take(q);
    for (u32 h = 0; h < a->heads; h++) {
        u64 first = at, count = part_of(p, h, each, split, &first);
        for (; k < before + count; k = queue_take(q))
            entry(a, first + k - before, first + k - before + 1, scratch);
        before += count;
        at += p->heads[h].items * each;
    }
}

/* Split items store partial results that others merge, so all of them come first. */
static void run_splits(const struct abi_args *a, entry_fn *entry, enum abi_over over,
                       struct queue q[2], u8 *scratch)
{
    run_part(a, entry, over, true, &q[0], scratch);
#pragma omp barrier
    run_part(a, entry, over, false, &q[1], scratch);
}

/* ---- threads ---- */

static void run_phase(const struct abi_args *a, entry_fn *entry, enum abi_over over, u64 thread,
                      struct queue q[2], u8 *scratch)
{
    if (has_splits(a, over)) {
        run_splits(a, entry, over, q, scratch);
        return;
    }
    u64 count = indices(a, over);
    struct share s = share_of(a, over, thread, (u64)omp_get_num_threads());
    if (s.begin < s.end)
        entry(a, s.begin, s.end, scratch);
    for (u64 k = s.rest; k < count && (k = s.rest + queue_take(q)) < count;)
        entry(a, k, k + 1, scratch);
}

static void run_phases(const struct device_code *c, const struct device_launch *l, u64 thread,
                       struct queue *queue, u8 *scratch)
{
    for (uint32_t p = 0; p < l->n_phases; p++) {
        if (p) {
#pragma omp barrier
        }
        run_phase(&l->args, entry_of(c, &l->phases[p]), l->phases[p].over, thread,
                  &queue[2 * p], scratch);
    }
}

/* All phases in one parallel region: a barrier is cheaper than a new one. */
static void run_together(const struct device_code *c, const struct device_launch *l,
                         u64 threads)
{
    struct queue queue[MOST_QUEUES] = {{0}};
    struct heads by_cost;
    const bool whole = heads_whole(l, threads, &by_cost);
#pragma omp parallel num_threads((int)threads)
    {
        u64 thread = (u64)omp_get_thread_num();
        u8 *scratch = l->args.scratch + thread * l->args.scratch_stride;
        if (whole)
            heads_run(c, l, &by_cost, threads, thread, queue);
        else
            run_phases(c, l, thread, queue, scratch);
    }
}

static void run_alone(const struct device_code *c, const struct device_launch *l)
{
    struct queue queue = {0};
    struct heads by_cost;
    if (heads_whole(l, 1, &by_cost)) {
        heads_run(c, l, &by_cost, 1, 0, &queue);
        return;
    }
    for (uint32_t p = 0; p < l->n_phases; p++)
        entry_of(c, &l->phases[p])(&l->args, 0, indices(&l->args, l->phases[p].over),
                                   l->args.scratch);
}

static u64 threads_of(const struct device_launch *l)
{
    u64 most = 0;
    for (uint32_t p = 0; p < l->n_phases; p++) {
        u64 count = indices(&l->args, l->phases[p].over);
        most = count > most ? count : most;
    }
    return l->workers < most ? l->workers : most;
}

bool cpu_whole(const struct device_launch *l)
{
    struct heads by_cost;
    return heads_whole(l, threads_of(l), &by_cost);
}

int cpu_run(const struct device_code *c, const struct device_launch *l, struct error *e)
{
    (void)e;
    u64 threads = threads_of(l);
    if (threads > 1)
        run_together(c, l, threads);
    else
        run_alone(c, l);
    return 0;
}
