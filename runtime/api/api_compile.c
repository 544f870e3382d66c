/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of maskc.h that libmaskc alone has: mask and options to a kernel file in memory. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/input/load.h"
#include "runtime/api/api.h"
#include "runtime/compile/compile.h"
#include "runtime/pipeline/pipeline.h"
#include <stdlib.h>
#include <string.h>

_Static_assert((int)ABI_BF16 == (int)MASKC_BF16 && (int)ABI_F16 == (int)MASKC_F16 &&
                   (int)ABI_TF32 == (int)MASKC_TF32 &&
                   (int)ABI_SPARSEGEN == (int)MASKC_SPARSEGEN &&
                   (int)ABI_BIAS_ADD == (int)MASKC_SOFT_BIAS &&
                   (int)ABI_BIAS_SCALE == (int)MASKC_SOFT_SCALE &&
                   (int)MASK_ALIGN_END == (int)MASKC_ALIGN_END,
               "one number for one feature");

/* Fields whose numbers are those of an enum. */
static int check_enums(const struct maskc_options *o, struct error *e)
{
    const struct {
        const char *name;
        int value, most;
    } field[] = {{"dtype", (int)o->dtype, MASKC_TF32},
                 {"transform", (int)o->transform, MASKC_SPARSEGEN},
                 {"soft", (int)o->soft, MASKC_SOFT_SCALE},
                 {"align", (int)o->align, MASKC_ALIGN_END}};
    for (size_t k = 0; k < sizeof field / sizeof *field; k++)
        if (field[k].value < 0 || field[k].value > field[k].most)
            return error_set(e, ERROR_INPUT, "options: %s is %d; 0..%d is expected",
                             field[k].name, field[k].value, field[k].most);
    return 0;
}

/* Refuses fields that would have no effect, or exclude each other. */
static int check_options(const struct maskc_options *o, struct error *e)
{
    if (check_enums(o, e) < 0)
        return -1;
    if (o->unused)
        return error_set(e, ERROR_INPUT, "options: unused is %u; 0 is expected", o->unused);
    if (o->align && !o->kv_length)
        return error_set(e, ERROR_INPUT, "options: align goes with kv_length");
    if (o->hops && !o->has_hops)
        return error_set(e, ERROR_INPUT, "options: hops is %u, but has_hops is 0", o->hops);
    if (o->lambda != 0 && o->transform != MASKC_SPARSEGEN)
        return error_set(e, ERROR_INPUT,
                         "options: lambda is %g, but transform is not MASKC_SPARSEGEN",
                         (double)o->lambda);
    if (o->order_length && !o->order)
        return error_set(e, ERROR_INPUT, "options: order_length is %u, but order is null",
                         o->order_length);
    if (o->order && o->kv_length)
        return error_set(e, ERROR_INPUT,
                         "order: for as many keys as queries, without kv_length");
    return 0;
}

static struct kernel_request request_of(const struct maskc_options *o)
{
    return (struct kernel_request){
        .dtype = (enum abi_dtype)o->dtype,
        .transform = (enum abi_transform)o->transform,
        .lambda = o->lambda,
        .head_dim = o->head_dim ? o->head_dim : 64,
        .dropout = o->dropout != 0,
        .backward = !o->forward_only,
        .bias = (enum abi_bias)o->soft,
    };
}

/* Loads the calibration of the CPU, and those of the GPUs if a target is a GPU's. */
static int load_calibration(const struct compile_request *r, struct calibration **ret,
                            struct error *e)
{
    int code = calibration_load(ret, e);
    for (uint32_t k = 0; k < r->n_targets; k++)
        if (r->targets[k]->kind == TARGET_CUDA)
            return calibration_load_gpus(ret, e) || code ? -1 : 0;
    return code;
}

struct key_shape api_key_shape(const struct maskc_options *o)
{
    return (struct key_shape){o->kv_heads, o->kv_length, (enum mask_align)o->align};
}

