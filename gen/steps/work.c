/* SPDX-License-Identifier: Apache-2.0 */
/* The work lists over groups. Groups far longer than the others come first, of all heads: they would end last. Others that
   end nearly together go head by head, so that the columns of a head stay in the L2 cache. */
#include "gen/steps/internal.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { GIANT = 6 /* times the mean cost of a layer's groups */, CLASSES = 16 };

struct entry {
    u32 giant, class, cost;
    struct abi_work work;
};

static int descending(u32 a, u32 b)
{
    return a > b ? -1 : a < b;
}

static int by_class_and_head(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = descending(a->giant, b->giant);
    if (!order && a->giant)
        order = descending(a->cost, b->cost);
    if (!order)
        order = descending(a->class, b->class);
    if (!order)
        order = descending(b->work.head, a->work.head);
    return order ? order : descending(b->work.item, a->work.item);
}

/* CLASSES: at least a quarter of the largest cost that is no giant's; one less for each further quarter. */
static u32 class_of(u32 cost, u32 largest)
{
    u32 class = CLASSES;
    while (class && cost < largest / 4) {
        largest /= 4;
        class --;
    }
    return class;
}

static void classify(struct entry *list, uint64_t count)
{
    double mean = 0;
    u32 largest = 0;
    for (uint64_t k = 0; k < count; k++)
        mean += (double)list[k].cost / (double)count;
    for (uint64_t k = 0; k < count; k++) {
        list[k].giant = list[k].cost > GIANT * mean;
        largest = !list[k].giant && list[k].cost > largest ? list[k].cost : largest;
    }
    for (uint64_t k = 0; k < count; k++)
        list[k].class = class_of(list[k].cost, largest);
}

static void list_layer(const struct step_source *s, struct plan_steps *t, const uint32_t *at,
                       uint64_t (*ret)[2])
{
    uint64_t count = 0, k = 0;
    for (uint32_t h = 0; h < s->heads; h++)
        count += t->group_first[at[h] + 1] - t->group_first[at[h]];
    struct entry *list = memory_new(count, sizeof *list);
    for (uint32_t h = 0; h < s->heads; h++)
        for (u32 g = t->group_first[at[h]]; g < t->group_first[at[h] + 1]; g++)
            list[k++] = (struct entry){.cost = t->groups[g].cost, .work = {h, g}};
    classify(list, count);
    qsort(list, count, sizeof *list, by_class_and_head);
    t->work = memory_resize(t->work, t->n_work + count, sizeof *t->work);
    for (k = 0; k < count; k++)
        t->work[t->n_work + k] = list[k].work;
    (*ret)[0] = t->n_work;
    (*ret)[1] = count;
    t->n_work += count;
    free(list);
}

void steps_work(const struct step_source *s, struct plan_steps *t)
{
    const size_t bytes = s->heads * sizeof *s->at;
    t->layer_work = memory_new(s->layers, sizeof *t->layer_work);
    for (uint32_t l = 0; l < s->layers; l++) {
        const uint32_t *at = s->at + (size_t)l * s->heads;
        uint32_t twin = 0; /* an earlier layer with the same masks shares its list */
        while (twin < l && memcmp(s->at + (size_t)twin * s->heads, at, bytes))
            twin++;
        if (twin < l)
            memcpy(t->layer_work[l], t->layer_work[twin], sizeof *t->layer_work);
        else
            list_layer(s, t, at, &t->layer_work[l]);
    }
}
