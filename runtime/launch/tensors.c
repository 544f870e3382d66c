/* SPDX-License-Identifier: Apache-2.0 */
/* Q, K, V, O and their gradients in a launch: a row of the table for each, with its places in the caller's struct and in
   the kernels' arguments. Strides that are all zero are those of [B, N, H, D]; with offsets the batch stride is 0. */
#include "gen/key_shape.h"
#include "runtime/launch/steps.h"
#include <string.h>

enum {
    WRITTEN_FORWARD = 1,
    WRITTEN_BACKWARD = 2,
    READ_FORWARD = 4,
    READ_BACKWARD = 8,
    OF_KEYS = 16, /* rows and heads are those of K and V */
};

struct operand {
    const char *name;
    size_t given, args; /* where it stands in the two structs */
    int use;
};

/* clang-format off */
#define OPERAND(name, to) #name, offsetof(struct maskc_launch, name), offsetof(struct abi_args, to)
static const struct operand operands[] = {
    {OPERAND(query, q),        READ_FORWARD | READ_BACKWARD},
    {OPERAND(key, k),          READ_FORWARD | READ_BACKWARD | OF_KEYS},
    {OPERAND(value, v),        READ_FORWARD | READ_BACKWARD | OF_KEYS},
    {OPERAND(out, o),          WRITTEN_FORWARD | READ_BACKWARD},
    {OPERAND(grad_out, d_o),   READ_BACKWARD},
    {OPERAND(grad_query, d_q), WRITTEN_BACKWARD},
    {OPERAND(grad_key, d_k),   WRITTEN_BACKWARD | OF_KEYS},
    {OPERAND(grad_value, d_v), WRITTEN_BACKWARD | OF_KEYS},
};
/* clang-format on */

static uint64_t magnitude(int64_t stride)
{
    return stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
}

static uint32_t heads_of(const struct launch *c, const struct operand *o)
{
    const struct artifact *a = c->k->artifact;
    return o->use & OF_KEYS ? request_kv_heads(&a->request, a->mask) : a->mask->heads;
}

static uint32_t rows_of(const struct launch *c, const struct operand *o)
{
    return o->use & OF_KEYS ? c->shape.keys : c->shape.queries;
}

static struct abi_tensor with_defaults(const struct launch *c, const struct operand *o,
                                       struct maskc_tensor t)
{
    const int64_t d = c->k->artifact->request.head_dim, heads = heads_of(c, o);
    struct abi_tensor r = {t.data, t.batch, t.row, t.head};
    if (t.batch == 0 && t.row == 0 && t.head == 0) {
        r.head = d;
        r.row = d * heads;
        r.batch = r.row * rows_of(c, o);
    }
    if (c->l->offsets)
        r.batch = 0;
    return r;
}

/* True if a dimension's stride is a whole number of 16 bytes, its end is within 2^60 bytes and, if the tensor is written, rows
   do not overlap. Overlap of two dimensions is not looked for. */
static bool step_fits(const struct launch *c, int64_t stride, uint64_t count, bool written)
{
    const uint32_t bytes = dtype_bytes(c->k->artifact->request.dtype);
    const uint64_t step = magnitude(stride);
    if (count < 2)
        return true;
    return (wide)step * bytes % 16 == 0 && (wide)step * bytes * count < (wide)1 << 60 &&
           (!written || step >= c->k->artifact->request.head_dim);
}

static int check_operand(const struct launch *c, const struct operand *o, struct abi_tensor t,
                         bool written)
{
    const uint64_t rows = c->l->offsets ? c->l->tokens : rows_of(c, o);
    if (!t.data)
        return error_set(c->e, ERROR_INPUT, "launch: %s is null", o->name);
    if ((uintptr_t)t.data % 16)
        return error_set(c->e, ERROR_INPUT, "launch: %s is not aligned to 16 bytes", o->name);
    if (!step_fits(c, t.head, heads_of(c, o), written) || !step_fits(c, t.row, rows, written) ||
        !step_fits(c, t.batch, c->l->offsets ? 1 : c->shape.batch, written))
        return error_set(
            c->e, ERROR_INPUT,
            "launch: %s has strides (%lld, %lld, %lld) that are not multiples of 16 "
            "bytes, overlap or are out of range",
            o->name, (long long)t.batch, (long long)t.row, (long long)t.head);
    return 0;
}

int launch_fill_tensors(const struct launch *c, struct abi_args *a)
{
    const bool backward = c->l->pass == MASKC_BACKWARD;
    const int read = backward ? READ_BACKWARD : READ_FORWARD;
    const int written = backward ? WRITTEN_BACKWARD : WRITTEN_FORWARD;
    for (size_t k = 0; k < sizeof operands / sizeof *operands; k++) {
        const struct operand *o = &operands[k];
        struct maskc_tensor given;
        if (!(o->use & (read | written)))
            continue;
        memcpy(&given, (const char *)c->l + o->given, sizeof given);
        struct abi_tensor t = with_defaults(c, o, given);
        if (check_operand(c, o, t, o->use & written) < 0)
            return -1;
        memcpy((char *)a + o->args, &t, sizeof t);
    }
    if (!c->l->lse || (uintptr_t)c->l->lse % sizeof(float))
        return launch_refuse(c, "lse is null or not aligned to 4 bytes");
    return 0;
}
