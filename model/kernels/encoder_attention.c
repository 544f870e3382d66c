/* SPDX-License-Identifier: Apache-2.0 */
#include "model/kernels/encoder_attention.h"
#include "gen/snap/snap.h"
#include "gen/target.h"
#include "runtime/base/cache.h"
#include "runtime/compile/compile.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/calibration.h"
#include "runtime/pipeline/pipeline.h"
#include <stdlib.h>

int encoder_transform_parse(const char *text, struct encoder_transform *ret, struct error *e)
{
    struct kernel_request f = {0};
    if (text && transform_parse(text, &f, e) < 0)
        return -1;
    *ret = (struct encoder_transform){f.transform == ABI_SPARSEGEN, f.lambda};
    return 0;
}

static struct kernel_request features_of(const struct encoder_attention *a)
{
    return (struct kernel_request){
        .dtype = (enum abi_dtype)a->dtype,
        .transform = a->transform.sparsegen ? ABI_SPARSEGEN : ABI_SOFTMAX,
        .lambda = a->transform.lambda,
        .head_dim = a->head_dim,
        .backward = a->backward,
        .dropout = a->dropout,
        .bias = a->bias ? ABI_BIAS_ADD : ABI_BIAS_NONE,
    };
}

/* Kernels that train are planned by the table: what a run computes does not hang on what is stored here. A file that
   cannot be used is as none. */
static struct calibration *stored_rates(const struct encoder_attention *a)
{
    struct calibration *c = NULL;
    struct error ignored;
    return a->backward || calibration_load(&c, &ignored) ? NULL : c;
}

int encoder_attention_load(const struct encoder_attention *a, struct maskc_kernel **ret,
                           struct error *e)
{
    if (a->bytes)
        return kernel_load(a->bytes, a->size, a->mask->source, a->device, ret, e);
    const struct target *found[1];
    struct compile_request r = {.mask = a->mask,
                                .targets = found,
                                .request = features_of(a),
                                .progress = a->progress,
                                .text_only = a->text_only};
    uint8_t *bytes;
    uint64_t size;
    if (targets_resolve(a->target, &r.request, found, 1, &r.n_targets, e) < 0)
        return -1;
    struct calibration *stored = stored_rates(a);
    r.calibration = stored;
    r.cache = cache_open(NULL);
    int result = kernel_compile(&r, &bytes, &size, e);
    cache_close(r.cache);
    calibration_destroy(stored);
    if (result < 0)
        return -1;
    result = kernel_load(bytes, size, a->mask->source, a->device, ret, e);
    free(bytes);
    return result;
}

/* Machine of the plan: from the table, ignoring rates stored on this computer. */
static const struct machine *planned_for(const struct encoder_attention *a,
                                         struct kernel_request *request,
                                         const struct target **target, struct error *e)
{
    uint32_t count;
    *request = features_of(a);
    return targets_resolve(a->target, request, target, 1, &count, e) < 0
               ? NULL
               : machine_choose(NULL, NULL, *target, request, e);
}

/* Takes the mask. */
static int take(struct snap_mask *kind, struct encoder_snapped *ret, struct error *e)
{
    if (!kind->mask)
        return error_set(e, ERROR_FALSE, "no such mask is within that time");
    *ret = (struct encoder_snapped){kind->mask, kind->share, kind->retained, kind->predicted};
    kind->mask = NULL; /* it is the caller's now */
    return 0;
}

int encoder_snap(const struct encoder_attention *a, const struct encoder_snap *s,
                 struct encoder_snapped *ret, struct error *e)
{
    struct snap_result solved;
    struct snap_request r = {
        .share = s->share, .training = a->backward, .batch = s->batch, .threads = s->threads};
    r.machine = planned_for(a, &r.kernel, &r.target, e);
    if (!r.machine || snap_solve(s->importance, &r, &solved, e) < 0)
        return -1;
    int result = take(&solved.kind[s->threshold ? SNAP_MAGNITUDE : solved.best.kind], ret, e);
    snap_result_finish(&solved);
    return result;
}

int encoder_predict(const struct encoder_attention *a, const struct mask *m, uint32_t batch,
                    uint32_t threads, double *ret, struct error *e)
{
    const struct plan_options plain = {.plain = true}; /* as snap prices masks */
    struct kernel_request request;
    const struct target *target;
    const struct machine *machine = planned_for(a, &request, &target, e);
    if (!machine)
        return -1;
    request.length = m->n;
    struct plan *p = plan_build(m, target, &request, machine, &plain, e);
    if (!p)
        return -1;
    *ret = 0;
    for (uint32_t l = 0; l < p->layers; l++)
        for (int backward = 0; backward <= a->backward; backward++)
            *ret += plan_predict(p, backward, l, batch, threads);
    plan_destroy(p);
    return 0;
}
