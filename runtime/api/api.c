/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of maskc.h that both libraries have: load, query, launch; and what all of its functions
   share. The kinds of errors are the same numbers inside and outside. */
#include "runtime/api/api.h"
#include "runtime/launch/launch.h"
#include "runtime/load/load.h"
#include <stdbool.h>
#include <string.h>

_Static_assert((int)ERROR_FALSE == (int)MASKC_FAILED &&
                   (int)ERROR_INPUT == (int)MASKC_BAD_INPUT &&
                   (int)ERROR_UNAVAILABLE == (int)MASKC_UNAVAILABLE,
               "one number for one kind of error");
_Static_assert(sizeof(struct error) == sizeof(struct maskc_error), "texts of equal size");
int api_answer(int result, const struct error *from, struct maskc_error *to)
{
    if (result == 0)
        return MASKC_OK;
    if (to) {
        to->code = (int)from->kind;
        memcpy(to->text, from->text, sizeof to->text);
    }
    return (int)from->kind;
}

/* ---- structs of callers ---- */

static bool is_zero(const void *bytes, size_t size)
{
    const uint8_t *b = bytes;
    while (size && !*b)
        b++, size--;
    return size == 0;
}

/* The size is not read in place: the struct may be of any version. */
static size_t size_of(const struct api_struct *s, const void *from)
{
    size_t size;
    memcpy(&size, from, sizeof size);
    return size ? size : s->first;
}

int api_take(const struct api_struct *s, const void *from, void *ret, struct error *e)
{
    enum { LARGEST = 4096 }; /* no version will be */
    size_t size = size_of(s, from), known = size < s->ours ? size : s->ours;
    if (size < s->first || size > LARGEST)
        return error_set(e, ERROR_INPUT, "%s: struct_size %zu is of no version", s->name, size);
    if (!is_zero((const uint8_t *)from + known, size - known))
        return error_set(
            e, ERROR_INPUT,
            "%s: a field is set that this library does not know: a newer one is needed",
            s->name);
    memset(ret, 0, s->ours);
    memcpy(ret, from, known);
    return 0;
}

void api_give(const struct api_struct *s, const void *from, void *ret)
{
    size_t size = size_of(s, ret), known = size < s->ours ? size : s->ours;
    if (known < sizeof known)
        return;
    memcpy(ret, from, known);
    memcpy(ret, &known, sizeof known);
}

/* ---- load ---- */

int maskc_load(const char *path, const char *device, struct maskc_kernel **ret,
               struct maskc_error *error)
{
    struct error e = {0};
    int r = path ? kernel_load_file(path, device, ret, &e)
                 : error_set(&e, ERROR_INPUT, "no path given");
    return api_answer(r, &e, error);
}

int maskc_load_memory(const void *data, size_t size, const char *device,
                      struct maskc_kernel **ret, struct maskc_error *error)
{
    struct error e = {0};
    int r = data ? kernel_load(data, size, "kernel in memory", device, ret, &e)
                 : error_set(&e, ERROR_INPUT, "no kernel file in memory given");
    return api_answer(r, &e, error);
}

void maskc_kernel_destroy(struct maskc_kernel *kernel)
{
    kernel_unload(kernel);
}

/* ---- query ---- */

const uint32_t *maskc_kernel_order(const struct maskc_kernel *kernel)
{
    return kernel->artifact->order;
}

void maskc_kernel_info(const struct maskc_kernel *kernel, struct maskc_info *ret)
{
    static const struct api_struct type = {"info", INFO_FIRST, sizeof *ret};
    const struct artifact *a = kernel->artifact;
    const struct maskc_info info = {
        .length = request_queries(&a->request, a->mask),
        .heads = a->mask->heads,
        .layers = a->mask->layers,
        .head_dim = a->request.head_dim,
        .dtype = (enum maskc_dtype)a->request.dtype,
        .transform = (enum maskc_transform)a->request.transform,
        .lambda = a->request.lambda,
        .dropout = a->request.dropout,
        .backward = a->request.backward,
        .target = kernel->target->name,
        .device = kernel->device->name,
        .soft = (enum maskc_soft)a->request.bias,
        .kv_heads = request_kv_heads(&a->request, a->mask),
        .kv_length = request_keys(&a->request, a->mask),
        .ordinal =
            kernel->device->ordinal ? (uint32_t)kernel->device->ordinal(kernel->code) : 0,
    };
    api_give(&type, &info, ret);
}

const char *maskc_plan_text(const struct maskc_kernel *kernel)
{
    return kernel->artifact->plan[kernel->target->plan].text;
}

/* ---- launch ---- */

static const struct api_struct launch_type = {"launch", LAUNCH_FIRST,
                                              sizeof(struct maskc_launch)};

uint64_t maskc_workspace_bytes(const struct maskc_kernel *kernel,
                               const struct maskc_launch *launch)
{
    struct maskc_launch l;
    if (!kernel || !launch)
        return 0;
    return api_take(&launch_type, launch, &l, NULL) < 0 ? UINT64_MAX
                                                        : launch_workspace(kernel, &l);
}

static int run(const struct maskc_kernel *kernel, const struct maskc_launch *launch,
               struct error *e)
{
    struct maskc_launch l;
    if (!kernel || !launch)
        return error_set(e, ERROR_INPUT, "launch: no kernel or no arguments");
    return api_take(&launch_type, launch, &l, e) < 0 ? -1 : launch_run(kernel, &l, e);
}

int maskc_run(const struct maskc_kernel *kernel, const struct maskc_launch *launch,
              struct maskc_error *error)
{
    struct error e;
    e.kind = ERROR_NONE;
    e.text[0] = 0;
    return api_answer(run(kernel, launch, &e), &e, error);
}
