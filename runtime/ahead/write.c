/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file of kernels compiled ahead: the tables, then each frame's codes compressed together. */
#include "masks/base/memory.h"
#include "runtime/ahead/ahead.h"
#include "runtime/ahead/layout.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The file as it grows. */
struct writer {
    const struct ahead_code *code;
    uint32_t count;
    struct ahead_frame *frame;
    struct ahead_entry *entry;
    uint32_t frames;
    struct text packed;
};

static int by_key(const void *a, const void *b)
{
    const struct ahead_entry *x = a, *y = b;
    if (x->key.high != y->key.high)
        return x->key.high < y->key.high ? -1 : 1;
    return x->key.low == y->key.low ? 0 : x->key.low < y->key.low ? -1 : 1;
}

/* The codes from `first` on that are in its frame. Returns the first one beyond, or 0: no zstd. */
static uint32_t add_frame(struct writer *w, uint32_t first)
{
    struct text raw = {0};
    uint32_t k = first;
    for (; k < w->count && w->code[k].frame == w->code[first].frame; k++) {
        const struct ahead_code *c = &w->code[k];
        w->entry[k] = (struct ahead_entry){c->key, w->frames, raw.length, c->size};
        text_append(&raw, (const char *)c->bytes, c->size);
    }
    const uint8_t *bytes = (const uint8_t *)raw.bytes;
    const size_t before = w->packed.length;
    const bool ok = frame_pack(bytes, raw.length, &w->packed);
    w->frame[w->frames++] = (struct ahead_frame){w->packed.length - before, raw.length,
                                                 XXH3_64bits(bytes, raw.length)};
    text_finish(&raw);
    return ok ? k : 0;
}

static uint8_t *join(struct writer *w, const char *compiler, uint64_t *ret_size)
{
    struct ahead_head head;
    struct text all = {0};
    memset(&head, 0, sizeof head);
    memcpy(head.magic, ahead_magic, sizeof head.magic);
    snprintf(head.compiler, sizeof head.compiler, "%s", compiler);
    head.frames = w->frames;
    head.codes = w->count;
    text_append(&all, (const char *)&head, sizeof head);
    text_append(&all, (const char *)w->frame, w->frames * sizeof *w->frame);
    text_append(&all, (const char *)w->entry, w->count * sizeof *w->entry);
    head.checksum = XXH3_64bits(all.bytes, all.length);
    memcpy(all.bytes, &head, sizeof head);
    text_append(&all, text_get(&w->packed), w->packed.length);
    *ret_size = all.length;
    return (uint8_t *)text_take(&all);
}

uint8_t *ahead_write(const struct ahead_code *code, uint32_t count, const char *compiler,
                     uint64_t *ret_size)
{
    struct writer w = {.code = code, .count = count};
    w.frame = memory_new(count, sizeof *w.frame);
    w.entry = memory_new(count, sizeof *w.entry);
    bool ok = true;
    for (uint32_t k = 0; k < count && ok; ok = k > 0)
        k = add_frame(&w, k);
    qsort(w.entry, count, sizeof *w.entry, by_key);
    uint8_t *ret = ok ? join(&w, compiler, ret_size) : NULL;
    text_finish(&w.packed);
    free(w.entry);
    free(w.frame);
    return ret;
}
