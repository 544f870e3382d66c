/* SPDX-License-Identifier: Apache-2.0 */
/* How a launch is shared: threads take whole heads, or the items of each phase, by the work list's predicted
   costs. Every item writes outputs of its own in an order of its own, so results do not depend on who
   takes it. */
#include "runtime/device/cpu_code.h"
#include <omp.h>
#include <stdatomic.h>

/* Indices that a team takes one by one, whoever is free. OpenMP's own dynamic loops take 2 to 4 us each, a
   twentieth of a launch at n=128. */
struct queue {
    _Alignas(64) _Atomic(u64) next;
};

enum { MOST_OWNERS = 64, MOST_QUEUES = MOST_OWNERS };
typedef char queues_for_phases[MOST_QUEUES >= 2 * EMIT_MAX_PHASES ? 1 : -1];

static u64 queue_take(struct queue *q)
{
    return atomic_fetch_add_explicit(&q->next, 1, memory_order_relaxed);
}

static entry_fn *entry_of(const struct device_code *c, const struct phase *phase)
{
    const struct launch_record *r = c->record;
    if (phase >= r->forward && phase < r->forward + r->n_forward)
        return c->forward[phase - r->forward];
    return c->backward[phase - r->backward];
}

static const struct abi_plan *plan_of(const struct abi_args *a, enum abi_over over)
{
    return over_transposed(over) ? &a->transposed : &a->forward;
}

/* Indices of one work. */
static u64 indices_each(const struct abi_args *a, enum abi_over over)
{
    return over == ABI_OVER_WORK ? 1 : a->slice_batch;
}

static u64 indices(const struct abi_args *a, enum abi_over over)
{
    if (over == ABI_OVER_HEADS)
        return (u64)a->heads * a->slice_batch;
    return plan_of(a, over)->works * indices_each(a, over);
}

/* How a team divides a phase: the first indices, most of the cost, in one range for each thread, the
   same from launch to launch, so that a core finds in its cache what it used before, and neighbours,
   which share a head's keys and values, stay together; the rest to whoever is free. */
struct share {
    u64 begin, end; /* this thread's range */
    u64 rest;       /* indices from here on are taken one by one */
};

static struct share share_heads(u64 count, u64 thread, u64 team)
{
    return (struct share){count * thread / team, count * (thread + 1) / team, count};
}

static struct share share_work(const struct abi_plan *p, u64 each, u64 thread, u64 team)
{
    enum { REST = 10 }; /* a tenth of the cost */
    struct share s = {0};
    u64 total = 0, before = 0;
    for (u32 w = 0; w < p->works; w++)
        total += p->items[p->work[w].item].cost;
    u64 fixed = total - total / REST;
    for (u32 w = 0; w < p->works && before < fixed; w++) {
        s.begin += before * team < fixed * thread ? each : 0;
        s.end += before * team < fixed * (thread + 1) ? each : 0;
        s.rest += each;
        before += p->items[p->work[w].item].cost;
    }
    return s;
}

static struct share share_of(const struct abi_args *a, enum abi_over over, u64 thread, u64 team)
{
    if (over == ABI_OVER_HEADS)
        return share_heads(indices(a, over), thread, team);
    return share_work(plan_of(a, over), indices_each(a, over), thread, team);
}

/* ---- plans with partial items ---- */

static bool has_partials(const struct abi_args *a, enum abi_over over)
{
    return over != ABI_OVER_HEADS && plan_of(a, over)->uses & ABI_PARTIAL;
}

/* A head's works that others resume, or the other ones: first .. first + count - 1. */
static u64 part_of(const struct abi_plan *p, u32 h, u64 each, bool partial, u64 *first)
{
    const u64 items = p->heads[h].items * each, partials = p->heads[h].partials * each;
    *first += partial ? 0 : partials;
    return partial ? partials : items - partials;
}

/* Those of all heads, head by head. */
static void run_part(const struct abi_args *a, entry_fn *entry, enum abi_over over,
                     bool partial, struct queue *q, u8 *scratch)
{
    const struct abi_plan *p = plan_of(a, over);
    const u64 each = indices_each(a, over);
    u64 before = 0, at = 0, k = queue_take(q);
    for (u32 h = 0; h < a->heads; h++) {
        u64 first = at, count = part_of(p, h, each, partial, &first);
        for (; k < before + count; k = queue_take(q))
            entry(a, first + k - before, first + k - before + 1, scratch);
        before += count;
        at += p->heads[h].items * each;
    }
}

