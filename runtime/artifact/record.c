/* SPDX-License-Identifier: Apache-2.0 */
/* The structured metadata of a kernel file as JSON text: features, and for each target its launch
   record and what the compiler said of it. Whatever is read is held against limits, because the
   launch computes sizes from it. */
#include "runtime/artifact/tables.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

static const char *const over_names[ABI_OVERS] = {
    "heads", "forward", "transposed", "work", "forward late", "transposed late", "soft",
};
static const char *const transform_names[] = {"softmax", "sparsegen"};

enum { NAMES_END = -1 };

/* Limits far above what any template needs and far below what could overflow a product. */
static const uint64_t max_row_bytes = 1 << 22, max_fixed_bytes = UINT64_C(1) << 32,
                      max_block_threads = 1024, max_shared_bytes = 1 << 20;

static int find_name(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return NAMES_END;
}

/* ---- features ---- */

json_t *kernel_request_json(const struct kernel_request *f)
{
    return json_pack("{s:s, s:s, s:f, s:I, s:b, s:b, s:s}", "dtype", dtype_name(f->dtype),
                     "transform", transform_names[f->transform], "lambda", (double)f->lambda,
                     "head_dim", (json_int_t)f->head_dim, "dropout", f->dropout, "backward",
                     f->backward, "soft", bias_name(f->bias));
}

int kernel_request_read(const json_t *j, struct kernel_request *ret, const char *where,
                        struct error *e)
{
    const char *dtype, *transform, *bias;
    double lambda;
    json_int_t head_dim;
    int dropout, backward;
    json_error_t why;
    if (json_unpack_ex((json_t *)j, &why, 0, "{s:s, s:s, s:F, s:I, s:b, s:b, s:s}", "dtype",
                       &dtype, "transform", &transform, "lambda", &lambda, "head_dim",
                       &head_dim, "dropout", &dropout, "backward", &backward, "soft",
                       &bias) < 0)
        return error_set(e, ERROR_INPUT, "%s: features: %s", where, why.text);
    int which = find_name(transform_names, 2, transform);
    if (which == NAMES_END)
        return error_set(e, ERROR_INPUT, "%s: unknown transform '%s'", where, transform);
    if (!(fabs(lambda) <= 1e30) || (which == ABI_SPARSEGEN && !(lambda < 1)))
        return error_set(e, ERROR_INPUT, "%s: lambda %g is out of range", where, lambda);
    if (head_dim < 16 || head_dim > 256 || head_dim % 8)
        return error_set(e, ERROR_INPUT, "%s: head_dim %lld is not a multiple of 8 in 16..256",
                         where, (long long)head_dim);
    enum abi_dtype type;
    enum abi_bias kind;
    if (dtype_parse(dtype, &type, e) < 0 || bias_parse(bias, &kind, e) < 0)
        return error_prefix(e, "%s", where);
    *ret = (struct kernel_request){.dtype = type,
                                   .transform = (enum abi_transform)which,
                                   .lambda = (float)lambda,
                                   .head_dim = (uint32_t)head_dim,
                                   .dropout = dropout,
                                   .backward = backward,
                                   .bias = kind};
    return 0;
}

/* ---- targets ---- */

static json_t *phases_json(const struct phase *p, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "entry", p[i].entry,
                                              "over", over_names[p[i].over], "threads",
                                              (json_int_t)p[i].threads, "shared_bytes",
                                              (json_int_t)p[i].shared_bytes));
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
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "name", t->name,
        "compiler", t->compiler, "plan", (json_int_t)t->plan, "strip_rows",
        (json_int_t)l->block_rows, "forward", phases_json(l->forward, l->n_forward), "backward",
        phases_json(l->backward, l->n_backward), "state_row", (json_int_t)l->delta_row,
        "pack_row", (json_int_t)l->pack_row, "partial_row", (json_int_t)l->partial_row,
        "scratch_fixed", (json_int_t)l->scratch_fixed, "scratch_col",
        (json_int_t)l->scratch_col, "kernels", kernels_json(t));
}

/* A number 0 .. limit of an object, as its own error where it is something else. */
static int read_number(const json_t *j, const char *key, uint64_t limit, uint64_t *ret,
                       const char *where, struct error *e)
{
    const json_t *v = json_object_get(j, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0 ||
        (uint64_t)json_integer_value(v) > limit)
        return error_set(e, ERROR_INPUT, "%s: '%s' is not a number in 0..%llu", where, key,
                         (unsigned long long)limit);
    *ret = (uint64_t)json_integer_value(v);
    return 0;
}

static int read_number32(const json_t *j, const char *key, uint64_t limit, uint32_t *ret,
                         const char *where, struct error *e)
{
    uint64_t v = 0;
    if (read_number(j, key, limit, &v, where, e) < 0)
        return -1;
    *ret = (uint32_t)v;
    return 0;
}

static int read_text(const json_t *j, const char *key, char *ret, size_t room,
                     const char *where, struct error *e)
{
    const char *text = json_string_value(json_object_get(j, key));
    if (!text || strlen(text) >= room)
        return error_set(e, ERROR_INPUT, "%s: '%s' is not a text below %zu bytes", where, key,
                         room);
    strcpy(ret, text);
    return 0;
}

static bool is_identifier(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    while (isalnum((unsigned char)*s) || *s == '_')
        s++;
    return !*s;
}

