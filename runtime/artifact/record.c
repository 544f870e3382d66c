/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the structured metadata of a kernel file: features, and for each target its launch record and
   what the compiler said of it. Everything is held against limits, because the launch computes sizes
   from it. record_write.c writes it. */
#include "gen/target.h"
#include "runtime/artifact/tables.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

enum { NAMES_END = -1 };

/* Limits far above what any template needs and far below what could overflow a product. */
static const uint64_t max_row_bytes = 1 << 22, max_fixed_bytes = UINT64_C(1) << 32,
                      max_block_threads = 1024, max_shared_bytes = 1 << 20;

const char *const over_names[ABI_OVERS] = {
    "heads",        "forward",         "transposed", "work",
    "forward late", "transposed late", "soft",       "key heads",
};
const char *const transform_names[] = {"softmax", "sparsegen"};
const char *const arguments_names[PHASE_ARGUMENTS] = {"args", "hopper forward", "hopper dq",
                                                      "hopper dkv"};

static int find_name(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return NAMES_END;
}

/* A number 0 .. limit of an object, as its own error where it is something else. */
static int read_number(const struct datum *j, const char *key, uint64_t limit, uint64_t *ret,
                       const struct place *at)
{
    const struct datum *v = datum_member(j, key);
    if (!datum_is(v, DATUM_INTEGER) || v->integer < 0 || (uint64_t)v->integer > limit)
        return error_set(at->e, ERROR_INPUT, "%s: '%s' is not a number in 0..%llu", at->where,
                         key, (unsigned long long)limit);
    *ret = (uint64_t)v->integer;
    return 0;
}

static int read_number32(const struct datum *j, const char *key, uint64_t limit, uint32_t *ret,
                         const struct place *at)
{
    uint64_t v = 0;
    if (read_number(j, key, limit, &v, at) < 0)
        return -1;
    *ret = (uint32_t)v;
    return 0;
}

/* ---- features ---- */

static const struct {
    const char *name;
    enum datum_kind kind;
} members[] = {
    {"dtype", DATUM_TEXT},       {"transform", DATUM_TEXT},   {"lambda", DATUM_REAL},
    {"head_dim", DATUM_INTEGER}, {"dropout", DATUM_BOOL},     {"backward", DATUM_BOOL},
    {"soft", DATUM_TEXT},        {"kv_heads", DATUM_INTEGER}, {"queries", DATUM_INTEGER},
    {"keys", DATUM_INTEGER},
};

/* Checks all members that kernel_request_read() reads. */
static int check_members(const struct datum *j, const struct place *at)
{
    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
        if (!datum_is(datum_member(j, members[k].name), members[k].kind))
            return error_set(at->e, ERROR_INPUT,
                             "%s: features: '%s' is missing or of another kind", at->where,
                             members[k].name);
    return 0;
}

static int read_transform(const struct datum *j, struct kernel_request *ret,
                          const struct place *at)
{
    const char *name = datum_text(datum_member(j, "transform"));
    double lambda = datum_member(j, "lambda")->real;
    int which = find_name(transform_names, 2, name);
    if (which == NAMES_END)
        return error_set(at->e, ERROR_INPUT, "%s: unknown transform '%s'", at->where, name);
    if (!(fabs(lambda) <= 1e30) || (which == ABI_SPARSEGEN && !(lambda < 1)))
        return error_set(at->e, ERROR_INPUT, "%s: lambda %g is out of range", at->where,
                         lambda);
    ret->transform = (enum abi_transform)which;
    ret->lambda = (float)lambda;
    return 0;
}

/* Reads the key shape. Its fit to the mask is checked when the mask is read. */
static int read_key_shape(const struct datum *j, struct kernel_request *ret,
                          const struct place *at)
{
    return read_number32(j, "kv_heads", MASK_MAX_HEADS, &ret->kv_heads, at) < 0 ||
                   read_number32(j, "queries", PATTERN_MAX_N, &ret->queries, at) < 0 ||
                   read_number32(j, "keys", PATTERN_MAX_N, &ret->keys, at) < 0
               ? -1
               : 0;
}

