/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks run side by side and count apart; they add up one after the other. */
#include "runtime/device/emulated/emulated_counts.h"
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Null: nobody asked. */
static struct emulation_banks *_Atomic asked_banks;
static struct emulation_work *_Atomic asked_work;

void emulated_count_banks(struct emulation_banks *ret)
{
    if (ret)
        memset(ret, 0, sizeof *ret);
    atomic_store(&asked_banks, ret);
}

void emulated_count_work(struct emulation_work *ret)
{
    if (ret)
        memset(ret, 0, sizeof *ret);
    atomic_store(&asked_work, ret);
}

/* ---- bank conflicts ---- */

static bool same_site(const struct emulation_site *a, const struct emulation_site *b)
{
    return a->line == b->line && a->access == b->access && a->bytes == b->bytes &&
           !strcmp(a->function, b->function);
}

static void add_site(struct emulation_banks *to, const struct emulation_site *s)
{
    uint32_t k = 0;
    while (k < to->count && !same_site(&to->site[k], s))
        k++;
    if (k == EMULATION_MAX_SITES) {
        to->missed += s->requests;
    } else if (k == to->count) {
        to->site[to->count++] = *s;
    } else {
        to->site[k].requests += s->requests;
        to->site[k].wavefronts += s->wavefronts;
        to->site[k].least += s->least;
    }
}

static void add_banks(struct emulation_banks *to, const struct emulation_banks *from)
{
    for (uint32_t k = 0; k < from->count; k++)
        add_site(to, &from->site[k]);
    to->missed += from->missed;
}

/* ---- products and copies ---- */

static void add_work(struct emulation_work *to, const char *entry,
                     const struct emulation_launch *l)
{
    uint32_t k = 0;
    while (k < to->count && strcmp(to->entry[k].name, entry) != 0)
        k++;
    if (k == EMULATION_MAX_ENTRIES)
        return;
    if (k == to->count)
        strncpy(to->entry[to->count++].name, entry, sizeof to->entry->name - 1);
    to->entry[k].products += l->products;
    to->entry[k].copies += l->copies;
}

struct emulation_banks *counts_begin(void)
{
    return atomic_load(&asked_banks) ? memory_new(1, sizeof(struct emulation_banks)) : NULL;
}

void counts_end(const char *entry, const struct emulation_launch *l)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct emulation_banks *banks = atomic_load(&asked_banks);
    struct emulation_work *work = atomic_load(&asked_work);
    pthread_mutex_lock(&lock);
    if (banks && l->banks)
        add_banks(banks, l->banks);
    if (work)
        add_work(work, entry, l);
    pthread_mutex_unlock(&lock);
    free(l->banks);
}
