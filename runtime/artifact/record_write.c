/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the structured metadata that record.c reads. */
#include "runtime/artifact/write.h"

json_t *kernel_request_json(const struct kernel_request *f)
{
    return json_pack("{s:s, s:s, s:f, s:I, s:b, s:b, s:s, s:I, s:I, s:I}", "dtype",
                     dtype_name(f->dtype), "transform", transform_names[f->transform], "lambda",
                     (double)f->lambda, "head_dim", (json_int_t)f->head_dim, "dropout",
                     f->dropout, "backward", f->backward, "soft", bias_name(f->bias),
                     "kv_heads", (json_int_t)f->kv_heads, "queries", (json_int_t)f->queries,
                     "keys", (json_int_t)f->keys);
}

static json_t *phases_json(const struct phase *p, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_t *j = json_pack("{s:s, s:s, s:I, s:I}", "entry", p[i].entry, "over",
                              over_names[p[i].over], "threads", (json_int_t)p[i].threads,
                              "shared_bytes", (json_int_t)p[i].shared_bytes);
        if (p[i].arguments) /* omitted for plain abi_args: old files stay as they are */
            json_object_set_new(j, "arguments", json_string(arguments_names[p[i].arguments]));
        if (p[i].waves)
            json_object_set_new(j, "waves", json_integer(p[i].waves));
        json_array_append_new(list, j);
    }
    return list;
}

static json_t *kernels_json(const struct artifact_target *t)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < t->n_kernels; i++) {
        const struct kernel_resources *k = &t->kernel[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:I}", "entry", k->entry,
                                              "registers", (json_int_t)k->registers,
                                              "spill_bytes", (json_int_t)k->spill_bytes,
                                              "shared_bytes", (json_int_t)k->shared_bytes,
                                              "code_bytes", (json_int_t)k->code_bytes));
    }
    return list;
}

json_t *target_json(const struct artifact_target *t)
{
    const struct launch_record *l = &t->launch;
    /* Two keys keep older names: strip_rows holds block_rows, state_row holds delta_row. */
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "name", t->name,
        "compiler", t->compiler, "plan", (json_int_t)t->plan, "strip_rows",
        (json_int_t)l->block_rows, "forward", phases_json(l->forward, l->n_forward), "backward",
        phases_json(l->backward, l->n_backward), "state_row", (json_int_t)l->delta_row,
        "pack_row", (json_int_t)l->pack_row, "partial_row", (json_int_t)l->partial_row,
        "scratch_fixed", (json_int_t)l->scratch_fixed, "scratch_col",
        (json_int_t)l->scratch_col, "kernels", kernels_json(t));
}
