/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a kernel on a problem the way a careful caller would, and a hostile one: buffers start as NaN,
   guards of NaN stand before and after each, padded rows hold NaN. A forbidden read is a NaN in a
   result, a write outside a buffer shows in its guards. */
#include "masks/base/memory.h"
#include "tools/reference/trial.h"
#include <stdlib.h>
#include <string.h>

/* f32, whatever the launch's type. */
static int make_bias(struct trial *l, const struct problem_data *d, struct error *e)
{
    uint64_t size = problem_bias_elements(l->p), diagonal = problem_diagonal_elements(l->p);
    if (!size)
        return 0;
    if (guarded_make(l->k, &l->bias, 4 * size, e))
        return -1;
    for (uint64_t k = 0; k < size; k++)
        dtype_encode(ABI_F32, d->x[k], l->bias.host + GUARD + 4 * k);
    if (guarded_upload(l->k, &l->bias, e))
        return -1;
    if (!l->backward)
        return 0;
    return guarded_make(l->k, &l->d_bias, 4 * size, e) || guarded_upload(l->k, &l->d_bias, e) ||
                   guarded_make(l->k, &l->d_diagonal, 4 * diagonal, e) ||
                   guarded_upload(l->k, &l->d_diagonal, e)
               ? -1
               : 0;
}

static float *floats_of(const struct guarded *b)
{
    return b->device ? (float *)(void *)(b->device + GUARD) : NULL;
}

/* Brings back and reads one; what the launch does not have stays as it is. */
static int fetch_bias(const struct trial *l, struct guarded *b, const char *name, double **to,
                      struct error *e)
{
    if (!b->host)
        return 0;
    if (guarded_download(l->k, b, name, e))
        return -1;
    free(*to);
    *to = memory_new(b->size / 4, sizeof **to);
    for (uint64_t k = 0; k < b->size / 4; k++)
        (*to)[k] = dtype_decode(ABI_F32, b->host + GUARD + 4 * k);
    return 0;
}

/* An array of the launch; null: none. */
static int make_numbers(struct trial *l, struct guarded *b, const void *numbers, uint64_t count,
                        struct error *e)
{
    if (!numbers)
        return 0;
    if (guarded_make(l->k, b, count * sizeof(int32_t), e))
        return -1;
    memcpy(b->host + GUARD, numbers, count * sizeof(int32_t));
    return guarded_upload(l->k, b, e);
}

/* Offsets, and the buffers that the layout needs (a fused one only once). */
static int make_buffers(struct trial *l, const struct problem_data *d, struct error *e)
{
    const struct problem *p = l->p;
    const double *input[TENSORS] = {[Q] = d->q, [K] = d->k, [V] = d->v, [D_O] = d->d_o};
    for (int t = 0; t < (l->backward ? TENSORS : D_O); t++) {
        if (l->tensor[t].buffer != (uint32_t)t)
            continue;
        uint64_t elements = 0; /* of all that share the buffer */
        for (int x = 0; x < TENSORS; x++)
            elements += l->tensor[x].buffer == (uint32_t)t ? trial_elements(l, x) : 0;
        if (guarded_make(l->k, &l->buffer[t], elements * dtype_bytes(p->dtype), e))
            return -1;
    }
    for (int t = 0; t < (l->backward ? TENSORS : D_O); t++)
        if (input[t])
            trial_write_tensor(l, t, input[t]);
    for (int t = 0; t < TENSORS; t++)
        if (l->buffer[t].host && guarded_upload(l->k, &l->buffer[t], e))
            return -1;
    if (guarded_make(l->k, &l->lse, trial_tokens(l) * p->mask->heads * 4, e) ||
        guarded_upload(l->k, &l->lse, e))
        return -1;
    return make_numbers(l, &l->lengths, p->packed ? l->first : p->lengths, p->batch + p->packed,
                        e) ||
                   make_numbers(l, &l->starts, p->starts, p->batch, e) ||
                   make_numbers(l, &l->key_lengths, p->key_lengths, p->batch, e) ||
                   make_numbers(l, &l->samples, p->samples, p->batch, e)
               ? -1
               : 0;
}

static struct maskc_tensor tensor_of(const struct trial *l, int t)
{
    const struct tensor *x = &l->tensor[t];
    uint8_t *data = l->buffer[x->buffer].device;
    return (struct maskc_tensor){data ? data + GUARD + x->base * dtype_bytes(l->p->dtype)
                                      : NULL,
                                 x->batch, x->row, x->head};
}

