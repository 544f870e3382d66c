/* SPDX-License-Identifier: Apache-2.0 */
/* Orders and coordinates in .npy files. */
#include "masks/base/memory.h"
#include "masks/graph/order.h"
#include "masks/npy.h"
#include <math.h>
#include <stdlib.h>

static int open_array(const char *path, struct file *f, struct npy *a, struct error *e)
{
    if (file_open(path, f, e) < 0)
        return -1;
    if (npy_parse(f->bytes, f->size, path, a, e) == 0)
        return 0;
    file_close(f);
    return -1;
}

int order_read(const char *path, uint32_t n, uint32_t **ret, struct error *e)
{
    struct file f;
    struct npy a;
    if (open_array(path, &f, &a, e))
        return -1;
    uint32_t *order = memory_new(n, sizeof *order);
    bool fits = a.rank == 1 && a.shape[0] == n && (a.type == NPY_INT || a.type == NPY_UINT);
    for (uint32_t p = 0; p < n && fits; p++) {
        double value = npy_get(&a, p);
        fits = value >= 0 && value < n;
        order[p] = fits ? (uint32_t)value : 0;
    }
    file_close(&f);
    if (fits && order_is_permutation(order, n)) {
        *ret = order;
        return 0;
    }
    free(order);
    return error_set(
        e, ERROR_INPUT,
        "%s: no order of this mask; whole numbers [%u] are expected, each of 0..%u "
        "once",
        path, n, n - 1);
}

int order_write(const char *path, const uint32_t *order, uint32_t n, struct error *e)
{
    uint64_t size, shape = n;
    int64_t *wide = memory_new(n, sizeof *wide);
    for (uint32_t p = 0; p < n; p++)
        wide[p] = order[p];
    uint8_t *bytes = npy_write("<i8", sizeof *wide, 1, &shape, wide, &size);
    int r = file_write(path, bytes, size, e);
    free(bytes);
    free(wide);
    return r;
}

int points_read(const char *path, uint32_t n, double **ret, uint32_t *ret_axes, struct error *e)
{
    enum { AXES = 3 };
    struct file f;
    struct npy a;
    if (open_array(path, &f, &a, e))
        return -1;
    uint32_t axes = a.rank == 2 && a.shape[1] <= AXES ? (uint32_t)a.shape[1] : 0;
    bool fits = axes && a.shape[0] == n;
    double *point = memory_new((size_t)n * AXES, sizeof *point);
    for (uint64_t i = 0; i < n && fits; i++)
        for (uint64_t k = 0; k < axes; k++) {
            double x = npy_get(&a, npy_index(&a, (const uint64_t[]){i, k}));
            point[i * axes + k] = x;
            fits = fits && isfinite(x);
        }
    file_close(&f);
    if (fits) {
        *ret = point;
        *ret_axes = axes;
        return 0;
    }
    free(point);
    return error_set(
        e, ERROR_INPUT,
        "%s: no coordinates of this mask; finite numbers [%u, 1 to 3] are expected", path, n);
}
