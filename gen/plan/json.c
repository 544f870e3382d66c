/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as JSON: one entry for each distinct mask and pass, times for a whole launch. */
#include "gen/plan/internal.h"
#include <math.h>

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void add_places(const struct plan *p, uint32_t which, json_t *entry)
{
    json_t *heads = json_array(), *at = json_array();
    uint32_t first = UINT32_MAX;
    for (uint32_t l = 0; l < p->layers; l++) {
        for (uint32_t h = 0; h < p->heads; h++) {
            if (p->at[(size_t)l * p->heads + h] != which)
                continue;
            first = first == UINT32_MAX ? l : first;
            json_array_append_new(at, json_pack("[I,I]", (json_int_t)l, (json_int_t)h));
            if (l == first)
                json_array_append_new(heads, json_integer(h));
        }
    }
    json_object_set_new(entry, "heads", heads);
    json_object_set_new(entry, "at", at);
}

/* The launch by a lowering whose work for a head is predicted at `work`: on the line through what is
   known of whole launches, the plan and dense. (A GPU that is not full hides work: in proportion to
   dense alone, a lowering of more work than the plan's would look faster than it.) */
static double launch_of(const struct plan_summary *s, struct mask_times t, double work)
{
    if (work <= s->predicted || s->dense_predicted <= s->predicted)
        return t.predicted * work / s->predicted;
    return t.predicted + (work - s->predicted) * (t.dense - t.predicted) /
                             (s->dense_predicted - s->predicted);
}

static json_t *rejected(const struct plan_summary *s, const struct kernel_family *own,
                        struct mask_times t)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < s->n_rejected; k++) {
        const struct plan_rejected *r = &s->rejected[k];
        const double seconds = fmax(t.floor, launch_of(s, t, r->predicted));
        json_array_append_new(list, json_pack("{s:s,s:s,s:o,s:b}", "family",
                                              (r->family ? r->family : own)->name, "lowering",
                                              r->lowering, "predicted_s", number(seconds),
                                              "at_least", (int)r->at_least));
    }
    return list;
}

static json_t *kernels(const struct plan_pass *t, uint32_t which)
{
    uint64_t count[ABI_ITEM_KERNELS];
    json_t *j = json_object();
    count_kernels(t, which, count);
    for (uint32_t k = 0; k < ABI_ITEM_KERNELS; k++)
        if (count[k])
            json_object_set_new(j, item_kernel_names[k], json_integer((json_int_t)count[k]));
    return j;
}

static json_t *entry(const struct plan *p, uint32_t which, bool backward, uint32_t batch,
                     uint32_t threads)
{
    const struct plan_pass *pass = backward ? &p->transposed : &p->forward;
    const struct plan_summary *s = &pass->summary[which];
    struct mask_times t = mask_times(p, which, backward, batch, threads);
    const struct kernel_family *family =
        family_of(p->target, &p->config, backward ? FAMILY_BACKWARD : FAMILY_FORWARD);
    json_t *j = json_object();
    add_places(p, which, j);
    json_object_set_new(j, "pass", json_string(backward ? "backward" : "forward"));
    json_object_set_new(j, "family", json_string(family->name));
    json_object_set_new(j, "lowering", json_string(s->lowering));
    json_object_set_new(j, "reason", json_string(s->reason));
    json_object_set_new(j, "kernels", kernels(pass, which));
    json_object_set_new(j, "executed_fraction", number(s->executed_fraction));
    json_object_set_new(j, "predicted_s", number(t.predicted));
    json_object_set_new(j, "dense_predicted_s", number(t.dense));
    json_object_set_new(j, "floor_s", number(t.floor));
    json_object_set_new(j, "bound", json_string(s->bound));
    json_object_set_new(j, "rejected", rejected(s, family, t));
    return j;
}

static json_t *launch(const struct plan *p, bool backward, uint32_t batch, uint32_t threads)
{
    return json_pack("{s:o,s:o,s:o}", "predicted_s",
                     number(plan_predict(p, backward, 0, batch, threads)), "dense_predicted_s",
                     number(plan_predict_dense(p, backward, 0, batch, threads)), "floor_s",
                     number(plan_floor(p, backward, 0, batch, threads)));
}

/* By pass; empty where kernels read items. */
static json_t *steps(const struct plan *p, uint32_t batch)
{
    const struct step_shape *shape[STEP_SHAPES_MOST];
    json_t *j = json_object();
    for (int k = 0; k < PASSES; k++) {
        const struct step_launch l = plan_step_launch(p, (enum machine_pass)k, batch);
        if (family_step_shapes(p->target, &p->config, l.pass, shape))
            json_object_set_new(j, pass_names[k],
                                steps_json(&l, shape[p->config.step_shape[k]], &p->steps[k]));
    }
    return j;
}

json_t *plan_json(const struct plan *p, uint32_t batch, uint32_t threads)
{
    json_t *j = json_object(), *masks = json_array();
    threads = threads ? threads : 1;
    json_object_set_new(j, "target", json_string(p->target->name));
    json_object_set_new(j, "machine", json_string(p->machine->name));
    json_object_set_new(j, "length", json_integer(p->n));
    json_object_set_new(j, "head_count", json_integer(p->heads));
    json_object_set_new(j, "layers", json_integer(p->layers));
    json_object_set_new(j, "head_dim", json_integer(p->config.request.head_dim));
    json_object_set_new(j, "dtype", json_string(dtype_name(p->config.request.dtype)));
    json_object_set_new(j, "soft", json_string(bias_name(p->config.request.bias)));
    json_object_set_new(j, "batch", json_integer(batch));
    json_object_set_new(j, "threads", json_integer(threads));
    json_object_set_new(j, "forward", launch(p, false, batch, threads));
    if (p->config.request.backward)
        json_object_set_new(j, "backward", launch(p, true, batch, threads));
    json_t *tables = steps(p, batch);
    if (json_object_size(tables))
        json_object_set(j, "steps", tables);
    json_decref(tables);
    for (uint32_t k = 0; k < p->n_masks; k++) {
        json_array_append_new(masks, entry(p, k, false, batch, threads));
        if (p->config.request.backward)
            json_array_append_new(masks, entry(p, k, true, batch, threads));
    }
    json_object_set_new(j, "masks", masks);
    return j;
}
