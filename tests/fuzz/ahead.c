/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels compiled ahead: a file as it is, and with its checksum made right; of what is let through every code is looked
   up. */
#include "runtime/ahead/ahead.h"
#include "masks/base/memory.h"
#include "runtime/ahead/layout.h"
#include "tests/fuzz/check.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static void look_up(const struct ahead *a)
{
    const uint8_t *at =
        a->bytes + sizeof(struct ahead_head) + a->frames * sizeof(struct ahead_frame);
    for (uint32_t k = 0; k < a->codes; k++, at += sizeof(struct ahead_entry)) {
        struct ahead_entry entry;
        struct error e = {0};
        uint8_t *bytes;
        uint64_t size;
        memcpy(&entry, at, sizeof entry);
        if (ahead_get(a, entry.key, &bytes, &size, &e)) {
            if (size != entry.size)
                abort();
            free(bytes);
        } else {
            check_refusal(&e);
        }
    }
}

static void check_read(const uint8_t *bytes, size_t size)
{
    struct error e = {0};
    struct ahead a;
    if (ahead_read(bytes, size, "FUZZ", &a, &e))
        check_refusal(&e);
    else
        look_up(&a);
}

/* With the checksum that head and tables ask for, where they are in the file. */
static void sign(uint8_t *bytes, size_t size)
{
    struct ahead_head h;
    if (size < sizeof h)
        return;
    memcpy(&h, bytes, sizeof h);
    const uint64_t tables = sizeof h + (uint64_t)h.frames * sizeof(struct ahead_frame) +
                            (uint64_t)h.codes * sizeof(struct ahead_entry);
    if (tables > size)
        return;
    h.checksum = 0;
    memcpy(bytes, &h, sizeof h);
    h.checksum = XXH3_64bits(bytes, tables);
    memcpy(bytes, &h, sizeof h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_read(data, size);
    uint8_t *copy = memory_copy(data, size);
    sign(copy, size);
    check_read(copy, size);
    free(copy);
    return 0;
}
