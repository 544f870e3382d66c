/* SPDX-License-Identifier: Apache-2.0 */
/* Division of a launch among threads: whole heads, or the items of each phase, by the work list's predicted costs.
   Every item writes its own outputs in its own order, so results do not depend on the thread. */
#include "runtime/device/cpu_share.h"
#include "runtime/device/cpu_threads.h"

/* Part of a launch that ends before the next begins. A phase; or, for a phase with split items, first these, which
   store partial results, then the others, which merge them; or whole heads through all phases except those over key
   heads. */
enum part { PART_ALL, PART_SPLIT, PART_OTHER, PART_HEADS };

struct step {
    const struct phase *phase; /* null: PART_HEADS */
    enum part part;
};

/* A queue for each thread that owns heads, or for each step. */
enum { MOST_STEPS = 2 * EMIT_MAX_PHASES, MOST_QUEUES = MOST_OWNERS };
typedef char queues_for_steps[MOST_QUEUES >= MOST_STEPS ? 1 : -1];

/* One launch on several threads. */
struct parallel_launch {
    const struct device_code *c;
    const struct device_launch *l;
    struct step step[MOST_STEPS];
    u32 steps;
    struct queue queue[MOST_QUEUES];
    struct heads by_cost; /* PART_HEADS */
};

/* Division of a phase among threads. Most of the cost, at the front, is divided into one range a thread, the same from
   launch to launch: a core finds its data in its cache, and items that share a head's keys and values stay together.
   Free threads do the rest. */
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
    if (!over_items(over))
        return share_heads(indices(a, over), thread, threads);
    return share_work(plan_of(a, over), indices_each(a, over), thread, threads);
}

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

static void run_share(const struct abi_args *a, entry_fn *entry, enum abi_over over,
                      struct share s, struct queue *q, u8 *scratch)
{
    const u64 count = indices(a, over);
    if (s.begin < s.end)
        entry(a, s.begin, s.end, scratch);
    for (u64 k = s.rest; k < count && (k = s.rest + queue_take(q)) < count;)
        entry(a, k, k + 1, scratch);
}

/* ---- threads ---- */

static void add_step(struct parallel_launch *t, const struct phase *phase, enum part part)
{
    t->step[t->steps++] = (struct step){phase, part};
}

static void list_steps(struct parallel_launch *t, u64 threads)
{
    const bool whole = heads_whole(t->l, threads, &t->by_cost);
    if (whole)
        add_step(t, NULL, PART_HEADS);
    for (uint32_t p = 0; p < t->l->n_phases; p++) {
        const struct phase *phase = &t->l->phases[p];
        if (whole && phase->over != ABI_OVER_KEY_HEADS)
            continue;
        const bool splits = has_splits(&t->l->args, phase->over);
        add_step(t, phase, splits ? PART_SPLIT : PART_ALL);
        if (splits)
            add_step(t, phase, PART_OTHER);
    }
}

/* Does one thread's share of step k. Threads need not run at once: late ones find less left. */
static void run_step(struct parallel_launch *t, u32 k, u64 thread, u64 threads)
{
    const struct abi_args *a = &t->l->args;
    const struct step *s = &t->step[k];
    u8 *scratch = a->scratch + thread * a->scratch_stride;
    if (s->part == PART_HEADS) {
        heads_run(t->c, t->l, &t->by_cost, threads, thread, t->queue);
        return;
    }
    const enum abi_over over = s->phase->over;
    entry_fn *entry = entry_of(t->c, s->phase);
    if (s->part == PART_ALL)
        run_share(a, entry, over, share_of(a, over, thread, threads), &t->queue[k], scratch);
    else
        run_part(a, entry, over, s->part == PART_SPLIT, &t->queue[k], scratch);
}

static void run_thread_step(void *context, uint32_t k, uint32_t thread, uint32_t threads)
{
    run_step(context, k, thread, threads);
}

/* Argument of a task of the caller's pool. */
struct pool_step {
    struct parallel_launch *launch;
    u32 step;
    u64 threads;
};

static void run_task(void *context, uint32_t thread)
{
    const struct pool_step *s = context;
    run_step(s->launch, s->step, thread, s->threads);
}

/* On the caller's threads there is no barrier: each step is a call of its own. */
static void run_pool(struct parallel_launch *t, u64 threads)
{
    for (u32 k = 0; k < t->steps; k++) {
        struct pool_step s = {t, k, threads};
        t->l->parallel(t->l->pool, (uint32_t)threads, run_task, &s);
    }
}

static void run_together(const struct device_code *c, const struct device_launch *l,
                         u64 threads)
{
    struct parallel_launch t = {.c = c, .l = l};
    list_steps(&t, threads);
    if (l->parallel)
        run_pool(&t, threads);
    else
        threads_run((uint32_t)threads, t.steps, run_thread_step, &t);
}

static void run_alone(const struct device_code *c, const struct device_launch *l)
{
    struct queue queue = {0};
    struct heads by_cost;
    const bool whole = heads_whole(l, 1, &by_cost);
    if (whole)
        heads_run(c, l, &by_cost, 1, 0, &queue);
    for (uint32_t p = 0; p < l->n_phases; p++)
        if (!whole || l->phases[p].over == ABI_OVER_KEY_HEADS)
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
    struct device_launch own;
    u64 threads = threads_of(l);
    if (l->starts && l->args.slice_batch == 1) {
        own = *l;
        begin_at_start(l, l->args.first_batch, &own.args);
        own.starts = NULL;
        l = &own;
    }
    if (threads > 1)
        run_together(c, l, threads);
    else
        run_alone(c, l);
    return 0;
}
