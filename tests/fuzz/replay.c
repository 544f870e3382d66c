/* SPDX-License-Identifier: Apache-2.0 */
/* A main for the targets without libFuzzer: replay [-m COUNT] FILE... gives each file to the target
   as it is, cut at every length (short files) and COUNT times with a few bytes changed, always in
   the same way. The bytes handed in are exactly as long as they claim, so that a sanitizer sees a
   read past the end. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "tests/fuzz/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUT_BYTES = 600, CHANGES = 4 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = memory_copy(bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* Replaces, doubles or drops a byte, or writes one that means something to a parser. */
static size_t change(uint8_t *bytes, size_t size, uint64_t *state)
{
    static const char telling[] = "0123456789-~|&()[]{},:='\"<>. \nfnab\xff\x7f\x80";
    size_t at = next_random(state) % (size + 1);
    switch (next_random(state) >> 40 & 3) {
    case 0:
        memmove(bytes + at + 1, bytes + at, size - at);
        bytes[at] = (uint8_t)telling[(next_random(state) >> 20) % (sizeof telling - 1)];
        return size + 1;
    case 1:
        if (at == size)
            return size;
        memmove(bytes + at, bytes + at + 1, size - at - 1);
        return size - 1;
    case 2:
        if (at < size)
            bytes[at] = (uint8_t)(next_random(state) >> 30);
        return size;
    default:
        if (at < size)
            bytes[at] = (uint8_t)telling[(next_random(state) >> 20) % (sizeof telling - 1)];
        return size;
    }
}

static void run_all(const struct file *f, long count, uint64_t *state)
{
    run(f->bytes, f->size);
    for (size_t k = 0; k < f->size && k < CUT_BYTES; k++)
        run(f->bytes, k);
    uint8_t *bytes = memory_new(f->size + CHANGES, 1);
    for (long k = 0; k < count; k++) {
        size_t size = f->size;
        memcpy(bytes, f->bytes, size);
        for (uint64_t n = 1 + (next_random(state) >> 40) % CHANGES; n > 0; n--)
            size = change(bytes, size, state);
        run(bytes, size);
    }
    free(bytes);
}

int main(int count, char **argument)
{
    int first = 1;
    long changes = 0;
    if (count > 2 && !strcmp(argument[1], "-m")) {
        changes = strtol(argument[2], NULL, 10);
        first = 3;
    }
    uint64_t state = 1;
    for (int k = first; k < count; k++) {
        struct file f;
        struct error e = {0};
        if (file_open(argument[k], &f, &e) < 0) {
            fprintf(stderr, "replay: %s\n", e.text);
            return 2;
        }
        run_all(&f, changes, &state);
        file_close(&f);
    }
    return first < count ? 0 : 2;
}
