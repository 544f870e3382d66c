/* SPDX-License-Identifier: Apache-2.0 */
/* The directory at the end of an archive says where each entry is; the header before its bytes is only skipped. */
#include "masks/graph/zip.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>
#if MASKS_ZLIB
#include <zlib.h>
#endif

enum {
    END_BYTES = 22,       /* end of the directory, at least */
    END64_BYTES = 56,     /* its 64-bit form, and ... */
    LOCATOR_BYTES = 20,   /* ... what says where that is */
    DIRECTORY_BYTES = 46, /* an entry of the directory before its name */
    LOCAL_BYTES = 30,     /* what precedes an entry's name and bytes */
    MOST_COMMENT = 65535,
    MOST_RATIO = 1040, /* deflate packs at most 1032 bytes into one */
    ENCRYPTED = 1,
    DEFLATED = 8,
    EXTRA_64 = 1,
};
#define END_MARK       UINT32_C(0x06054b50)
#define END64_MARK     UINT32_C(0x06064b50)
#define LOCATOR_MARK   UINT32_C(0x07064b50)
#define DIRECTORY_MARK UINT32_C(0x02014b50)
#define LOCAL_MARK     UINT32_C(0x04034b50)

/* A little-endian number of 2, 4 or 8 bytes. */
static uint64_t number(const uint8_t *p, int bytes)
{
    uint64_t value = 0;
    while (bytes--)
        value = value << 8 | p[bytes];
    return value;
}

static int damaged(const char *path, const char *what, struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s: not a .npz file that can be read: %s", path, what);
}

/* Position of the end record; `size` where there is none. */
static uint64_t find_end(const uint8_t *bytes, uint64_t size)
{
    uint64_t last = size < END_BYTES ? 0 : size - END_BYTES + 1;
    uint64_t first = last > MOST_COMMENT ? last - MOST_COMMENT : 0;
    for (uint64_t at = last; at-- > first;)
        if (number(bytes + at, 4) == END_MARK &&
            at + END_BYTES + number(bytes + at + 20, 2) == size)
            return at;
    return size;
}

/* Sizes of archives that 32 bits do not hold are in a record of their own. */
static int read_end64(struct zip *z, uint64_t end, struct error *e)
{
    const uint8_t *locator = z->bytes + end - LOCATOR_BYTES;
    if (end < LOCATOR_BYTES + END64_BYTES || number(locator, 4) != LOCATOR_MARK)
        return 0;
    uint64_t at = number(locator + 8, 8);
    if (at > end - LOCATOR_BYTES - END64_BYTES || number(z->bytes + at, 4) != END64_MARK)
        return damaged(z->path, "its 64-bit directory is not where it should be", e);
    z->entries = number(z->bytes + at + 32, 8);
    z->directory = number(z->bytes + at + 48, 8);
    return 0;
}

int zip_parse(const uint8_t *bytes, uint64_t size, const char *path, struct zip *ret,
              struct error *e)
{
    struct zip z = {bytes, size, path, 0, 0};
    uint64_t end = find_end(bytes, size);
    if (end == size)
        return damaged(path, "it does not end as a ZIP archive", e);
    z.entries = number(bytes + end + 10, 2);
    z.directory = number(bytes + end + 16, 4);
    if (read_end64(&z, end, e))
        return -1;
    if (z.directory > end)
        return damaged(path, "its directory is not where it should be", e);
    *ret = z;
    return 0;
}

/* Replaces numbers that are all ones by those of the 64-bit field, in this order. */
static bool read_extra(const uint8_t *extra, uint64_t bytes, uint64_t *value[3])
{
    for (uint64_t at = 0; at + 4 <= bytes;) {
        uint64_t size = number(extra + at + 2, 2), next = at + 4;
        if (size > bytes - next)
            return false;
        for (int k = 0; k < 3 && number(extra + at, 2) == EXTRA_64; k++) {
            if (*value[k] != UINT32_MAX)
                continue;
            if (next + 8 > at + 4 + size)
                return false;
            *value[k] = number(extra + next, 8);
            next += 8;
        }
        at += 4 + size;
    }
    return true;
}

/* The entry whose directory record is at *at, which moves behind it. 1: its name is another. */
static int read_record(const struct zip *z, uint64_t *at, const char *name,
                       struct zip_entry *ret, struct error *e)
{
    if (*at > z->size || z->size - *at < DIRECTORY_BYTES)
        return damaged(z->path, "its directory ends early", e);
    const uint8_t *p = z->bytes + *at;
    uint64_t named = number(p + 28, 2), extra = number(p + 30, 2);
    uint64_t whole = DIRECTORY_BYTES + named + extra + number(p + 32, 2);
    if (number(p, 4) != DIRECTORY_MARK || z->size - *at < whole)
        return damaged(z->path, "its directory is damaged", e);
    *at += whole;
    if (named != strlen(name) || memcmp(p + DIRECTORY_BYTES, name, named))
        return 1;
    uint64_t method = number(p + 10, 2), flags = number(p + 8, 2), local = number(p + 42, 4);
    *ret = (struct zip_entry){0, number(p + 20, 4), number(p + 24, 4),
                              (uint32_t)number(p + 16, 4), method == DEFLATED};
    uint64_t *value[3] = {&ret->size, &ret->packed, &local};
    if (!read_extra(p + DIRECTORY_BYTES + named, extra, value))
        return damaged(z->path, "its directory is damaged", e);
    if ((method && method != DEFLATED) || flags & ENCRYPTED)
        return error_set(
            e, ERROR_INPUT, "%s: %s is %s; entries that are stored or deflated are expected",
            z->path, name, flags & ENCRYPTED ? "encrypted" : "packed by another method");
    ret->at = local;
    return 0;
}

