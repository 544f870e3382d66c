/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices as scipy.sparse.save_npz writes them. Rows are made one after the other: memory is needed for
   the mask (csc: two) and, of coo, a number an entry. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/graph/graph.h"
#include "masks/graph/npz.h"
#include <stdlib.h>
#include <string.h>

struct reader {
    struct zip zip;
    char format[16];
    uint32_t n;
    struct error *e;
    struct pattern *pattern; /* rows so far; of csc those of the transpose */
    /* The entries of a row, or of a row of blocks. */
    uint64_t *whole;
    uint8_t *active;
    uint32_t *column;
    uint64_t capacity;
};

static int refuse(const struct reader *r, const char *what)
{
    return error_set(r->e, ERROR_INPUT, "%s: %s", r->zip.path, what);
}

static void reserve(struct reader *r, uint64_t entries)
{
    if (entries <= r->capacity)
        return;
    r->capacity = entries < 2 * r->capacity ? 2 * r->capacity : entries;
    r->whole = memory_resize(r->whole, r->capacity, sizeof *r->whole);
    r->active = memory_resize(r->active, r->capacity, sizeof *r->active);
    r->column = memory_resize(r->column, r->capacity, sizeof *r->column);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The next row from its columns in any order, each perhaps several times. */
static int add_row(struct reader *r, uint32_t i, uint32_t *column, uint64_t count)
{
    bool sorted = true, fits = true;
    for (uint64_t k = 1; k < count && sorted; k++)
        sorted = column[k - 1] <= column[k];
    if (!sorted)
        qsort(column, count, sizeof *column, compare);
    for (uint64_t k = 0; k < count && fits; k++)
        if (!k || column[k] != column[k - 1])
            fits = pattern_add(r->pattern, i, column[k], column[k] + 1);
    pattern_row(r->pattern, i);
    return fits ? 0 : refuse(r, "more than 2^31 runs of active keys");
}

/* One-dimensional, of whole numbers or of data; `count` UINT64_MAX: any number. */
static int open_list(struct reader *r, const char *name, uint64_t count, struct npz_array *ret)
{
    if (npz_open(&r->zip, name, ret, r->e))
        return -1;
    if (ret->npy.rank == 1 && (count == UINT64_MAX || ret->npy.count == count) &&
        ret->npy.count <= PATTERN_MAX_RUNS)
        return 0;
    error_set(r->e, ERROR_INPUT, "%s: %u dimensions, %llu elements do not fit the other arrays",
              ret->name, ret->npy.rank, (unsigned long long)ret->npy.count);
    npz_close(ret);
    return -1;
}

/* --- csr, csc, bsr --------------------------------------------------------------------------- */

/* indptr: [rows + 1], ascending from 0, at most `entries`. Null with the error set. */
static uint64_t *read_pointers(struct reader *r, uint32_t rows, uint64_t entries)
{
    struct npz_array a;
    if (open_list(r, "indptr", (uint64_t)rows + 1, &a))
        return NULL;
    uint64_t *pointer = memory_new((size_t)rows + 1, sizeof *pointer);
    int result = npz_read_whole(&a, pointer, (uint64_t)rows + 1, r->e);
    npz_close(&a);
    bool ascends = pointer[0] == 0 && pointer[rows] <= entries;
    for (uint32_t i = 0; i < rows; i++)
        ascends = ascends && pointer[i] <= pointer[i + 1];
    if (result == 0 && !ascends)
        result = refuse(r, "indptr does not ascend from 0 to the number of entries");
    if (result == 0)
        return pointer;
    free(pointer);
    return NULL;
}

struct blocks_of {
    struct npz_array indices, data;
    uint64_t *pointer;
    uint32_t height, width; /* of a block; 1, 1: csr */
};

/* The rows of block row `b`. */
static int add_block_row(struct reader *r, struct blocks_of *s, uint32_t b)
{
    uint64_t count = s->pointer[b + 1] - s->pointer[b], cells = (uint64_t)s->height * s->width;
    reserve(r, count * cells);
    if (npz_read_whole(&s->indices, r->whole, count, r->e) ||
        npz_read_active(&s->data, r->active, count * cells, r->e))
        return -1;
    for (uint64_t k = 0; k < count; k++)
        if (r->whole[k] >= r->n / s->width)
            return refuse(r, "indices has a number that is no column");
    for (uint32_t y = 0; y < s->height; y++) {
        uint64_t found = 0;
        for (uint64_t k = 0; k < count; k++)
            for (uint32_t x = 0; x < s->width; x++)
                if (r->active[k * cells + (uint64_t)y * s->width + x])
                    r->column[found++] = (uint32_t)r->whole[k] * s->width + x;
        if (add_row(r, b * s->height + y, r->column, found))
            return -1;
    }
    return 0;
}

static int open_blocks(struct reader *r, bool is_bsr, struct blocks_of *s)
{
    s->height = s->width = 1;
    if (open_list(r, "indices", UINT64_MAX, &s->indices))
        return -1;
    if (!is_bsr)
        return open_list(r, "data", s->indices.npy.count, &s->data);
    if (npz_open(&r->zip, "data", &s->data, r->e))
        return -1;
    const struct npy *a = &s->data.npy;
    bool fits = a->rank == 3 && !a->fortran && a->shape[0] == s->indices.npy.count &&
                a->count <= PATTERN_MAX_RUNS && a->shape[1] && a->shape[2] &&
                a->shape[1] <= r->n && a->shape[2] <= r->n && r->n % a->shape[1] == 0 &&
                r->n % a->shape[2] == 0;
    if (!fits)
        return refuse(r, "data is no list of blocks that divide the matrix, in C order");
    s->height = (uint32_t)a->shape[1];
    s->width = (uint32_t)a->shape[2];
    return 0;
}

static int read_rows(struct reader *r, bool is_bsr)
{
    struct blocks_of s = {0};
    int result = open_blocks(r, is_bsr, &s);
    uint32_t rows = result ? 0 : r->n / s.height;
    if (result == 0 && !(s.pointer = read_pointers(r, rows, s.indices.npy.count)))
        result = -1;
    for (uint32_t b = 0; b < rows && result == 0; b++)
        result = add_block_row(r, &s, b);
    npz_close(&s.indices);
    npz_close(&s.data);
    free(s.pointer);
    return result;
}

/* --- coo ------------------------------------------------------------------------------------- */

/* Rows (axis 0) or columns: arrays of their own, or together [2, entries]. */
static int open_axis(struct reader *r, int axis, struct npz_array *ret)
{
    if (npz_has(&r->zip, "row"))
        return open_list(r, axis ? "col" : "row", UINT64_MAX, ret);
    if (npz_open(&r->zip, "coords", ret, r->e))
        return -1;
    const struct npy *a = &ret->npy;
    int result = 0;
    if (a->rank != 2 || a->shape[0] != 2 || a->fortran || a->count > 2 * PATTERN_MAX_RUNS)
        result = refuse(r, "coords is no array [2, entries] in C order");
    for (uint64_t skip = result ? 0 : axis * a->shape[1]; skip && result == 0;) {
        uint64_t next = skip < r->capacity ? skip : r->capacity;
        result = npz_read_whole(ret, r->whole, next, r->e);
        skip -= next;
    }
    ret->npy.count /= 2;
    if (result)
        npz_close(ret);
    return result;
}

/* One pass over the entries: without `column` it counts those of each row in at[row + 1], else it puts each at at[row]++. */
static int pass_entries(struct reader *r, uint64_t *at, uint32_t *column)
{
    enum { PIECE = NPZ_PIECE };
    struct npz_array row = {0}, col = {0}, data = {0};
    uint64_t *columns = memory_new(PIECE, sizeof *columns);
    reserve(r, PIECE);
    int result = open_axis(r, 0, &row) || open_axis(r, 1, &col) ||
                 open_list(r, "data", row.npy.count, &data);
    if (result == 0 && col.npy.count != row.npy.count)
        result = refuse(r, "row and col have different lengths");
    for (uint64_t done = 0; result == 0 && done < row.npy.count; done += PIECE) {
        uint64_t next = row.npy.count - done < PIECE ? row.npy.count - done : PIECE;
        result = npz_read_whole(&row, r->whole, next, r->e) ||
                 npz_read_whole(&col, columns, next, r->e) ||
                 npz_read_active(&data, r->active, next, r->e);
        for (uint64_t k = 0; result == 0 && k < next; k++) {
            if (r->whole[k] >= r->n || columns[k] >= r->n)
                result = refuse(r, "row or col has a number that is no row or column");
            else if (r->active[k] && column)
                column[at[r->whole[k]]++] = (uint32_t)columns[k];
            else if (r->active[k])
                at[r->whole[k] + 1]++;
        }
    }
    npz_close(&row);
    npz_close(&col);
    npz_close(&data);
    free(columns);
    return result ? -1 : 0;
}

static int read_entries(struct reader *r)
{
    uint64_t *at = memory_new((size_t)r->n + 1, sizeof *at);
    uint32_t *column = NULL;
    int result = pass_entries(r, at, NULL);
    for (uint32_t i = 0; i < r->n; i++)
        at[i + 1] += at[i];
    if (result == 0) {
        column = memory_new(at[r->n], sizeof *column);
        result = pass_entries(r, at, column);
    }
    /* at[i] is now the end of row i. */
    for (uint32_t i = 0; i < r->n && result == 0; i++) {
        uint64_t begin = i ? at[i - 1] : 0;
        result = add_row(r, i, column + begin, at[i] - begin);
    }
    free(column);
    free(at);
    return result;
}

/* --------------------------------------------------------------------------------------------- */

static int read_size(struct reader *r)
{
    struct npz_array a;
    uint64_t shape[2];
    if (open_list(r, "shape", 2, &a))
        return -1;
    int result = npz_read_whole(&a, shape, 2, r->e);
    npz_close(&a);
    if (result)
        return -1;
    if (shape[0] > INT64_MAX || shape[1] > INT64_MAX)
        return refuse(r, "shape has a number below 0 or above 2^63 - 1");
    if (shape[0] != shape[1])
        return error_set(r->e, ERROR_INPUT, "%s: %llu x %llu is not square, [n,n] is expected",
                         r->zip.path, (unsigned long long)shape[0],
                         (unsigned long long)shape[1]);
    if (shape[0] < 1 || shape[0] > PATTERN_MAX_N)
        return error_set(r->e, ERROR_INPUT, "%s: length %llu, 1..%d is expected", r->zip.path,
                         (unsigned long long)shape[0], PATTERN_MAX_N);
    r->n = (uint32_t)shape[0];
    r->pattern = pattern_new(r->n);
    return 0;
}

static int read_format(struct reader *r)
{
    struct npz_array a;
    if (npz_open(&r->zip, "format", &a, r->e))
        return -1;
    int result = npz_read_text(&a, r->format, r->e);
    npz_close(&a);
    return result;
}

static int read_matrix(struct reader *r)
{
    const char *format = r->format;
    if (read_format(r) || read_size(r))
        return -1;
    if (!strcmp(format, "coo"))
        return read_entries(r);
    if (!strcmp(format, "csr") || !strcmp(format, "csc") || !strcmp(format, "bsr"))
        return read_rows(r, format[0] == 'b');
    return error_set(
        r->e, ERROR_INPUT,
        "%s: format '%s'; csr, csc, coo or bsr is expected, as matrix.tocsr() gives",
        r->zip.path, format);
}

/* The finished pattern, of csc transposed; null with the error set. */
static struct pattern *finish(struct reader *r)
{
    struct pattern *p = pattern_finish(r->pattern);
    r->pattern = NULL;
    if (strcmp(r->format, "csc") != 0)
        return p;
    struct pattern *t = pattern_transpose(p, r->e);
    pattern_destroy(p);
    return t;
}

struct mask *sparse_parse(const uint8_t *bytes, uint64_t size, const char *name,
                          struct error *e)
{
    struct reader r = {.e = e};
    if (zip_parse(bytes, size, name, &r.zip, e))
        return NULL;
    struct pattern *p = read_matrix(&r) == 0 ? finish(&r) : NULL;
    pattern_destroy(r.pattern);
    free(r.whole);
    free(r.active);
    free(r.column);
    return p ? mask_new(1, 1, &p, name) : NULL;
}

struct mask *sparse_read(const char *path, struct error *e)
{
    struct file f;
    if (file_open(path, &f, e) < 0)
        return NULL;
    struct mask *m = sparse_parse(f.bytes, f.size, path, e);
    file_close(&f);
    return m;
}
