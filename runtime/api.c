/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of maskc.h: options to requests, the library's errors to the caller's. The kinds of
   both are the same numbers. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/load.h"
#include "runtime/compile/compile.h"
#include "runtime/kernel.h"
#include <stdlib.h>
#include <string.h>

_Static_assert((int)ERROR_FALSE == (int)MASKC_FAILED &&
                   (int)ERROR_INPUT == (int)MASKC_BAD_INPUT &&
                   (int)ERROR_UNAVAILABLE == (int)MASKC_UNAVAILABLE,
               "one number for one kind of error");
_Static_assert(sizeof(struct error) == sizeof(struct maskc_error), "texts of equal size");
_Static_assert((int)ABI_BF16 == (int)MASKC_BF16 && (int)ABI_F16 == (int)MASKC_F16 &&
                   (int)ABI_TF32 == (int)MASKC_TF32 &&
                   (int)ABI_SPARSEGEN == (int)MASKC_SPARSEGEN &&
                   (int)ABI_BIAS_ADD == (int)MASKC_SOFT_BIAS &&
                   (int)ABI_BIAS_SCALE == (int)MASKC_SOFT_SCALE,
               "one number for one feature");

/* The code of a result, and the text where the caller wants it. */
static int answer(int result, const struct error *from, struct maskc_error *to)
{
    if (result == 0)
        return MASKC_OK;
    if (to) {
        to->code = (int)from->kind;
        memcpy(to->text, from->text, sizeof to->text);
    }
    return (int)from->kind;
}

/* ---- compile ---- */

static int read_request(const struct maskc_options *o, struct kernel_request *ret,
                        struct error *e)
{
    if ((unsigned)o->dtype > MASKC_TF32 || (unsigned)o->transform > MASKC_SPARSEGEN ||
        (unsigned)o->soft > MASKC_SOFT_SCALE)
        return error_set(e, ERROR_INPUT,
                         "options: dtype, transform or soft is none of the known ones");
    *ret = (struct kernel_request){
        .dtype = (enum abi_dtype)o->dtype,
        .transform = (enum abi_transform)o->transform,
        .lambda = o->transform == MASKC_SPARSEGEN ? o->lambda : 0,
        .head_dim = o->head_dim ? o->head_dim : 64,
        .dropout = o->dropout != 0,
        .backward = !o->forward_only,
        .bias = (enum abi_bias)o->soft,
    };
    return 0;
}

/* What is stored for the CPU, and for the GPUs where a target is one's. */
static int load_calibration(const struct compile_request *r, struct calibration **ret,
                            struct error *e)
{
    int code = calibration_load(ret, e);
    for (uint32_t k = 0; k < r->n_targets; k++)
        if (r->targets[k]->kind == TARGET_CUDA)
            return calibration_load_gpus(ret, e) || code ? -1 : 0;
    return code;
}

