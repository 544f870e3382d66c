/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a launch before its tensors. */
#include "gen/key_shape.h"
#include "runtime/launch/steps.h"
#include <math.h>

int launch_refuse(const struct launch *c, const char *what)
{
    return error_set(c->e, ERROR_INPUT, "launch: %s", what);
}

static int check_lengths_of_sides(const struct launch *c)
{
    const struct kernel_request *r = &c->k->artifact->request;
    const struct maskc_launch *l = c->l;
    const uint32_t queries = request_queries(r, c->k->artifact->mask),
                   keys = request_keys(r, c->k->artifact->mask);
    if (c->shape.queries > queries)
        return error_set(c->e, ERROR_INPUT, "launch: length %u is larger than the mask's %u",
                         c->shape.queries, queries);
    if (!r->keys && (l->key_lengths || c->shape.keys != c->shape.queries))
        return launch_refuse(c,
                             "key_length or key_lengths, but the kernel was compiled with as "
                             "many keys as queries");
    if (c->shape.keys > keys)
        return error_set(c->e, ERROR_INPUT,
                         "launch: key_length %u is larger than the kernel's %u", c->shape.keys,
                         keys);
    if (r->keys && (l->offsets || l->starts))
        return launch_refuse(c, "offsets and starts are not for kernels with other numbers of "
                                "keys than of queries");
    return 0;
}

static int check_sizes(const struct launch *c)
{
    const struct mask *m = c->k->artifact->mask;
    const struct maskc_launch *l = c->l;
    if (l->pass != MASKC_FORWARD && l->pass != MASKC_BACKWARD)
        return launch_refuse(c, "pass is neither MASKC_FORWARD nor MASKC_BACKWARD");
    if (l->pass == MASKC_BACKWARD && !c->k->artifact->request.backward)
        return launch_refuse(c, "the kernel was compiled forward only");
    if (check_lengths_of_sides(c) < 0)
        return -1;
    if (l->layer >= m->layers)
        return error_set(c->e, ERROR_INPUT, "launch: layer %u is out of range, the mask has %u",
                         l->layer, m->layers);
    return c->shape.batch > INT32_MAX ? launch_refuse(c, "batch is out of range") : 0;
}

static int check_packed(const struct launch *c)
{
    const struct maskc_launch *l = c->l;
    if (!l->offsets)
        return l->tokens ? launch_refuse(c, "tokens is for packed batches, but offsets is null")
                         : 0;
    if (l->lengths)
        return launch_refuse(c, "lengths and offsets exclude each other");
    const bool readable = c->k->device->host_memory; /* check_lengths() says more of offsets */
    if (l->tokens > INT32_MAX ||
        (!readable && l->tokens > (uint64_t)c->shape.batch * c->shape.n))
        return launch_refuse(c, "tokens is more than batch sequences of this length hold");
    return 0;
}

static int check_lengths_within(const struct launch *c, const char *name,
                                const int32_t *lengths, uint32_t most)
{
    for (uint32_t b = 0; lengths && b < c->shape.batch; b++)
        if (lengths[b] < 0 || (uint32_t)lengths[b] > most)
            return error_set(c->e, ERROR_INPUT, "launch: %s[%u] = %d is not in 0..%u", name, b,
                             lengths[b], most);
    return 0;
}

/* Where the arrays can be read, wrong ones are refused; a GPU clamps them. */
static int check_lengths(const struct launch *c)
{
    const struct maskc_launch *l = c->l;
    if (!c->k->device->host_memory)
        return 0;
    if (check_lengths_within(c, "lengths", l->lengths, c->shape.queries) < 0 ||
        check_lengths_within(c, "key_lengths", l->key_lengths, c->shape.keys) < 0)
        return -1;
    if (!l->offsets)
        return 0;
    for (uint32_t b = 0; b < c->shape.batch; b++)
        if (l->offsets[b] < 0 || l->offsets[b + 1] < l->offsets[b] ||
            (uint32_t)(l->offsets[b + 1] - l->offsets[b]) > c->shape.n)
            return error_set(c->e, ERROR_INPUT,
                             "launch: offsets[%u..%u] = %d, %d is not a sequence of 0..%u rows",
                             b, b + 1, l->offsets[b], l->offsets[b + 1], c->shape.n);
    if (l->offsets[0] != 0 || (uint64_t)l->offsets[c->shape.batch] != l->tokens)
        return error_set(c->e, ERROR_INPUT,
                         "launch: offsets go from %d to %d; 0 to %llu (tokens) is expected",
                         l->offsets[0], l->offsets[c->shape.batch],
                         (unsigned long long)l->tokens);
    return 0;
}

static int check_numbers(const struct launch *c)
{
    if (c->l->flags & ~(uint32_t)MASKC_SCALE_GIVEN)
        return error_set(c->e, ERROR_INPUT,
                         "launch: flags 0x%x has bits that this library does not know",
                         c->l->flags);
    if (!isfinite(c->l->scale))
        return launch_refuse(c, "scale is not a finite number");
    if (!(c->l->dropout >= 0 && c->l->dropout < 1))
        return launch_refuse(c, "dropout is not in 0 <= p < 1");
    if (c->l->dropout > 0 && !c->k->artifact->request.dropout)
        return launch_refuse(c, "dropout, but the kernel was compiled without it");
    if (c->l->dropout * 65536 >= 65535.5)
        return launch_refuse(c, "dropout would drop everything");
    return 0;
}

static int check_workspace(const struct launch *c)
{
    const struct maskc_launch *l = c->l;
    if (c->shape.total == UINT64_MAX)
        return launch_refuse(c, "the batch is too large");
    if (l->workspace_bytes < c->shape.total)
        return error_set(
            c->e, ERROR_INPUT,
            "launch: workspace_bytes is %llu, maskc_workspace_bytes() asks for %llu",
            (unsigned long long)l->workspace_bytes, (unsigned long long)c->shape.total);
    if (c->shape.total && (!l->workspace || (uintptr_t)l->workspace % 64))
        return launch_refuse(c, "workspace is null or not aligned to 64 bytes");
    return 0;
}

/* Starts are the host's to read: a device without its memory does not take them. */
static int check_starts(const struct launch *c)
{
    const struct maskc_launch *l = c->l;
    if (!l->starts)
        return 0;
    if (!c->k->device->starts)
        return error_set(c->e, ERROR_INPUT,
                         "launch: starts are for the device cpu, '%s' does not take them",
                         c->k->device->name);
    if (l->offsets)
        return launch_refuse(c, "starts and offsets exclude each other");
    for (uint32_t b = 0; b < c->shape.batch; b++) {
        const int64_t start = l->starts[b], rows = l->lengths ? l->lengths[b] : 0;
        if (start < 0 || start + rows > c->shape.n)
            return error_set(
                c->e, ERROR_INPUT,
                "launch: starts[%u] = %lld with a length of %lld is not within the "
                "%u rows",
                b, (long long)start, (long long)rows, c->shape.n);
    }
    return 0;
}

int launch_check(const struct launch *c)
{
    if (check_sizes(c) < 0 || check_packed(c) < 0 || check_numbers(c) < 0 ||
        check_lengths(c) < 0 || check_starts(c) < 0)
        return -1;
    return check_workspace(c);
}
