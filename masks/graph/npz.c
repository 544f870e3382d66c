/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/graph/npz.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <stdlib.h>
#include <string.h>

enum { START_BYTES = 12, MOST_HEADER = 1 << 16 };

/* numpy.savez appends the suffix to each name. */
static int find(const struct zip *z, const char *name, struct zip_entry *ret, struct error *e)
{
    struct text file = {0};
    text_add(&file, "%s.npy", name);
    int r = zip_find(z, text_get(&file), ret, e);
    text_finish(&file);
    return r;
}

bool npz_has(const struct zip *z, const char *name)
{
    struct zip_entry entry;
    return find(z, name, &entry, NULL) == 0;
}

static int read_header(struct npz_array *a, uint64_t size, struct error *e)
{
    uint8_t *header = memory_new(MOST_HEADER, 1);
    uint64_t bytes = 0;
    int r = size < START_BYTES ? -1 : zip_stream_read(&a->stream, header, START_BYTES, e);
    if (r == 0)
        bytes = npy_header_bytes(header, START_BYTES);
    if (size < START_BYTES ||
        (r == 0 && (bytes < START_BYTES || bytes > MOST_HEADER || bytes > size)))
        r = error_set(e, ERROR_INPUT, "%s: no .npy array", a->name);
    if (r == 0)
        r = zip_stream_read(&a->stream, header + START_BYTES, bytes - START_BYTES, e);
    if (r == 0)
        r = npy_parse_any(header, size, a->name, &a->npy, e);
    if (r == 0 && a->npy.item_bytes > NPZ_MOST_ITEM)
        r = error_set(e, ERROR_INPUT, "%s: elements of %u bytes", a->name, a->npy.item_bytes);
    a->npy.data = NULL;
    free(header);
    return r;
}

int npz_open(const struct zip *z, const char *name, struct npz_array *ret, struct error *e)
{
    struct npz_array a = {0};
    struct zip_entry entry;
    int r = find(z, name, &entry, e);
    if (r > 0)
        return error_set(
            e, ERROR_INPUT,
            "%s: there is no array '%s' in it; what scipy.sparse.save_npz writes is "
            "expected; a dense mask belongs into a .npy file (numpy.save)",
            z->path, name);
    if (r < 0)
        return -1;
    struct text title = {0};
    text_add(&title, "%s: %s", z->path, name);
    a.name = text_take(&title);
    a.piece = memory_new(NPZ_PIECE, NPZ_MOST_ITEM);
    r = zip_stream_open(z, &entry, a.name, &a.stream, e);
    if (r == 0)
        r = read_header(&a, entry.size, e);
    if (r == 0)
        *ret = a;
    else
        npz_close(&a);
    return r;
}

void npz_close(struct npz_array *a)
{
    zip_stream_close(&a->stream);
    free(a->name);
    free(a->piece);
    *a = (struct npz_array){0};
}

static uint64_t whole(const struct npy *a, const uint8_t *p)
{
    uint64_t bits = 0;
    memcpy(&bits, p, a->item_bytes);
    uint32_t spare = 64 - 8 * a->item_bytes;
    int64_t value = a->type == NPY_INT ? (int64_t)(bits << spare) >> spare : (int64_t)bits;
    return value < 0 ? UINT64_MAX : (uint64_t)value;
}

int npz_read_whole(struct npz_array *a, uint64_t *to, uint64_t count, struct error *e)
{
    uint32_t item = a->npy.item_bytes;
    if (a->npy.type != NPY_INT && a->npy.type != NPY_UINT)
        return error_set(e, ERROR_INPUT, "%s: whole numbers are expected", a->name);
    for (uint64_t done = 0; done < count;) {
        uint64_t next = count - done < NPZ_PIECE ? count - done : NPZ_PIECE;
        if (zip_stream_read(&a->stream, a->piece, next * item, e))
            return -1;
        for (uint64_t k = 0; k < next; k++)
            to[done + k] = whole(&a->npy, a->piece + k * item);
        done += next;
    }
    return 0;
}

/* True if a number of `bytes` bytes is neither 0 nor -0; of a long double's 16 bytes 10 count. */
static bool is_active(const uint8_t *p, uint32_t bytes, bool has_sign)
{
    uint32_t last = (bytes == 16 ? 10 : bytes) - 1;
    uint8_t any = has_sign ? p[last] & 0x7f : p[last];
    for (uint32_t k = 0; k < last; k++)
        any |= p[k];
    return any;
}

int npz_read_active(struct npz_array *a, uint8_t *to, uint64_t count, struct error *e)
{
    uint32_t item = a->npy.item_bytes, parts = a->npy.type == NPY_COMPLEX ? 2 : 1;
    bool has_sign = a->npy.type == NPY_FLOAT || a->npy.type == NPY_COMPLEX;
    if (a->npy.type == NPY_BYTES || a->npy.type == NPY_TEXT)
        return error_set(e, ERROR_INPUT, "%s: numbers or booleans are expected", a->name);
    for (uint64_t done = 0; done < count;) {
        uint64_t next = count - done < NPZ_PIECE ? count - done : NPZ_PIECE;
        if (zip_stream_read(&a->stream, a->piece, next * item, e))
            return -1;
        for (uint64_t k = 0; k < next; k++) {
            const uint8_t *p = a->piece + k * item;
            to[done + k] = is_active(p, item / parts, has_sign) ||
                           (parts == 2 && is_active(p + item / 2, item / 2, has_sign));
        }
        done += next;
    }
    return 0;
}

int npz_read_text(struct npz_array *a, char ret[16], struct error *e)
{
    uint32_t step = a->npy.type == NPY_TEXT ? 4 : 1, item = a->npy.item_bytes;
    if ((a->npy.type != NPY_TEXT && a->npy.type != NPY_BYTES) || a->npy.count != 1 ||
        item / step > 15)
        return error_set(e, ERROR_INPUT, "%s: a short text is expected", a->name);
    if (zip_stream_read(&a->stream, a->piece, item, e))
        return -1;
    memset(ret, 0, 16);
    for (uint32_t k = 0; k < item / step; k++)
        ret[k] = (char)a->piece[k * step];
    return 0;
}
