/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of kernels compiled ahead. Nothing in it is believed: tables are held against the file's size before
   anything is looked up, a frame against its checksum before code is taken from it. */
#include "masks/base/memory.h"
#include "runtime/ahead/ahead.h"
#include "runtime/ahead/layout.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static struct ahead_frame frame_of(const struct ahead *a, uint64_t k)
{
    struct ahead_frame f;
    memcpy(&f, a->bytes + sizeof(struct ahead_head) + k * sizeof f, sizeof f);
    return f;
}

static struct ahead_entry entry_of(const struct ahead *a, uint64_t k)
{
    struct ahead_entry c;
    memcpy(&c,
           a->bytes + sizeof(struct ahead_head) + a->frames * sizeof(struct ahead_frame) +
               k * sizeof c,
           sizeof c);
    return c;
}

static uint64_t tables_bytes(uint32_t frames, uint32_t codes)
{
    return sizeof(struct ahead_head) + (uint64_t)frames * sizeof(struct ahead_frame) +
           (uint64_t)codes * sizeof(struct ahead_entry);
}

static int compare(struct cache_key a, struct cache_key b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    return a.low == b.low ? 0 : a.low < b.low ? -1 : 1;
}

static uint64_t checksum_of(const uint8_t *bytes, uint64_t size)
{
    struct ahead_head head;
    XXH3_state_t *state = XXH3_createState();
    memcpy(&head, bytes, sizeof head);
    head.checksum = 0;
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &head, sizeof head);
    XXH3_64bits_update(state, bytes + sizeof head, size - sizeof head);
    const uint64_t sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum;
}

/* Frames fill the file to its end; each is of a size that memory has. */
static bool frames_add_up(const struct ahead *a)
{
    uint64_t left = a->size - tables_bytes(a->frames, a->codes);
    for (uint32_t k = 0; k < a->frames; k++) {
        const struct ahead_frame f = frame_of(a, k);
        if (f.packed > left || f.raw > AHEAD_MOST_FRAME_BYTES)
            return false;
        left -= f.packed;
    }
    return left == 0;
}

static bool codes_add_up(const struct ahead *a)
{
    for (uint32_t k = 0; k < a->codes; k++) {
        const struct ahead_entry c = entry_of(a, k);
        if (c.frame >= a->frames || (k && compare(entry_of(a, k - 1).key, c.key) >= 0))
            return false;
        const uint64_t raw = frame_of(a, c.frame).raw;
        if (!c.size || c.size > raw || c.at > raw - c.size)
            return false;
    }
    return true;
}

int ahead_read(const uint8_t *bytes, uint64_t size, const char *name, struct ahead *ret,
               struct error *e)
{
    struct ahead_head h;
    if (size < sizeof ahead_magic || memcmp(bytes, ahead_magic, sizeof ahead_magic) != 0)
        return error_set(e, ERROR_INPUT,
                         "%s: not a file of kernels that this maskc compiled ahead", name);
    if (size < sizeof h)
        return error_set(e, ERROR_INPUT, "%s: cut short", name);
    memcpy(&h, bytes, sizeof h);
    if (h.codes > AHEAD_MOST_CODES || h.frames > AHEAD_MOST_CODES ||
        !memchr(h.compiler, 0, sizeof h.compiler))
        return error_set(e, ERROR_INPUT, "%s: damaged: sizes are out of range", name);
    const uint64_t tables = tables_bytes(h.frames, h.codes);
    if (size < tables)
        return error_set(e, ERROR_INPUT, "%s: cut short", name);
    struct ahead a = {bytes, size, h.codes, h.frames, ""};
    memcpy(a.compiler, h.compiler, sizeof a.compiler);
    if (checksum_of(bytes, tables) != h.checksum)
        return error_set(e, ERROR_INPUT, "%s: damaged: the checksum is wrong", name);
    if (!frames_add_up(&a) || !codes_add_up(&a))
        return error_set(e, ERROR_INPUT, "%s: damaged or cut short: parts do not add up", name);
    *ret = a;
    return 0;
}

/* ---- one code ---- */

static bool find(const struct ahead *a, struct cache_key key, struct ahead_entry *ret)
{
    uint32_t low = 0, high = a->codes;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        *ret = entry_of(a, middle);
        const int order = compare(ret->key, key);
        if (order == 0)
            return true;
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return false;
}

/* The frame's raw bytes; null where they are not what was written. */
static uint8_t *unpack(const struct ahead *a, uint64_t frame)
{
    const uint8_t *at = a->bytes + tables_bytes(a->frames, a->codes);
    for (uint64_t k = 0; k < frame; k++)
        at += frame_of(a, k).packed;
    const struct ahead_frame f = frame_of(a, frame);
    uint8_t *raw = memory_new(f.raw, 1);
    if (frame_unpack(at, f.packed, raw, f.raw) && XXH3_64bits(raw, f.raw) == f.checksum)
        return raw;
    free(raw);
    return NULL;
}

bool ahead_get(const struct ahead *a, struct cache_key key, uint8_t **ret, uint64_t *ret_size,
               struct error *e)
{
    struct ahead_entry c;
    if (!a || !find(a, key, &c))
        return false;
    uint8_t *raw = unpack(a, c.frame);
    if (!raw) {
        error_set(e, ERROR_INPUT, "the kernels compiled ahead are damaged");
        return false;
    }
    *ret = memory_copy(raw + c.at, c.size);
    *ret_size = c.size;
    free(raw);
    return true;
}
