/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that maskc run writes, f32; tensors have the shapes of their inputs. */
#include "masks/base/folder.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "tools/maskc/run/run.h"
#include <stdlib.h>

static int save(const char *folder, const char *name, uint32_t rank, const uint64_t *shape,
                const float *data, struct error *e)
{
    struct text path = {0};
    uint64_t size = 0;
    uint8_t *bytes = npy_write("<f4", 4, rank, shape, data, &size);
    text_add(&path, "%s/%s.npy", folder, name);
    int code = file_write(text_get(&path), bytes, size, e);
    text_finish(&path);
    free(bytes);
    return code;
}

/* Name in the file of an output tensor, its values, and the given array that has its shape. */
struct output {
    const char *name;
    const double *from;
    const struct npy *like;
};

static int save_tensor(const struct run_inputs *in, const char *folder, struct output x,
                       const uint64_t *row, struct error *e)
{
    const uint64_t width = x.like->shape[x.like->rank - 2] * x.like->shape[x.like->rank - 1];
    float *to = memory_new(x.like->count, sizeof *to);
    for (uint64_t k = 0; k < x.like->count; k++)
        to[k] = (float)x.from[(in->p.packed ? row[k / width] : k / width) * width + k % width];
    int code = save(folder, x.name, x.like->rank, x.like->shape, to, e);
    free(to);
    return code;
}

/* [B, H, N], packed [H, T]. */
static int save_lse(const struct run_inputs *in, const char *folder, const double *from,
                    const uint64_t *row, struct error *e)
{
    uint64_t H = in->p.mask->heads, N = in->p.length, T = in->tokens;
    float *to = memory_new(T * H, sizeof *to);
    for (uint64_t h = 0; h < H; h++)
        for (uint64_t t = 0; t < T; t++) {
            uint64_t b = row[t] / N, i = row[t] % N;
            to[in->p.packed ? h * T + t : (b * H + h) * N + i] =
                (float)from[(b * H + h) * N + i];
        }
    const uint64_t padded[] = {in->p.batch, H, N}, packed[] = {H, T};
    int code = in->p.packed ? save(folder, "lse", 2, packed, to, e)
                            : save(folder, "lse", 3, padded, to, e);
    free(to);
    return code;
}

static int save_bias(const struct run_inputs *in, const char *folder,
                     const struct problem_data *d, bool diagonals, struct error *e)
{
    const uint64_t H = in->p.mask->heads, n = in->p.mask->n, square[] = {H, n, n},
                   lines[] = {H, 2 * n - 1};
    const uint64_t count =
        diagonals ? problem_diagonal_elements(&in->p) : problem_bias_elements(&in->p);
    const double *from = diagonals ? d->d_diagonal : d->d_x;
    float *to = memory_new(count, sizeof *to);
    for (uint64_t k = 0; k < count; k++)
        to[k] = (float)from[k];
    int code = diagonals ? save(folder, "dsoft", 2, lines, to, e)
                         : save(folder, "dsoft", 3, square, to, e);
    free(to);
    return code;
}

static int save_all(const struct run_inputs *in, const char *folder,
                    const struct problem_data *d, const uint64_t *row, bool diagonals,
                    struct error *e)
{
    if (save_tensor(in, folder, (struct output){"out", d->o, &in->query.npy}, row, e) ||
        save_lse(in, folder, d->lse, row, e))
        return -1;
    if (!d->d_q)
        return 0;
    return save_tensor(in, folder, (struct output){"dq", d->d_q, &in->query.npy}, row, e) ||
                   save_tensor(in, folder, (struct output){"dk", d->d_k, &in->key.npy}, row,
                               e) ||
                   save_tensor(in, folder, (struct output){"dv", d->d_v, &in->key.npy}, row,
                               e) ||
                   (d->d_x && save_bias(in, folder, d, diagonals, e))
               ? -1
               : 0;
}

int run_outputs_save(const struct run_inputs *in, const char *folder,
                     const struct problem_data *d, const uint64_t *row, bool diagonals,
                     struct error *e)
{
    struct folder f;
    int r = folder_begin(folder, &f, e);
    if (r == 0)
        r = save_all(in, f.aside, d, row, diagonals, e);
    return folder_end(&f, r, e);
}
