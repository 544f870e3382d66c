/* SPDX-License-Identifier: Apache-2.0 */
/* Names of devices with an ordinal, "cuda:1"; and what the phases of a pass go over. */
#include "runtime/device/device.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct device *find_word(const char *name, size_t length)
{
    for (const struct device *const *d = devices; *d; d++)
        if (strlen((*d)->name) == length && !memcmp((*d)->name, name, length))
            return *d;
    return NULL;
}

/* DEVICE_CURRENT of "", N of ":N". */
static bool parse_ordinal(const char *text, int *ret)
{
    char *end;
    *ret = DEVICE_CURRENT;
    if (!*text)
        return true;
    if (text[0] != ':' || text[1] < '0' || text[1] > '9')
        return false;
    unsigned long n = strtoul(text + 1, &end, 10);
    *ret = (int)n;
    return !*end && n < 1024;
}

bool over_transposed(enum abi_over over)
{
    return over == ABI_OVER_TRANSPOSED || over == ABI_OVER_TRANSPOSED_MERGE;
}

struct abi_args phase_args(enum abi_over over, const struct abi_args *a)
{
    struct abi_args ret = *a;
    ret.merge = over == ABI_OVER_FORWARD_MERGE || over == ABI_OVER_TRANSPOSED_MERGE;
    return ret;
}

/* Parts of dX at most. */
static uint64_t count_bias(const struct abi_args *a)
{
    uint64_t tiles = (a->forward.n + 31) / 32;
    return a->heads * tiles * tiles * a->bias_chunks;
}

/* Blocks of keys of a key head. */
static uint64_t key_head_blocks(const struct abi_args *a)
{
    return ((uint64_t)a->keys + ABI_KEY_HEAD_ROWS - 1) / ABI_KEY_HEAD_ROWS;
}

uint64_t phase_indices(enum abi_over over, const struct abi_args *a)
{
    const struct abi_plan *p = over_transposed(over) ? &a->transposed : &a->forward;
    switch (over) {
    case ABI_OVER_HEADS:
        return (uint64_t)a->heads * a->slice_batch;
    case ABI_OVER_KEY_HEADS:
        return (uint64_t)a->heads / a->group * a->slice_batch * key_head_blocks(a);
    case ABI_OVER_WORK:
        return p->works;
    case ABI_OVER_BIAS:
        return count_bias(a);
    case ABI_OVER_FORWARD_MERGE:
    case ABI_OVER_TRANSPOSED_MERGE:
        return (uint64_t)p->merge * a->slice_batch;
    default:
        return (uint64_t)(p->works - p->merge) * a->slice_batch;
    }
}

static bool is_uneven(const struct plan_pass *p, const uint64_t layer_work[3])
{
    const uint64_t works = layer_work[1] - layer_work[2];
    uint64_t sum = 0, largest = 0;
    for (uint64_t k = layer_work[0]; k < layer_work[0] + works; k++) {
        const uint64_t cost = p->items[p->work[k].item].cost;
        sum += cost;
        largest = cost > largest ? cost : largest;
    }
    return 2 * largest * works > 3 * sum;
}

static bool some_uneven(const struct plan_pass *p, uint32_t layers)
{
    for (uint32_t l = 0; p->n_work && l < layers; l++)
        if (is_uneven(p, p->layer_work[l]))
            return true;
    return false;
}

void waves_needed(const struct artifact *a, const struct artifact_target *t, bool ret[2])
{
    const struct artifact_plan *p = &a->plan[t->plan];
    ret[0] = some_uneven(&p->forward, a->mask->layers);
    ret[1] = some_uneven(&p->transposed, a->mask->layers);
}

struct wave_grid waves_grid(uint64_t works, uint32_t fit, uint32_t waves)
{
    if (works <= (uint64_t)fit * waves)
        return (struct wave_grid){(uint32_t)works, 1};
    return (struct wave_grid){fit, waves};
}

int device_find(const char *name, const struct device **ret, int *ret_ordinal, struct error *e)
{
    int ordinal = DEVICE_CURRENT;
    const struct device *d = NULL;
    if (name) {
        size_t length = strcspn(name, ":");
        d = find_word(name, length);
        if (!d || !parse_ordinal(name + length, &ordinal))
            return error_set(e, ERROR_INPUT, "unknown device '%.64s'; known are %s", name,
                             devices_known);
        if (ordinal > 0 && d != &device_cuda)
            return error_set(e, ERROR_INPUT, "there is one device '%s', not '%.64s'", d->name,
                             name);
    }
    *ret = d;
    *ret_ordinal = ordinal;
    return 0;
}