/* Moves entry->at from the local header to the bytes behind it. */
static int skip_local(const struct zip *z, struct zip_entry *entry, struct error *e)
{
    uint64_t local = entry->at;
    if (local > z->size || z->size - local < LOCAL_BYTES ||
        number(z->bytes + local, 4) != LOCAL_MARK)
        return damaged(z->path, "an entry is not where the directory says", e);
    uint64_t before =
        LOCAL_BYTES + number(z->bytes + local + 26, 2) + number(z->bytes + local + 28, 2);
    if (z->size - local < before || z->size - local - before < entry->packed)
        return damaged(z->path, "an entry ends behind the file", e);
    if (entry->deflated ? entry->size / MOST_RATIO > entry->packed
                        : entry->size != entry->packed)
        return damaged(z->path, "the sizes of an entry contradict each other", e);
    entry->at = local + before;
    return 0;
}

int zip_find(const struct zip *z, const char *name, struct zip_entry *ret, struct error *e)
{
    struct zip_entry entry = {0};
    uint64_t at = z->directory;
    bool found = false;
    for (uint64_t k = 0; k < z->entries; k++) {
        struct zip_entry next;
        int r = read_record(z, &at, name, &next, e);
        if (r < 0)
            return -1;
        if (r == 0)
            entry = next;
        found = found || r == 0;
    }
    if (!found)
        return 1;
    if (skip_local(z, &entry, e))
        return -1;
    *ret = entry;
    return 0;
}

/* --- streams --------------------------------------------------------------------------------- */

#if MASKS_ZLIB

static uint32_t add_crc(uint32_t crc, const uint8_t *bytes, uint64_t size)
{
    return (uint32_t)crc32_z(crc, bytes, size);
}

static int open_inflater(struct zip_stream *s, struct error *e)
{
    z_stream *z = memory_new(1, sizeof *z);
    s->inflater = z;
    return inflateInit2(z, -MAX_WBITS) == Z_OK ? 0 : damaged(s->name, "zlib does not start", e);
}

static int inflate_bytes(struct zip_stream *s, uint8_t *to, uint64_t bytes, struct error *e)
{
    enum { MOST = 1 << 30 };
    z_stream *z = s->inflater;
    while (bytes) {
        uInt give = s->packed < MOST ? (uInt)s->packed : MOST,
             want = bytes < MOST ? (uInt)bytes : MOST;
        z->next_in = (Bytef *)s->at; /* zlib does not write there */
        z->avail_in = give;
        z->next_out = to;
        z->avail_out = want;
        int code = inflate(z, Z_NO_FLUSH);
        s->at += give - z->avail_in;
        s->packed -= give - z->avail_in;
        to += want - z->avail_out;
        bytes -= want - z->avail_out;
        if ((code != Z_OK && code != Z_STREAM_END) || (code == Z_STREAM_END && bytes) ||
            (z->avail_out == want && z->avail_in == give))
            return damaged(s->name, "it does not unpack", e);
    }
    return 0;
}

void zip_stream_close(struct zip_stream *s)
{
    if (s->inflater)
        inflateEnd(s->inflater);
    free(s->inflater);
    *s = (struct zip_stream){0};
}

#else

static uint32_t add_crc(uint32_t crc, const uint8_t *bytes, uint64_t size)
{
    crc = ~crc;
    for (uint64_t k = 0; k < size; k++) {
        crc ^= bytes[k];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~crc;
}

static int open_inflater(struct zip_stream *s, struct error *e)
{
    return error_set(e, ERROR_UNAVAILABLE,
                     "%s: deflated, and this build has no zlib: scipy.sparse.save_npz(.., "
                     "compressed=False) stores it",
                     s->name);
}

static int inflate_bytes(struct zip_stream *s, uint8_t *to, uint64_t bytes, struct error *e)
{
    (void)to, (void)bytes;
    return damaged(s->name, "it does not unpack", e); /* open_inflater() refused it before */
}

void zip_stream_close(struct zip_stream *s)
{
    *s = (struct zip_stream){0};
}

#endif

int zip_stream_open(const struct zip *z, const struct zip_entry *entry, const char *name,
                    struct zip_stream *ret, struct error *e)
{
    *ret = (struct zip_stream){.name = name,
                               .at = z->bytes + entry->at,
                               .packed = entry->packed,
                               .left = entry->size,
                               .crc_expected = entry->crc};
    if (!entry->deflated || !open_inflater(ret, e))
        return 0;
    zip_stream_close(ret);
    return -1;
}

int zip_stream_read(struct zip_stream *s, void *to, uint64_t bytes, struct error *e)
{
    if (bytes > s->left)
        return damaged(s->name, "it ends early", e);
    if (s->inflater && inflate_bytes(s, to, bytes, e))
        return -1;
    if (!s->inflater && bytes) {
        memcpy(to, s->at, bytes);
        s->at += bytes;
    }
    s->left -= bytes;
    s->crc = add_crc(s->crc, to, bytes);
    if (!s->left && s->crc != s->crc_expected)
        return damaged(s->name, "its checksum is wrong", e);
    return 0;
}