/* First what others resume, of all heads, which it may be in any order. */
static void run_partials(const struct abi_args *a, entry_fn *entry, enum abi_over over,
                         struct queue q[2], u8 *scratch)
{
    run_part(a, entry, over, true, &q[0], scratch);
#pragma omp barrier
    run_part(a, entry, over, false, &q[1], scratch);
}

/* ---- heads as a whole ---- */

/* Rows of sequence b, as the kernel sees it. */
static u32 rows_of(const struct abi_args *a, u32 b)
{
    if (!a->offsets)
        return a->n;
    i32 rows = a->offsets[b + 1] - a->offsets[b];
    return rows < 0 ? 0 : (u32)rows < a->n ? (u32)rows : a->n;
}

/* The works first .. end that reach into `rows` rows: a plan is for the mask's length. */
static void run_works(const struct abi_plan *p, const struct abi_args *a, entry_fn *entry,
                      u64 first, u64 end, u32 rows, u8 *scratch)
{
    for (u64 k = first; k < end; k = first) {
        while (k < end && p->items[p->work[k].item].row0 < rows)
            k++;
        if (first < k)
            entry(a, first, k, scratch);
        for (first = k; first < end && p->items[p->work[first].item].row0 >= rows;)
            first++;
    }
}

/* All of a head's work, in one thread, which packs each of its heads at the same place. */
static void run_head(const struct device_code *c, const struct device_launch *l, u32 b, u32 h,
                     u64 thread)
{
    struct abi_args own = l->args;
    u8 *scratch = own.scratch + thread * own.scratch_stride;
    own.pack = (u8 *)((uintptr_t)own.pack + (thread - h) * own.pack_stride);
    own.first_batch += b;
    own.slice_batch = 1;
    u32 rows = rows_of(&own, own.first_batch);
    for (uint32_t k = 0; k < l->n_phases; k++) {
        enum abi_over over = l->phases[k].over;
        entry_fn *entry = entry_of(c, &l->phases[k]);
        if (over == ABI_OVER_HEADS) {
            entry(&own, h, h + 1, scratch);
            continue;
        }
        const struct abi_plan *p = plan_of(&own, over);
        u64 first = 0;
        for (u32 i = 0; i < h; i++)
            first += p->heads[i].items;
        run_works(p, &own, entry, first, first + p->heads[h].items, rows, scratch);
    }
}

enum { MOST_HEADS = 256 };

/* The heads, dearest first, by costs over all phases. */
struct heads {
    u32 order[MOST_HEADS];
    u64 cost[MOST_HEADS]; /* of head h, to be compared with others' */
    u64 sum;
};

static void add_costs(const struct device_launch *l, struct heads *ret)
{
    for (uint32_t k = 0; k < l->n_phases; k++) {
        if (l->phases[k].over == ABI_OVER_HEADS)
            continue;
        const struct abi_plan *p = plan_of(&l->args, l->phases[k].over);
        for (u32 w = 0; w < p->works; w++)
            ret->cost[p->work[w].head] += p->items[p->work[w].item].cost;
    }
}

static void order_heads(const struct device_launch *l, struct heads *ret)
{
    for (u32 h = 0; h < l->args.heads; h++)
        ret->cost[h] = 0;
    add_costs(l, ret);
    ret->sum = 0;
    for (u32 h = 0; h < l->args.heads; h++) {
        u32 at = h;
        for (; at > 0 && ret->cost[ret->order[at - 1]] < ret->cost[h]; at--)
            ret->order[at] = ret->order[at - 1];
        ret->order[at] = h;
        ret->sum += ret->cost[h];
    }
}

/* Would a team that takes whole heads, dearest first and whoever is free the next, end nearly together? What
   the phases of a shared head lose is more than an eighth where heads are short. */