static int read_entry(const json_t *j, char *ret, size_t room, const char *where,
                      struct error *e)
{
    if (read_text(j, "entry", ret, room, where, e) < 0)
        return -1;
    return is_identifier(ret)
               ? 0
               : error_set(e, ERROR_INPUT, "%s: entry point without a proper name", where);
}

static int read_phase(const json_t *j, bool backward, struct phase *ret, const char *where,
                      struct error *e)
{
    char over[16];
    if (read_entry(j, ret->entry, sizeof ret->entry, where, e) < 0 ||
        read_text(j, "over", over, sizeof over, where, e) < 0 ||
        read_number32(j, "threads", max_block_threads, &ret->threads, where, e) < 0 ||
        read_number32(j, "shared_bytes", max_shared_bytes, &ret->shared_bytes, where, e) < 0)
        return -1;
    int which = find_name(over_names, ABI_OVERS, over);
    bool turned = which == ABI_OVER_TRANSPOSED || which == ABI_OVER_TRANSPOSED_MERGE;
    if (which == NAMES_END || (turned && !backward))
        return error_set(e, ERROR_INPUT, "%s: a phase cannot go over '%s'", where, over);
    ret->over = (enum abi_over)which;
    return 0;
}

/* `most` 0: the list must be empty, else it holds 1 .. most phases. */
static int read_phases(const json_t *list, uint32_t most, bool backward, struct phase *ret,
                       uint32_t *ret_count, const char *where, struct error *e)
{
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > most || (most && !count))
        return error_set(e, ERROR_INPUT, "%s: the launch record has %zu phases, not 1..%u",
                         where, count, most);
    for (size_t i = 0; i < count; i++)
        if (read_phase(json_array_get(list, i), backward, &ret[i], where, e) < 0)
            return -1;
    *ret_count = (uint32_t)count;
    return 0;
}

/* Phases over the items of a plan leave sums to one another; heads taken whole have no need to. */
static bool passes_state(const struct launch_record *r)
{
    for (uint32_t k = 0; k < r->n_backward; k++)
        if (r->backward[k].over != ABI_OVER_HEADS)
            return true;
    return false;
}

static int read_launch(const json_t *j, const struct kernel_request *f,
                       struct launch_record *ret, const char *where, struct error *e)
{
    const json_t *backward = json_object_get(j, "backward");
    if (read_number32(j, "strip_rows", ABI_MAX_BLOCK_ROWS, &ret->block_rows, where, e) < 0 ||
        read_number(j, "state_row", max_row_bytes, &ret->delta_row, where, e) < 0 ||
        read_number(j, "pack_row", max_row_bytes, &ret->pack_row, where, e) < 0 ||
        read_number(j, "partial_row", max_row_bytes, &ret->partial_row, where, e) < 0 ||
        read_number(j, "scratch_fixed", max_fixed_bytes, &ret->scratch_fixed, where, e) < 0 ||
        read_number(j, "scratch_col", max_row_bytes, &ret->scratch_col, where, e) < 0 ||
        read_phases(json_object_get(j, "forward"), EMIT_MAX_PHASES, false, ret->forward,
                    &ret->n_forward, where, e) < 0 ||
        read_phases(backward, f->backward ? EMIT_MAX_PHASES : 0, true, ret->backward,
                    &ret->n_backward, where, e) < 0)
        return -1;
    if (passes_state(ret) && ret->delta_row < sizeof(float))
        return error_set(e, ERROR_INPUT, "%s: no room for the state of the backward pass",
                         where);
    return 0;
}

static int read_resources(const json_t *j, struct kernel_resources *ret, const char *where,
                          struct error *e)
{
    return read_entry(j, ret->entry, sizeof ret->entry, where, e) < 0 ||
                   read_number32(j, "registers", 1024, &ret->registers, where, e) < 0 ||
                   read_number32(j, "spill_bytes", UINT32_MAX, &ret->spill_bytes, where, e) <
                       0 ||
                   read_number32(j, "shared_bytes", UINT32_MAX, &ret->shared_bytes, where, e) <
                       0 ||
                   read_number32(j, "code_bytes", UINT32_MAX, &ret->code_bytes, where, e) < 0
               ? -1
               : 0;
}

static int read_kernels(const json_t *list, struct artifact_target *ret, const char *where,
                        struct error *e)
{
    if (!json_is_array(list) || json_array_size(list) > ARTIFACT_MAX_KERNELS)
        return error_set(e, ERROR_INPUT, "%s: 'kernels' is not a list of at most %d", where,
                         ARTIFACT_MAX_KERNELS);
    ret->n_kernels = (uint32_t)json_array_size(list);
    for (uint32_t i = 0; i < ret->n_kernels; i++)
        if (read_resources(json_array_get(list, i), &ret->kernel[i], where, e) < 0)
            return -1;
    return 0;
}

int target_read(const json_t *j, const struct kernel_request *f, struct artifact_target *ret,
                const char *where, struct error *e)
{
    struct artifact_target t = {0};
    if (read_text(j, "name", t.name, sizeof t.name, where, e) < 0)
        return -1;
    if (!target_find(t.name, e))
        return error_prefix(e, "%s", where);
    if (read_text(j, "compiler", t.compiler, sizeof t.compiler, where, e) < 0 ||
        read_number32(j, "plan", ARTIFACT_MAX_TARGETS - 1, &t.plan, where, e) < 0 ||
        read_launch(j, f, &t.launch, where, e) < 0 ||
        read_kernels(json_object_get(j, "kernels"), &t, where, e) < 0)
        return -1;
    *ret = t;
    return 0;
}