/* `request` is what the options and the mask say together. */
static int compile(const struct mask *m, const struct kernel_request *request,
                   const struct maskc_options *o, struct maskc_bytes *ret, struct error *e)
{
    const struct target *found[ARTIFACT_MAX_TARGETS];
    struct compile_request r = {
        .mask = m,
        .order = o->order,
        .request = *request,
        .targets = found,
        .machine = o->machine,
    };
    struct calibration *stored = NULL;
    struct error unreadable;
    uint8_t *bytes;
    uint64_t size;
    if (targets_resolve(o->targets ? o->targets : "cpu", &r.request, found,
                        ARTIFACT_MAX_TARGETS, &r.n_targets, e) < 0)
        return -1;
    if (!o->machine || !strcmp(o->machine, CALIBRATED))
        if (load_calibration(&r, &stored, &unreadable) < 0 && o->machine) {
            calibration_destroy(stored);
            return error_set(e, ERROR_INPUT, "%s", unreadable.text);
        }
    r.calibration = stored;
    r.cache = cache_open(o->cache_dir);
    int result = kernel_compile(&r, &bytes, &size, e);
    cache_close(r.cache);
    calibration_destroy(stored);
    if (result == 0)
        *ret = (struct maskc_bytes){bytes, (size_t)size};
    return result;
}

struct mask_request api_mask_request(const struct maskc_options *o, const char *name)
{
    const struct key_shape shape = api_key_shape(o);
    return (struct mask_request){
        MASK_REQUEST_DEFAULTS,
        .name = name,
        .n = key_shape_side(&shape, o->length),
        .heads = o->heads,
        .has_hops = o->has_hops != 0,
        .hops = o->hops,
        .tokens = o->order,
        .n_tokens = o->order_length,
    };
}

int api_compile_mask(struct mask *m, const struct maskc_options *o, struct maskc_bytes *ret,
                     struct error *e)
{
    const struct key_shape shape = api_key_shape(o);
    struct kernel_request request = request_of(o);
    int result = m ? 0 : -1;
    if (result == 0)
        result = key_shape_apply(&shape, o->length, &m, &request, e);
    if (result == 0)
        result = compile(m, &request, o, ret, e);
    mask_destroy(m);
    return result;
}

static int compile_named(const char *name, const struct maskc_options *o,
                         struct maskc_bytes *ret, struct error *e)
{
    const struct mask_request request = api_mask_request(o, name);
    if (!name)
        return error_set(e, ERROR_INPUT, "no mask given");
    return api_compile_mask(mask_load(&request, artifact_read_mask, e), o, ret, e);
}

int api_take_options(const struct maskc_options *from, struct maskc_options *ret,
                     struct error *e)
{
    static const struct api_struct type = {"options", OPTIONS_FIRST, sizeof *ret};
    const struct maskc_options defaults = {0};
    return api_take(&type, from ? from : &defaults, ret, e) < 0 ? -1 : check_options(ret, e);
}

int maskc_compile(const char *mask, const struct maskc_options *options,
                  struct maskc_bytes *ret, struct maskc_error *error)
{
    struct maskc_options o;
    struct error e = {0};
    int r = api_take_options(options, &o, &e);
    return api_answer(r < 0 ? r : compile_named(mask, &o, ret, &e), &e, error);
}

int maskc_bytes_save(const struct maskc_bytes *bytes, const char *path,
                     struct maskc_error *error)
{
    struct error e = {0};
    int r = bytes && path && bytes->data && bytes->size
                ? file_write(path, bytes->data, bytes->size, &e)
                : error_set(&e, ERROR_INPUT, "nothing to save, or no path");
    return api_answer(r, &e, error);
}

void maskc_bytes_free(struct maskc_bytes *bytes)
{
    if (!bytes)
        return;
    free(bytes->data);
    *bytes = (struct maskc_bytes){0};
}