int kernel_request_read(const struct datum *j, struct kernel_request *ret,
                        const struct place *at)
{
    struct kernel_request f = {0};
    if (check_members(j, at) < 0 || read_transform(j, &f, at) < 0 ||
        read_key_shape(j, &f, at) < 0)
        return -1;
    int64_t head_dim = datum_integer(datum_member(j, "head_dim"));
    if (head_dim < 16 || head_dim > 256 || head_dim % 8)
        return error_set(at->e, ERROR_INPUT,
                         "%s: head_dim %lld is not a multiple of 8 in 16..256", at->where,
                         (long long)head_dim);
    if (dtype_parse(datum_text(datum_member(j, "dtype")), &f.dtype, at->e) < 0 ||
        bias_parse(datum_text(datum_member(j, "soft")), &f.bias, at->e) < 0)
        return error_prefix(at->e, "%s", at->where);
    f.head_dim = (uint32_t)head_dim;
    f.dropout = datum_member(j, "dropout")->truth;
    f.backward = datum_member(j, "backward")->truth;
    *ret = f;
    return 0;
}

/* ---- targets ---- */

static int read_text(const struct datum *j, const char *key, char *ret, size_t capacity,
                     const struct place *at)
{
    const char *text = datum_text(datum_member(j, key));
    if (!text || strlen(text) >= capacity)
        return error_set(at->e, ERROR_INPUT, "%s: '%s' is not a text below %zu bytes",
                         at->where, key, capacity);
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

static int read_entry(const struct datum *j, char *ret, size_t capacity, const struct place *at)
{
    if (read_text(j, "entry", ret, capacity, at) < 0)
        return -1;
    return is_identifier(ret) ? 0
                              : error_set(at->e, ERROR_INPUT,
                                          "%s: entry point without a proper name", at->where);
}

/* A missing member is PHASE_ARGS. */
static int read_arguments(const struct datum *j, bool backward, struct phase *ret,
                          const struct place *at)
{
    char name[16];
    if (!datum_member(j, "arguments"))
        return 0;
    if (read_text(j, "arguments", name, sizeof name, at) < 0)
        return -1;
    int which = find_name(arguments_names, PHASE_ARGUMENTS, name);
    if (which == NAMES_END ||
        (which != PHASE_ARGS && (which == PHASE_HOPPER_FORWARD) == backward))
        return error_set(at->e, ERROR_INPUT, "%s: a phase cannot receive '%s'", at->where,
                         name);
    ret->arguments = (enum phase_arguments)which;
    return 0;
}

/* A missing member is 0. */
static int read_waves(const struct datum *j, struct phase *ret, const struct place *at)
{
    enum { MOST = 16 };
    return datum_member(j, "waves") ? read_number32(j, "waves", MOST, &ret->waves, at) : 0;
}

static int read_phase(const struct datum *j, bool backward, struct phase *ret,
                      const struct place *at)
{
    char over[16];
    if (read_entry(j, ret->entry, sizeof ret->entry, at) < 0 ||
        read_text(j, "over", over, sizeof over, at) < 0 ||
        read_number32(j, "threads", max_block_threads, &ret->threads, at) < 0 ||
        read_number32(j, "shared_bytes", max_shared_bytes, &ret->shared_bytes, at) < 0)
        return -1;
    int which = find_name(over_names, ABI_OVERS, over);
    bool transposed = which == ABI_OVER_TRANSPOSED || which == ABI_OVER_TRANSPOSED_MERGE;
    if (which == NAMES_END || (transposed && !backward))
        return error_set(at->e, ERROR_INPUT, "%s: a phase cannot go over '%s'", at->where,
                         over);
    ret->over = (enum abi_over)which;
    return read_waves(j, ret, at) < 0 ? -1 : read_arguments(j, backward, ret, at);
}

/* `most` 0: the list must be empty, else it holds 1 .. most phases. */
static int read_phases(const struct datum *list, uint32_t most, bool backward,
                       struct phase *ret, uint32_t *ret_count, const struct place *at)
{
    size_t count = datum_count(list);
    if (!datum_is(list, DATUM_LIST) || count > most || (most && !count))
        return error_set(at->e, ERROR_INPUT, "%s: the launch record has %zu phases, not 1..%u",
                         at->where, count, most);
    for (size_t i = 0; i < count; i++)
        if (read_phase(datum_at(list, i), backward, &ret[i], at) < 0)
            return -1;
    *ret_count = (uint32_t)count;
    return 0;
}

/* Phases over the items of a plan leave sums to one another; heads taken whole have no need to. */
static bool passes_state(const struct launch_record *r)
{
    for (uint32_t k = 0; k < r->n_backward; k++)
        if (r->backward[k].over != ABI_OVER_HEADS && r->backward[k].over != ABI_OVER_KEY_HEADS)
            return true;
    return false;
}

static int read_launch(const struct datum *j, const struct kernel_request *f,
                       struct launch_record *ret, const struct place *at)
{
    const struct datum *backward = datum_member(j, "backward");
    /* Two keys keep older names: strip_rows holds block_rows, state_row holds delta_row. */
    if (read_number32(j, "strip_rows", ABI_MAX_BLOCK_ROWS, &ret->block_rows, at) < 0 ||
        read_number(j, "state_row", max_row_bytes, &ret->delta_row, at) < 0 ||
        read_number(j, "pack_row", max_row_bytes, &ret->pack_row, at) < 0 ||
        read_number(j, "partial_row", max_row_bytes, &ret->partial_row, at) < 0 ||
        read_number(j, "scratch_fixed", max_fixed_bytes, &ret->scratch_fixed, at) < 0 ||
        read_number(j, "scratch_col", max_row_bytes, &ret->scratch_col, at) < 0 ||
        read_phases(datum_member(j, "forward"), EMIT_MAX_PHASES, false, ret->forward,
                    &ret->n_forward, at) < 0 ||
        read_phases(backward, f->backward ? EMIT_MAX_PHASES : 0, true, ret->backward,
                    &ret->n_backward, at) < 0)
        return -1;
    if (passes_state(ret) && ret->delta_row < sizeof(float))
        return error_set(at->e, ERROR_INPUT, "%s: no room for the state of the backward pass",
                         at->where);
    return 0;
}

static int read_resources(const struct datum *j, struct kernel_resources *ret,
                          const struct place *at)
{
    return read_entry(j, ret->entry, sizeof ret->entry, at) < 0 ||
                   read_number32(j, "registers", 1024, &ret->registers, at) < 0 ||
                   read_number32(j, "spill_bytes", UINT32_MAX, &ret->spill_bytes, at) < 0 ||
                   read_number32(j, "shared_bytes", UINT32_MAX, &ret->shared_bytes, at) < 0 ||
                   read_number32(j, "code_bytes", UINT32_MAX, &ret->code_bytes, at) < 0
               ? -1
               : 0;
}

static int read_kernels(const struct datum *list, struct artifact_target *ret,
                        const struct place *at)
{
    if (!datum_is(list, DATUM_LIST) || datum_count(list) > ARTIFACT_MAX_KERNELS)
        return error_set(at->e, ERROR_INPUT, "%s: 'kernels' is not a list of at most %d",
                         at->where, ARTIFACT_MAX_KERNELS);
    ret->n_kernels = (uint32_t)datum_count(list);
    for (uint32_t i = 0; i < ret->n_kernels; i++)
        if (read_resources(datum_at(list, i), &ret->kernel[i], at) < 0)
            return -1;
    return 0;
}

int target_read(const struct datum *j, const struct kernel_request *f,
                struct artifact_target *ret, const struct place *at)
{
    struct artifact_target t = {0};
    if (read_text(j, "name", t.name, sizeof t.name, at) < 0)
        return -1;
    if (!target_find(t.name, at->e))
        return error_prefix(at->e, "%s", at->where);
    if (read_text(j, "compiler", t.compiler, sizeof t.compiler, at) < 0 ||
        read_number32(j, "plan", ARTIFACT_MAX_TARGETS - 1, &t.plan, at) < 0 ||
        read_launch(j, f, &t.launch, at) < 0 ||
        read_kernels(datum_member(j, "kernels"), &t, at) < 0)
        return -1;
    *ret = t;
    return 0;
}
