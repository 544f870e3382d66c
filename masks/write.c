/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/write.h"
#include "masks/base/file.h"
#include "masks/npy.h"
#include "masks/safetensors.h"
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (UINT64_C(1) << 33)

/* The shape of the smallest rank. Returns the rank, 0 with *e set if the file would be too large. */
static uint32_t shape(const struct mask *m, const char *path, uint64_t ret[4], struct error *e)
{
    const uint64_t full[4] = {m->layers, m->heads, m->n, m->n};
    uint64_t places = (uint64_t)m->layers * m->heads, entries = (uint64_t)m->n * m->n;
    if (entries > MAX_BYTES / places) {
        error_set(e, ERROR_INPUT,
                  "%s: %llu x %u x %u booleans are too large for a dense file "
                  "(2^33 bytes); write a .mask",
                  path, (unsigned long long)places, m->n, m->n);
        return 0;
    }
    uint32_t rank = m->layers > 1 ? 4 : m->heads > 1 ? 3 : 2;
    memcpy(ret, full + 4 - rank, rank * sizeof *ret);
    return rank;
}

/* Sets the active entries in bytes[L * H * n * n], which are zero before. */
static void fill(const struct mask *m, uint8_t *bytes)
{
    for (uint32_t l = 0; l < m->layers; l++) {
        for (uint32_t h = 0; h < m->heads; h++) {
            const struct pattern *p = mask_pattern(m, l, h);
            for (uint32_t i = 0; i < m->n; i++, bytes += m->n)
                for (uint64_t r = p->row[i]; r < p->row[i + 1]; r++)
                    memset(bytes + p->run[r].begin, 1, p->run[r].end - p->run[r].begin);
        }
    }
}

static uint64_t count_bytes(const struct mask *m)
{
    return (uint64_t)m->layers * m->heads * m->n * m->n;
}

int mask_write_npy(const struct mask *m, const char *path, struct error *e)
{
    uint64_t dimension[4], size;
    uint32_t rank = shape(m, path, dimension, e);
    if (rank == 0)
        return -1;
    uint8_t *bytes = npy_write("|b1", 1, rank, dimension, NULL, &size);
    fill(m, bytes + size - count_bytes(m));
    int r = file_write(path, bytes, size, e);
    free(bytes);
    return r;
}

int mask_write_safetensors(const struct mask *m, const char *path, struct error *e)
{
    uint64_t dimension[4], size;
    uint32_t rank = shape(m, path, dimension, e);
    if (rank == 0)
        return -1;
    struct safetensors s = {0};
    safetensors_add(&s, "mask", "BOOL", rank, dimension, NULL);
    uint8_t *bytes = safetensors_write(&s, &size);
    safetensors_finish(&s);
    fill(m, bytes + size - count_bytes(m));
    int r = file_write(path, bytes, size, e);
    free(bytes);
    return r;
}
