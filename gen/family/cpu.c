/* SPDX-License-Identifier: Apache-2.0 */
/* What the two families of a CPU share: how the templates are launched: a pack phase over the heads, then the items of a plan. The
   sizes follow the structs of templates/cpu: numbers of 4 bytes throughout, 64-byte parts. */
#include "gen/family/cpu.h"
#include <inttypes.h>
#include <stdio.h>

enum {
    ROWS = 32,         /* of a row block */
    GATHER_STRIDE = 48 /* of gathered columns, transposed */
};

/* Score columns that the templates take at a time: with a matrix unit as many as the first-level cache holds, else
   enough that the cost of a chunk is not seen. */
static uint32_t cpu_chunk_cols(const struct target *t, const struct kernel_config *c)
{
    return family_is_matrix(t, &c->request) ? 256 : 512;
}

static uint64_t round_64(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static uint64_t row_width(const struct target *t, const struct kernel_config *c)
{
    uint64_t lanes = t->vector_bytes / 4;
    return (c->request.head_dim + lanes - 1) / lanes * lanes;
}

/* Elements of a row as a matrix unit takes them. */
static uint64_t row_depth(const struct kernel_config *c)
{
    return (c->request.head_dim + 31) / 32 * 32;
}

static uint32_t cpu_gathers_kept(const struct kernel_config *c)
{
    return c->gathers_kept ? c->gathers_kept : GATHERS_KEPT;
}

/* Gathered columns that a matrix unit's kernel keeps: whose they are, both operands as panels and as
   pairs of rows. */
static uint64_t gathered_bytes(const struct target *t, const struct kernel_config *c)
{
    enum { HEADER = 192 };
    return cpu_gathers_kept(c) * (HEADER + 4 * ROWS * (row_depth(c) + row_width(t, c))) + 64;
}

/* Two operands and two sums of the row block's rows, five numbers a row; gathered columns; for a matrix
   unit the operands rounded. */
static uint64_t row_block_bytes(const struct target *t, const struct kernel_config *c)
{
    uint64_t rows = 4 * (4 * ROWS * row_width(t, c) + 5 * ROWS);
    if (family_is_matrix(t, &c->request))
        return round_64(rows + 2 * 2 * ROWS * row_depth(c) + gathered_bytes(t, c));
    return round_64(rows + 4 * GATHER_STRIDE * row_width(t, c));
}

/* Scores, with a backward pass slopes, the columns of walks, bits of dropout, weights rounded, a
   bias's entries, and the groups. */
static uint64_t block_bytes(const struct target *t, const struct kernel_config *c)
{
    uint64_t cols = cpu_chunk_cols(t, c), scores = ROWS * (cols + 48);
    uint64_t slopes = c->request.backward ? scores : cols + 48,
             keep = ROWS * ((cols + 48) / 32 + 2);
    uint64_t groups = 8 * cols + 16;
    uint64_t bias = c->request.bias ? scores : 0;
    uint64_t weights = family_is_matrix(t, &c->request)
                           ? 2 * ROWS * (cols + 32) * (1 + c->request.backward)
                           : 0;
    return round_64(4 * (2 * scores + slopes + bias + keep + groups) + weights);
}

/* Panels are 256 columns and 48 more, the last one narrower: never more than 3/2 of the rows.
   Keys and values; with a backward pass all four operands transposed, and as rows. For a matrix
   unit what is transposed is pairs of features, and there are pairs of rows too, half a row each. */
static uint64_t pack_row(const struct target *t, const struct kernel_config *c)
{
    uint64_t panels = c->request.backward ? 4 : 1, rows = c->request.backward ? 4 : 2;
    if (family_is_matrix(t, &c->request))
        return 4 * (panels * row_depth(c) / 2 + rows * row_width(t, c) * 3 / 2);
    return 4 * (panels * c->request.head_dim * 3 / 2 + rows * row_width(t, c));
}

uint32_t cpu_can(const struct kernel_request *r)
{
    const bool resumes = r->transform == ABI_SOFTMAX && r->bias == ABI_BIAS_NONE;
    return CAN_PIECES | (resumes ? CAN_SPLIT | CAN_JOIN_ROWS : 0);
}

/* The row's sums, in the backward pass two of them, and two numbers. */
static uint64_t partial_row(const struct target *t, const struct kernel_config *c)
{
    return cpu_can(&c->request) & CAN_SPLIT
               ? 4 * ((1 + c->request.backward) * row_width(t, c) + 2)
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
    *p++ = phase_of("attention_dq", bias ? ABI_OVER_WORK : ABI_OVER_FORWARD);
    *p++ = phase_of("attention_pack_transposed", ABI_OVER_HEADS);
    *p++ = phase_of("attention_dkv", ABI_OVER_TRANSPOSED);
    if (bias)
        *p++ = phase_of("attention_diagonals", ABI_OVER_HEADS);
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
    const bool matrix = family_is_matrix(t, r);
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