static bool heads_balance(const struct device_launch *l, const struct heads *heads, u64 team)
{
    enum { MOST_TEAM = 64, LOSS = 8 }; /* an eighth of the time at most */
    const u64 count = indices(&l->args, ABI_OVER_HEADS);
    const u64 even = heads->sum * l->args.slice_batch / team;
    u64 busy[MOST_TEAM] = {0}, last = 0;
    if (team > MOST_TEAM || team > count)
        return false;
    if (heads->cost[heads->order[0]] <= even / LOSS)
        return true;
    for (u64 k = 0; k < count; k++) {
        u64 free = 0;
        for (u64 t = 1; t < team; t++)
            free = busy[t] < busy[free] ? t : free;
        busy[free] += heads->cost[heads->order[k / l->args.slice_batch]];
        last = busy[free] > last ? busy[free] : last;
    }
    return last <= even + even / LOSS;
}

/* Does what a phase or an item leaves to another stay in a core's cache anyway? Not so where most items of
   a phase are beyond the batch's longest sequence: a head's are passed over together. */
static bool leaves_little(const struct device_launch *l, u64 team)
{
    enum { LITTLE = 1 << 20 };
    if (l->args.n <= l->args.forward.n / 2)
        return false;
    for (uint32_t k = 0; k < l->n_phases; k++)
        if (has_partials(&l->args, l->phases[k].over))
            return false;
    return l->args.pack_stride * indices(&l->args, ABI_OVER_HEADS) <= LITTLE * team;
}

/* A head is best one thread's: what it leaves to itself is in its cache then, and no thread waits for
   others between phases. */
static bool takes_heads(const struct device_launch *l, u64 team, struct heads *heads)
{
    for (uint32_t k = 0; k < l->n_phases; k++)
        if (l->phases[k].over == ABI_OVER_WORK)
            return false;
    if (l->args.heads > MOST_HEADS || leaves_little(l, team))
        return false;
    order_heads(l, heads);
    return team == 1 || heads_balance(l, heads, team);
}

/* Every team-th head of the order is a thread's own, the same from launch to launch: what it read and wrote
   before is in its core's cache, and in another's it would have to be fetched from there (at n=128 a launch
   took a quarter longer). Then it takes what others have not come to. */
static void run_heads(const struct device_code *c, const struct device_launch *l,
                      const struct heads *heads, u64 team, u64 thread, struct queue *queue)
{
    const u64 count = indices(&l->args, ABI_OVER_HEADS), slice = l->args.slice_batch;
    const u64 owners = team < MOST_OWNERS ? team : MOST_OWNERS;
    for (u64 turn = 0; turn < owners; turn++) {
        const u64 owner = (thread + turn) % owners;
        for (u64 k; (k = owner + owners * queue_take(&queue[owner])) < count;)
            run_head(c, l, (u32)(k % slice), heads->order[k / slice], thread);
    }
}

/* ---- teams ---- */

static void run_phase(const struct abi_args *a, entry_fn *entry, enum abi_over over, u64 thread,
                      struct queue q[2], u8 *scratch)
{
    if (has_partials(a, over)) {
        run_partials(a, entry, over, q, scratch);
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
static void run_team(const struct device_code *c, const struct device_launch *l, u64 team)
{
    struct queue queue[MOST_QUEUES] = {{0}};
    struct heads by_cost;
    const bool whole = takes_heads(l, team, &by_cost);
#pragma omp parallel num_threads((int)team)
    {
        u64 thread = (u64)omp_get_thread_num();
        u8 *scratch = l->args.scratch + thread * l->args.scratch_stride;
        if (whole)
            run_heads(c, l, &by_cost, team, thread, queue);
        else
            run_phases(c, l, thread, queue, scratch);
    }
}

static void run_alone(const struct device_code *c, const struct device_launch *l)
{
    struct queue queue = {0};
    struct heads by_cost;
    if (takes_heads(l, 1, &by_cost)) {
        run_heads(c, l, &by_cost, 1, 0, &queue);
        return;
    }
    for (uint32_t p = 0; p < l->n_phases; p++)
        entry_of(c, &l->phases[p])(&l->args, 0, indices(&l->args, l->phases[p].over),
                                   l->args.scratch);
}

static u64 team_of(const struct device_launch *l)
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
    return takes_heads(l, team_of(l), &by_cost);
}

int cpu_run(const struct device_code *c, const struct device_launch *l, struct error *e)
{
    (void)e;
    u64 team = team_of(l);
    if (team > 1)
        run_team(c, l, team);
    else
        run_alone(c, l);
    return 0;
}
