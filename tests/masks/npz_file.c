/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/masks/npz_file.h"
#include "masks/base/memory.h"
#include "masks/npy.h"
#include <stdlib.h>
#include <string.h>

static void add_number(struct text *t, uint64_t value, int bytes)
{
    for (; bytes; bytes--, value >>= 8)
        text_append(t, (const char[]){(char)value}, 1);
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

/* Fields common to the local header and the directory: version to lengths of name and extra field. */
static void add_facts(struct text *t, bool deflated, uint32_t crc, uint64_t packed,
                      uint64_t size, uint64_t name)
{
    add_number(t, 20, 2);
    add_number(t, 0, 2);
    add_number(t, deflated ? 8 : 0, 2);
    add_number(t, 0x21 << 16, 4);
    add_number(t, crc, 4);
    add_number(t, packed, 4);
    add_number(t, size, 4);
    add_number(t, name, 2);
    add_number(t, 0, 2);
}

void npz_add(struct npz_file *f, const char *name, const char *descr, uint32_t rank,
             const uint64_t *shape, const void *data)
{
    enum { BLOCK_BYTES = 5 };
    uint64_t size, at = f->bytes.length, named = strlen(name) + 4;
    uint32_t item = (uint32_t)strtoul(descr + 2, NULL, 10);
    uint8_t *array = npy_write(descr, item, rank, shape, data, &size);
    bool deflated = f->deflated && size < UINT16_MAX;
    uint32_t crc = checksum(array, size);
    uint64_t packed = deflated ? size + BLOCK_BYTES : size;
    add_number(&f->bytes, 0x04034b50, 4);
    add_facts(&f->bytes, deflated, crc, packed, size, named);
    text_add(&f->bytes, "%s.npy", name);
    if (deflated) {
        add_number(&f->bytes, 1, 1);
        add_number(&f->bytes, size, 2);
        add_number(&f->bytes, ~size, 2);
    }
    text_append(&f->bytes, (const char *)array, size);
    add_number(&f->directory, 0x02014b50, 4);
    add_number(&f->directory, 20, 2);
    add_facts(&f->directory, deflated, crc, packed, size, named);
    add_number(&f->directory, 0, 8); /* comment, disk, attributes */
    add_number(&f->directory, 0, 2);
    add_number(&f->directory, at, 4);
    text_add(&f->directory, "%s.npy", name);
    f->entries++;
    free(array);
}

void npz_end(struct npz_file *f)
{
    uint64_t at = f->bytes.length, size = f->directory.length;
    text_append(&f->bytes, text_get(&f->directory), size);
    add_number(&f->bytes, 0x06054b50, 4);
    add_number(&f->bytes, 0, 4);
    add_number(&f->bytes, f->entries, 2);
    add_number(&f->bytes, f->entries, 2);
    add_number(&f->bytes, size, 4);
    add_number(&f->bytes, at, 4);
    add_number(&f->bytes, 0, 2);
}

void npz_finish(struct npz_file *f)
{
    text_finish(&f->bytes);
    text_finish(&f->directory);
}

void npz_add_whole(struct npz_file *f, const char *name, bool wide, uint64_t count,
                   const int64_t *value)
{
    int32_t *narrow = memory_new(count, sizeof *narrow);
    for (uint64_t k = 0; k < count; k++)
        narrow[k] = (int32_t)value[k];
    npz_add(f, name, wide ? "<i8" : "<i4", 1, &count,
            wide ? (const void *)value : (const void *)narrow);
    free(narrow);
}

void npz_add_kind(struct npz_file *f, const char *format, int64_t rows, int64_t columns)
{
    npz_add(f, "format", "|S3", 0, NULL, format);
    npz_add_whole(f, "shape", true, 2, (const int64_t[]){rows, columns});
}
