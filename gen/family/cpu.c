/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two CPU families: a pack phase over the heads, then the items of a plan. Sizes are those of
   templates/cpu/sizes.h. */
#include "gen/family/cpu.h"
#include "templates/cpu/sizes.h"
#include <inttypes.h>
#include <stdio.h>

static uint32_t cpu_chunk_cols(const struct target *t, const struct kernel_config *c)
{
    return CPU_CHUNK_COLS(family_is_matrix(t, c), c->request.bias);
}

static uint64_t row_width(const struct target *t, const struct kernel_config *c)
{
    return CPU_WIDTH(t->vector_bytes, c->request.head_dim);
}

static uint32_t cpu_gathers_kept(const struct kernel_config *c)
{
    return c->gathers_kept ? c->gathers_kept : GATHERS_KEPT;
}

static uint64_t row_block_bytes(const struct target *t, const struct kernel_config *c)
{
    return CPU_ROW_BLOCK_BYTES(family_is_matrix(t, c), cpu_gathers_kept(c), row_width(t, c),
                               CPU_DEPTH(c->request.head_dim));
}

static uint64_t block_bytes(const struct target *t, const struct kernel_config *c)
{
    return CPU_BLOCK_BYTES(family_is_matrix(t, c), (uint64_t)cpu_chunk_cols(t, c),
                           c->request.backward, c->request.bias);
}

static uint64_t pack_row(const struct target *t, const struct kernel_config *c)
{
    return CPU_PACK_ROW_BYTES(family_is_matrix(t, c), c->request.backward, c->request.head_dim,
                              row_width(t, c), CPU_DEPTH(c->request.head_dim));
}

/* Sparsegen needs all of a row at once. With a bias an item of the forward plan may have a step only where its keys
   are those of its class: dX is summed along diagonals in its place (templates/cpu/bias.h). */
uint32_t cpu_can(const struct kernel_request *r)
{
    const bool softmax = r->transform == ABI_SOFTMAX, bias = r->bias != ABI_BIAS_NONE;
    return CAN_PIECES | CAN_JOIN_ROWS | (softmax ? CAN_SPLIT : 0) |
           (bias      ? JOINS_KEYS_ALONE
            : softmax ? 0
                      : CAN_WHOLE_CLASSES);
}

static uint64_t partial_row(const struct target *t, const struct kernel_config *c)
{
    return cpu_can(&c->request) & CAN_SPLIT
               ? CPU_PARTIAL_ROW_BYTES(c->request.backward, row_width(t, c))
               : 0;
}

static struct phase phase_of(const char *entry, enum abi_over over)
{
    struct phase p = {.over = over};
    snprintf(p.entry, sizeof p.entry, "%s", entry);
    return p;
}

/* Softmax needs one block. Sparsegen needs all columns of a row: blocks of those, one begun, and one to find
   that no more come. */
static void add_scratch(const struct target *t, const struct kernel_config *c,
                        struct launch_record *ret)
{
    const uint64_t block = block_bytes(t, c), cols = cpu_chunk_cols(t, c);
    const bool all = c->request.transform == ABI_SPARSEGEN;
    ret->scratch_fixed = row_block_bytes(t, c) + block * (all ? 2 : 1);
    ret->scratch_col = all ? (block + cols - 1) / cols : 0;
}

static void add_backward(const struct kernel_config *c, struct launch_record *ret)
{
    const bool bias = c->request.bias != ABI_BIAS_NONE;
    struct phase *p = ret->backward;
    *p++ = phase_of("attention_pack_backward", ABI_OVER_HEADS);
    if (bias && c->request.transform == ABI_SOFTMAX && dtype_bytes(c->request.dtype) == 2)
        *p++ = phase_of("attention_delta", ABI_OVER_FORWARD);
    *p++ = phase_of("attention_dq", bias ? ABI_OVER_WORK : ABI_OVER_FORWARD);
    *p++ = phase_of("attention_pack_transposed", ABI_OVER_HEADS);
    *p++ = phase_of("attention_dkv", ABI_OVER_TRANSPOSED);
    if (bias)
        *p++ = phase_of("attention_diagonals", ABI_OVER_HEADS);
    if (c->request.kv_heads)
        *p++ = phase_of("attention_key_heads", ABI_OVER_KEY_HEADS);
    ret->n_backward = (uint32_t)(p - ret->backward);
    ret->delta_row = sizeof(float);
}

void cpu_launch(const struct target *t, const struct kernel_config *c, enum family_pass pass,
                struct launch_record *ret)
{
    ret->pack_row = pack_row(t, c);
    ret->partial_row = partial_row(t, c);
    add_scratch(t, c, ret);
    if (pass == FAMILY_BACKWARD) {
        add_backward(c, ret);
        return;
    }
    ret->forward[ret->n_forward++] = phase_of("attention_pack", ABI_OVER_HEADS);
    ret->forward[ret->n_forward++] = phase_of("attention_forward", ABI_OVER_FORWARD);
}

/* Text that the preprocessor chooses needs a macro; all else is an enum. */
void cpu_numbers(const struct target *t, const struct kernel_config *c, struct text *out)
{
    const struct kernel_request *r = &c->request;
    const bool matrix = family_is_matrix(t, c);
    text_add(out, "#define VECTOR_BYTES %" PRIu32 "\n#define BACKWARD %d\n", t->vector_bytes,
             r->backward);
    if (r->bias)
        text_add(out, "#define BIAS %d /* %s */\n", (int)r->bias, bias_name(r->bias));
    if (matrix)
        text_add(out, "#define MATRIX 1\n%s", t->dots ? "#define DOTS 1\n" : "");
    text_add(out, "enum {\n");
    if (matrix)
        text_add(out, "    GATHERED = %" PRIu32 ",\n", cpu_gathers_kept(c));
    text_add(out, "    CHUNK_COLS = %" PRIu32 ",\n    PACK_ROW_BYTES = %" PRIu64 ",\n",
             cpu_chunk_cols(t, c), pack_row(t, c));
}
