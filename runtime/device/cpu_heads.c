/* SPDX-License-Identifier: Apache-2.0 */
/* Heads as a whole: each is packed and worked through by one thread. Query heads that share a key head go together, as
   its K and V are packed once. */
#include "runtime/device/cpu_share.h"

/* Rows of sequence b, as the kernel sees it. */
static u32 rows_of(const struct abi_args *a, u32 b)
{
    if (!a->offsets)
        return a->n;
    i32 rows = a->offsets[b + 1] - a->offsets[b];
    return rows < 0 ? 0 : (u32)rows < a->n ? (u32)rows : a->n;
}

/* The works first .. end of one sequence, but not those beyond its rows: a plan is for the mask's length. */
static void run_works(const struct abi_plan *p, const struct abi_args *a, entry_fn *entry,
                      u64 first, u64 end, u8 *scratch)
{
    const u32 rows = rows_of(a, a->first_batch);
    for (u64 k = first; k < end; k = first) {
        while (k < end && p->items[p->work[k].item].row0 < rows)
            k++;
        if (first < k)
            entry(a, first, k, scratch);
        for (first = k; first < end && p->items[p->work[first].item].row0 >= rows;)
            first++;
    }
}

/* All of a head's work. A thread packs each of its heads at the same place, which stays in its cache; those of one
   key head side by side. */
static void run_head(const struct device_code *c, const struct device_launch *l, u32 b, u32 h,
                     u64 thread)
{
    struct abi_args own = l->args;
    u8 *scratch = own.scratch + thread * own.scratch_stride;
    own.pack = (u8 *)((uintptr_t)own.pack +
                      (thread * own.group + h % own.group - h) * own.pack_stride);
    own.first_batch += b;
    own.slice_batch = 1;
    begin_at_start(l, own.first_batch, &own);
    for (uint32_t k = 0; k < l->n_phases; k++) {
        enum abi_over over = l->phases[k].over;
        entry_fn *entry = entry_of(c, &l->phases[k]);
        if (over == ABI_OVER_KEY_HEADS)
            continue; /* of several heads together */
        if (over == ABI_OVER_HEADS) {
            entry(&own, h, h + 1, scratch);
            continue;
        }
        const struct abi_plan *p = plan_of(&own, over);
        u64 first = 0;
        for (u32 i = 0; i < h; i++)
            first += p->heads[i].items;
        run_works(p, &own, entry, first, first + p->heads[h].items, scratch);
    }
}

static void run_heads(const struct device_code *c, const struct device_launch *l, u32 b,
                      u32 key_head, u64 thread)
{
    for (u32 k = 0; k < l->args.group; k++)
        run_head(c, l, b, key_head * l->args.group + k, thread);
}

static void add_costs(const struct device_launch *l, struct heads *ret)
{
    for (uint32_t k = 0; k < l->n_phases; k++) {
        if (!over_items(l->phases[k].over))
            continue;
        const struct abi_plan *p = plan_of(&l->args, l->phases[k].over);
        for (u32 w = 0; w < p->works; w++)
            ret->cost[p->work[w].head / l->args.group] += p->items[p->work[w].item].cost;
    }
}

static u32 key_heads(const struct device_launch *l)
{
    return l->args.heads / l->args.group;
}

static void order_heads(const struct device_launch *l, struct heads *ret)
{
    for (u32 h = 0; h < key_heads(l); h++)
        ret->cost[h] = 0;
    add_costs(l, ret);
    ret->sum = 0;
    for (u32 h = 0; h < key_heads(l); h++) {
        u32 at = h;
        for (; at > 0 && ret->cost[ret->order[at - 1]] < ret->cost[h]; at--)
            ret->order[at] = ret->order[at - 1];
        ret->order[at] = h;
        ret->sum += ret->cost[h];
    }
}

/* True if threads end nearly together when they take whole heads, the most expensive first: at most
   an eighth later than with equal shares. Sharing the phases of a head loses more than that if
   heads are short. */
static bool heads_balance(const struct device_launch *l, const struct heads *heads, u64 threads)
{
    enum { MOST_THREADS = 64, LOSS = 8 };
    const u64 count = indices(&l->args, ABI_OVER_KEY_HEADS);
    const u64 even = heads->sum * l->args.slice_batch / threads;
    u64 busy[MOST_THREADS] = {0}, last = 0;
    if (threads > MOST_THREADS || threads > count)
        return false;
    if (heads->cost[heads->order[0]] <= even / LOSS)
        return true;
    for (u64 k = 0; k < count; k++) {
        u64 free = 0;
        for (u64 t = 1; t < threads; t++)
            free = busy[t] < busy[free] ? t : free;
        busy[free] += heads->cost[heads->order[k / l->args.slice_batch]];
        last = busy[free] > last ? busy[free] : last;
    }
    return last <= even + even / LOSS;
}

/* True if the data that one phase leaves to the next stay in a core's cache even when threads share heads. Then whole
   heads gain nothing. They do gain if most items are beyond the batch's longest sequence: those of a head are skipped
   together. */
static bool leaves_little(const struct device_launch *l, u64 threads)
{
    enum { LITTLE = 1 << 20 };
    if (l->args.n <= l->args.forward.n / 2)
        return false;
    for (uint32_t k = 0; k < l->n_phases; k++)
        if (has_splits(&l->args, l->phases[k].over))
            return false;
    return l->args.pack_stride * indices(&l->args, ABI_OVER_HEADS) <= LITTLE * threads;
}

bool heads_whole(const struct device_launch *l, u64 threads, struct heads *heads)
{
    for (uint32_t k = 0; k < l->n_phases; k++)
        if (l->phases[k].over == ABI_OVER_WORK)
            return false;
    if (l->args.heads > MOST_HEADS || leaves_little(l, threads))
        return false;
    order_heads(l, heads);
    return threads == 1 || heads_balance(l, heads, threads);
}

/* A thread's own heads: places first, first + step, .. before `end` of the order. */
struct own {
    u64 first, step, end;
};

/* Heads of equal cost are dealt out in ranges: their rows are neighbours in memory, so a core's prefetches
   serve its own next head (n=512, two threads: longformer took 0.94 of the time, star 0.90). Other heads are
   dealt out one by one, by falling cost. */
static struct own own_heads(const struct heads *heads, u64 count, u64 owners, u64 owner,
                            u32 most)
{
    const bool alike = heads->cost[heads->order[0]] == heads->cost[heads->order[most - 1]];
    if (alike)
        return (struct own){owner * count / owners, 1, (owner + 1) * count / owners};
    return (struct own){owner, owners, count};
}

/* A thread has the same heads from launch to launch, so that its core's cache still holds what it read and
   wrote (else a launch took a quarter longer at n=128). After them it steals what others have not begun. */
void heads_run(const struct device_code *c, const struct device_launch *l,
               const struct heads *heads, u64 threads, u64 thread, struct queue *queue)
{
    const u64 count = indices(&l->args, ABI_OVER_KEY_HEADS), slice = l->args.slice_batch;
    const u64 owners = threads < MOST_OWNERS ? threads : MOST_OWNERS;
    for (u64 k = 0; k < owners; k++) {
        const u64 owner = (thread + k) % owners;
        const struct own own = own_heads(heads, count, owners, owner, key_heads(l));
        for (u64 at; (at = own.first + own.step * queue_take(&queue[owner])) < own.end;)
            run_heads(c, l, (u32)(at % slice), heads->order[at / slice], thread);
    }
}
