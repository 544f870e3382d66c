/* SPDX-License-Identifier: Apache-2.0 */
/* maskc compile: from a mask to a kernel file. */
#include "runtime/compile/compile.h"
#include "masks/base/file.h"
#include "masks/graph/order.h"
#include "runtime/base/cache.h"
#include "tools/maskc/command.h"
#include "tools/maskc/progress.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int command_request(const struct options *o, const char *default_targets,
                    const struct target **target, struct compile_request *ret, struct error *e)
{
    *ret = (struct compile_request){.targets = target,
                                    .machine = o->machine,
                                    .calibration = o->calibration,
                                    .progress = progress_show};
    const char *list = o->target ? o->target : default_targets;
    if (options_request(o, NULL, &ret->request, e) ||
        targets_resolve(list, &ret->request, target, ARTIFACT_MAX_TARGETS, &ret->n_targets,
                        e) ||
        compile_check_machine(ret, e) || emit_check_templates(e) ||
        (o->family && !(ret->plan.family = family_find(o->family, e))))
        return -1;
    for (uint32_t t = 0; t < ret->n_targets; t++)
        if (kernel_request_check(&ret->request, target[t], e))
            return -1;
    return 0;
}

int command_one_target(const struct options *o, const char *default_target,
                       const struct target **target, struct compile_request *ret,
                       struct error *e)
{
    if (command_request(o, default_target, target, ret, e))
        return -1;
    return !o->target || !strchr(o->target, ',')
               ? 0
               : error_set(e, ERROR_INPUT, "--target %s: one target is expected, not %u",
                           o->target, ret->n_targets);
}

const struct measured_plans *command_measured(const struct options *o,
                                              struct measured_plans *ret)
{
    struct error e = {0};
    *ret = (struct measured_plans){0};
    if (!o->measured)
        return NULL;
    if (!measured_load(ret, &e))
        return ret;
    fprintf(stderr, "maskc: %s; it is ignored\n", e.text);
    return NULL;
}

/* Reads back what is about to be written, so that a file that lies on disk is known to be good. */
static int save(const char *path, const uint8_t *bytes, uint64_t size, struct error *e)
{
    struct artifact *a = NULL;
    if (artifact_read(bytes, size, path, &a, e))
        return -1;
    int code = file_write(path, bytes, size, e);
    if (!code)
        kernel_file_print(a, path, size);
    artifact_destroy(a);
    return code;
}

static int compile(const struct options *o, struct error *e)
{
    const struct target *target[ARTIFACT_MAX_TARGETS];
    struct compile_request r;
    uint8_t *bytes = NULL;
    uint64_t size = 0;
    if (!o->output || !has_suffix(o->output, ".mkb"))
        return error_set(e, ERROR_INPUT, "compile needs -o FILE.mkb");
    if (command_request(o, "cpu", target, &r, e))
        return -1;
    struct mask *m = options_kernel_mask(o, o->argument[0], o->length[0], 0, &r.request, e);
    if (!m)
        return -1;
    if (o->order && r.request.queries) {
        mask_destroy(m);
        return error_set(e, ERROR_INPUT,
                         "--order is for as many keys as queries, without --kv-length");
    }
    uint32_t *order = NULL;
    if (o->order && order_read(o->order, m->n, &order, e)) {
        mask_destroy(m);
        return -1;
    }
    struct measured_plans measured;
    r.mask = m;
    r.order = order;
    r.measured = command_measured(o, &measured);
    r.cache = cache_open(NULL);
    int code = kernel_compile(&r, &bytes, &size, e);
    progress_clear();
    if (!code)
        code = save(o->output, bytes, size, e);
    free(bytes);
    cache_close(r.cache);
    mask_destroy(m);
    free(order);
    measured_finish(&measured);
    return code;
}

int command_compile(const struct options *o)
{
    struct error e = {0};
    return compile(o, &e) ? command_fail(&e) : 0;
}
