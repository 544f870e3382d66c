/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices in .npz files, and neighbourhoods of two steps in what they hold. Each file is read as it is, and again with
   the checksums of what its arrays became. */
#include "masks/base/memory.h"
#include "masks/graph/graph.h"
#include "tests/fuzz/check.h"
#include <stdlib.h>
#include <string.h>

enum { RECORD_BYTES = 46, LOCAL_BYTES = 30 };

static uint64_t number(const uint8_t *p, int bytes)
{
    uint64_t value = 0;
    while (bytes--)
        value = value << 8 | p[bytes];
    return value;
}

static uint32_t checksum(const uint8_t *bytes, uint64_t size)
{
    uint32_t crc = UINT32_MAX;
    for (uint64_t k = 0; k < size; k++) {
        crc ^= bytes[k];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~crc;
}

/* Writes the checksum of a stored entry, or of the block without compression of a deflated one, into its record. */
static void sign(uint8_t *bytes, size_t size, uint8_t *record)
{
    uint64_t at = number(record + 42, 4), packed = number(record + 20, 4);
    if (at + LOCAL_BYTES > size)
        return;
    at += LOCAL_BYTES + number(bytes + at + 26, 2) + number(bytes + at + 28, 2);
    uint64_t before = record[10] ? 5 : 0;
    if (packed < before || at > size || size - at < packed)
        return;
    uint32_t crc = checksum(bytes + at + before, packed - before);
    memcpy(record + 16, &crc, sizeof crc);
}

static void read(const uint8_t *data, size_t size)
{
    struct error e = {0};
    struct mask *m = sparse_parse(data, size, "FUZZ", &e);
    if (!m) {
        if (e.kind != ERROR_UNAVAILABLE) /* deflated, without zlib */
            check_refusal(&e);
        return;
    }
    struct mask *hops = m->n <= 4096 ? mask_hops(m, 2, &e) : NULL;
    if (!hops && m->n <= 4096)
        abort();
    if (hops)
        check_mask(hops);
    check_mask(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read(data, size);
    uint8_t *copy = memory_copy(data, size);
    for (size_t at = 0; at + RECORD_BYTES <= size; at++)
        if (number(copy + at, 4) == 0x02014b50)
            sign(copy, size, copy + at);
    read(copy, size);
    free(copy);
    return 0;
}