static struct maskc_launch describe(const struct trial *l, enum maskc_pass pass)
{
    const struct problem *p = l->p;
    void *numbers = l->lengths.device ? l->lengths.device + GUARD : NULL;
    return (struct maskc_launch){
        .struct_size = sizeof(struct maskc_launch),
        .pass = pass,
        .batch = p->batch,
        .length = p->length,
        .layer = p->layer,
        .scale = (float)p->scale,
        .flags = p->scale_given ? MASKC_SCALE_GIVEN : 0,
        .lengths = p->packed ? NULL : numbers,
        .offsets = p->packed ? numbers : NULL,
        .tokens = p->packed ? trial_tokens(l) : 0,
        .dropout = (float)p->dropout,
        .seed = p->seed,
        .samples = l->samples.device ? (void *)(l->samples.device + GUARD) : NULL,
        .query = tensor_of(l, Q),
        .key = tensor_of(l, K),
        .value = tensor_of(l, V),
        .out = tensor_of(l, O),
        .grad_out = tensor_of(l, D_O),
        .grad_query = tensor_of(l, D_Q),
        .grad_key = tensor_of(l, D_K),
        .grad_value = tensor_of(l, D_V),
        .lse = floats_of(&l->lse),
        .soft = floats_of(&l->bias),
        .grad_soft = floats_of(&l->d_bias),
        .grad_soft_diagonals = floats_of(&l->d_diagonal),
        .threads = l->threads,
        .starts = l->starts.device ? (void *)(l->starts.device + GUARD) : NULL,
        .key_length = p->key_length,
        .key_lengths = l->key_lengths.device ? (void *)(l->key_lengths.device + GUARD) : NULL,
    };
}

static int make_workspace(struct trial *l, enum maskc_pass pass, struct error *e)
{
    struct maskc_launch m = describe(l, pass);
    struct guarded *w = &l->workspace[pass];
    return guarded_make(l->k, w, maskc_workspace_bytes(l->k, &m), e) ||
                   guarded_upload(l->k, w, e)
               ? -1
               : 0;
}

int trial_run(struct trial *l, bool backward, struct error *e)
{
    enum maskc_pass pass = backward ? MASKC_BACKWARD : MASKC_FORWARD;
    struct maskc_launch m = describe(l, pass);
    struct maskc_error failure;
    m.workspace = l->workspace[pass].device + GUARD;
    m.workspace_bytes = l->workspace[pass].size;
    if (maskc_run(l->k, &m, &failure))
        return error_set(e, (enum error_kind)failure.code, "%s", failure.text);
    return l->k->device->sync(l->k->code, e);
}

/* All that the kernel wrote, to the host, with what stands guard around it. */
static int download(struct trial *l, struct problem_data *d, struct error *e)
{
    static const char *const name[TENSORS] = {"q", "k", "v", "o", "do", "dq", "dk", "dv"};
    for (int t = 0; t < TENSORS; t++)
        if (l->buffer[t].host && guarded_download(l->k, &l->buffer[t], name[t], e))
            return -1;
    for (int pass = 0; pass <= l->backward; pass++)
        if (guarded_download(l->k, &l->workspace[pass], "the workspace", e))
            return -1;
    return guarded_download(l->k, &l->lse, "lse", e) ||
                   fetch_bias(l, &l->d_bias, "dsoft", &d->d_x, e) ||
                   fetch_bias(l, &l->d_diagonal, "dsoft by diagonals", &d->d_diagonal, e)
               ? -1
               : 0;
}

int trial_fetch(struct trial *l, struct problem_data *d, struct error *e)
{
    if (download(l, d, e))
        return -1;
    trial_read_lse(l, &d->lse);
    trial_read_tensor(l, O, &d->o);
    if (l->backward) {
        trial_read_tensor(l, D_Q, &d->d_q);
        trial_read_tensor(l, D_K, &d->d_k);
        trial_read_tensor(l, D_V, &d->d_v);
    }
    return 0;
}

static void each_buffer(struct trial *l,
                        void (*act)(const struct maskc_kernel *k, struct guarded *b))
{
    struct guarded *others[] = {
        &l->lse,    &l->lengths, &l->key_lengths, &l->samples,      &l->bias,
        &l->starts, &l->d_bias,  &l->d_diagonal,  &l->workspace[0], &l->workspace[1]};
    for (int t = 0; t < TENSORS; t++)
        act(l->k, &l->buffer[t]);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        act(l->k, others[k]);
}

void trial_forget(struct trial *l)
{
    each_buffer(l, guarded_forget);
}

void trial_destroy(struct trial *l)
{
    if (!l)
        return;
    each_buffer(l, guarded_finish);
    free(l->first);
    free(l);
}

struct trial *trial_new(const struct maskc_kernel *k, const struct problem *p,
                        const struct problem_data *d, bool backward, uint32_t threads,
                        struct error *e)
{
    struct trial *l = memory_new(1, sizeof *l);
    *l = (struct trial){.k = k, .p = p, .backward = backward, .threads = threads};
    l->first = memory_new(p->batch + 1, sizeof *l->first);
    for (uint32_t b = 0; b < p->batch; b++)
        l->first[b + 1] = l->first[b] + (int32_t)problem_rows(p, b);
    trial_choose_layout(l);
    int code = make_buffers(l, d, e) || make_bias(l, d, e) ? -1 : 0;
    for (int pass = 0; pass <= backward && !code; pass++)
        code = make_workspace(l, (enum maskc_pass)pass, e);
    if (!code)
        return l;
    trial_destroy(l);
    return NULL;
}

int kernel_run_problem(const struct maskc_kernel *k, const struct problem *p,
                       struct problem_data *d, bool backward, uint32_t threads, struct error *e)
{
    struct trial *l = trial_new(k, p, d, backward, threads, e);
    if (!l)
        return -1;
    int code = trial_run(l, false, e);
    if (!code && backward)
        code = trial_run(l, true, e);
    if (!code)
        code = trial_fetch(l, d, e);
    trial_destroy(l);
    return code;
}