static int compile_mask(const struct mask *m, const struct maskc_options *o,
                        struct maskc_bytes *ret, struct error *e)
{
    const struct target *found[ARTIFACT_MAX_TARGETS];
    struct compile_request r = {.mask = m, .targets = found, .machine = o->machine};
    struct calibration *stored = NULL;
    struct error unreadable;
    uint8_t *bytes;
    uint64_t size;
    if (read_request(o, &r.request, e) < 0 ||
        targets_resolve(o->targets ? o->targets : "cpu", &r.request, found,
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

static int compile_named(const char *name, const struct maskc_options *o,
                         struct maskc_bytes *ret, struct error *e)
{
    struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = name, .n = o->length,
                                   .heads = o->heads};
    if (!name)
        return error_set(e, ERROR_INPUT, "no mask given");
    struct mask *m = mask_load(&request, artifact_read_mask, e);
    if (!m)
        return -1;
    int result = compile_mask(m, o, ret, e);
    mask_destroy(m);
    return result;
}

int maskc_compile(const char *mask, const struct maskc_options *options,
                  struct maskc_bytes *ret, struct maskc_error *error)
{
    const struct maskc_options defaults = {0};
    struct error e = {0};
    return answer(compile_named(mask, options ? options : &defaults, ret, &e), &e, error);
}

static struct mask *mask_from_dense(const uint8_t *bits, uint32_t layers, uint32_t heads,
                                    uint32_t n, struct error *e)
{
    if (!bits || layers < 1 || layers > MASK_MAX_LAYERS || heads < 1 ||
        heads > MASK_MAX_HEADS || n < 1 || n > PATTERN_MAX_N) {
        error_set(e, ERROR_INPUT,
                  "a dense mask needs bits, 1..%d layers, 1..%d heads and a length of 1..%d",
                  MASK_MAX_LAYERS, MASK_MAX_HEADS, PATTERN_MAX_N);
        return NULL;
    }
    size_t places = (size_t)layers * heads;
    struct pattern **given = memory_new(places, sizeof *given);
    for (size_t k = 0; k < places; k++)
        given[k] = pattern_from_bytes(bits + k * n * n, n, n);
    struct mask *m = mask_new(layers, heads, given, "dense array");
    free(given);
    return m;
}

/* `length` crops and `heads` repeats, as for a mask in a file. */
static struct mask *shape_mask(struct mask *m, const struct maskc_options *o, struct error *e)
{
    struct mask *next = m;
    if (m && o->length && o->length != m->n) {
        next = mask_crop(m, o->length, e);
        mask_destroy(m);
        m = next;
    }
    if (m && o->heads && o->heads != m->heads) {
        next = mask_repeat_heads(m, o->heads, e);
        mask_destroy(m);
    }
    return next;
}

static int compile_dense(struct mask *m, const struct maskc_options *o, struct maskc_bytes *ret,
                         struct error *e)
{
    m = shape_mask(m, o, e);
    int result = m ? compile_mask(m, o, ret, e) : -1;
    mask_destroy(m);
    return result;
}

int maskc_compile_dense(const uint8_t *bits, uint32_t layers, uint32_t heads, uint32_t n,
                        const struct maskc_options *options, struct maskc_bytes *ret,
                        struct maskc_error *error)
{
    const struct maskc_options defaults = {0};
    struct error e = {0};
    struct mask *m = mask_from_dense(bits, layers, heads, n, &e);
    return answer(compile_dense(m, options ? options : &defaults, ret, &e), &e, error);
}

int maskc_bytes_save(const struct maskc_bytes *bytes, const char *path,
                     struct maskc_error *error)
{
    struct error e = {0};
    int r = bytes && path && (bytes->data || !bytes->size)
                ? file_write(path, bytes->data, bytes->size, &e)
                : error_set(&e, ERROR_INPUT, "nothing to save, or no path");
    return answer(r, &e, error);
}

void maskc_bytes_free(struct maskc_bytes *bytes)
{
    if (!bytes)
        return;
    free(bytes->data);
    *bytes = (struct maskc_bytes){0};
}

/* ---- load ---- */

int maskc_load(const char *path, const char *device, struct maskc_kernel **ret,
               struct maskc_error *error)
{
    struct error e = {0};
    int r = path ? kernel_load_file(path, device, ret, &e)
                 : error_set(&e, ERROR_INPUT, "no path given");
    return answer(r, &e, error);
}

int maskc_load_memory(const void *data, size_t size, const char *device,
                      struct maskc_kernel **ret, struct maskc_error *error)
{
    struct error e = {0};
    int r = data ? kernel_load(data, size, "kernel in memory", device, ret, &e)
                 : error_set(&e, ERROR_INPUT, "no kernel file in memory given");
    return answer(r, &e, error);
}

void maskc_kernel_destroy(struct maskc_kernel *kernel)
{
    kernel_unload(kernel);
}

/* ---- query ---- */

void maskc_kernel_info(const struct maskc_kernel *kernel, struct maskc_info *ret)
{
    const struct artifact *a = kernel->artifact;
    *ret = (struct maskc_info){
        .length = a->mask->n,
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
    };
}

const char *maskc_plan_text(const struct maskc_kernel *kernel)
{
    return kernel->artifact->plan[kernel->target->plan].text;
}

/* ---- launch ---- */

uint64_t maskc_workspace_bytes(const struct maskc_kernel *kernel,
                               const struct maskc_launch *launch)
{
    return kernel && launch ? launch_workspace(kernel, launch) : 0;
}

int maskc_run(const struct maskc_kernel *kernel, const struct maskc_launch *launch,
              struct maskc_error *error)
{
    struct error e;
    e.kind = ERROR_NONE;
    e.text[0] = 0;
    int r = kernel && launch ? launch_run(kernel, launch, &e)
                             : error_set(&e, ERROR_INPUT, "launch: no kernel or no arguments");
    return answer(r, &e, error);
}
