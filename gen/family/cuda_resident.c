/* SPDX-License-Identifier: Apache-2.0 */
/* Whole heads on chip: problems that the resident kernels accept, and their shape. Sizes are those of
   templates/cuda/common/sizes.h. */
#include "gen/family/cuda_resident.h"
#include "gen/family/cuda.h"
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Heads are put together in a block until it has BLOCK_WARPS or BLOCK_BYTES of shared memory; one head
   may be more. Up to FORWARD_BYTES two blocks fit the largest parts; longer heads are for the tiled family.
   Sparsegen holds all scores of a row in registers. */
enum {
    ROWS = 16, /* of a warp */
    BLOCK_WARPS = 4,
    BLOCK_BYTES = 48 * 1024,
    FORWARD_BYTES = 99 * 1024,
    REGISTERS = 64 * 1024, /* of a processor */
    MOST_REGISTERS = 255,  /* of a thread */
    ALL_ROWS = 128,        /* whose scores a warp holds, all of a query */
    WIDEST_ROWS = 96,      /* D > 240: scores of three tiles, beside sums of D / 2 registers */
    /* Warps of the backward pass: nine to twelve leave each thread 168 registers, more 128. Sums of a
       row block of 16 alone take D / 2, and the dS that it holds n / 4 and a few. */
    BACKWARD_WARPS = 12,
    BACKWARD_WARPS_WIDE = 8, /* D > 128 */
    BACKWARD_ROWS = 256,     /* a word for each of 16 row blocks */
};

static uint32_t rounded(uint32_t x)
{
    return (x + ROWS - 1) / ROWS * ROWS;
}

static uint32_t forward_bytes(const struct kernel_request *r, uint32_t rows)
{
    return RESIDENT_FORWARD_BYTES(rows, r->head_dim, 0);
}

static uint32_t backward_bytes(const struct kernel_request *r, uint32_t rows)
{
    return RESIDENT_BACKWARD_BYTES(rows, r->head_dim);
}

static bool is_candidate(const struct target *t, const struct kernel_request *r)
{
    return t->kind == TARGET_CUDA && dtype_bytes(r->dtype) == 2 && r->bias == ABI_BIAS_NONE &&
           !r->keys && r->length > 0 && r->length <= FORWARD_BYTES / 4 / ROWS;
}

static bool fits_forward(const struct target *t, const struct kernel_request *r, uint32_t rows)
{
    const uint32_t bytes = forward_bytes(r, rows);
    return bytes <= FORWARD_BYTES && bytes <= t->shared_bytes &&
           (r->transform != ABI_SPARSEGEN || rows <= ALL_ROWS) &&
           (r->head_dim <= 240 || rows <= WIDEST_ROWS);
}

/* Two row blocks per warp halve the number of warps and the shared-memory reads, which limit the backward pass. Used if
   D <= 64 and rows >= 64, and either two thread blocks fit an SM (up to 128 rows: their four warps then have 255 registers
   a thread) or there are more row blocks than BACKWARD_WARPS. */
static bool two_row_blocks(const struct target *t, const struct kernel_request *r,
                           uint32_t rows)
{
    const bool two_blocks =
        rows <= ALL_ROWS && 2 * (backward_bytes(r, rows) + 1024) <= t->shared_bytes + 1024;
    return r->head_dim <= 64 && rows >= 64 && (two_blocks || rows > BACKWARD_WARPS * ROWS);
}

static uint32_t backward_warps(const struct target *t, const struct kernel_request *r,
                               uint32_t rows)
{
    const uint32_t row_blocks = rounded(rows) / ROWS;
    return two_row_blocks(t, r, rows) ? (row_blocks + 1) / 2 : row_blocks;
}

static bool fits_backward(const struct target *t, const struct kernel_request *r, uint32_t rows)
{
    const uint32_t most = r->head_dim > 128 ? BACKWARD_WARPS_WIDE : BACKWARD_WARPS;
    return fits_forward(t, r, rows) && backward_bytes(r, rows) <= t->shared_bytes &&
           backward_warps(t, r, rows) <= most && rows <= BACKWARD_ROWS;
}

/* Whole row blocks, whose loads need no bounds check. If those do not fit the target: only the sequence's rows, rounded
   up to pairs. */
static uint32_t stored_rows(const struct target *t, const struct kernel_request *r)
{
    const uint32_t whole = rounded(r->length), pairs = (r->length + 1) / 2 * 2;
    const bool backward = r->backward && fits_backward(t, r, pairs);
    return backward                    ? fits_backward(t, r, whole) ? whole : pairs
           : fits_forward(t, r, whole) ? whole
                                       : pairs;
}

/* Registers per thread without spills (checked by resource_budgets_test): 128 (four blocks of 128 threads) if
   rows <= ALL_ROWS, D <= 64 and there is no dropout above D = 32; otherwise 168. 255 if D > 80, for sparsegen, and for
   D > 64 with dropout if the last tile is cut, on sm_100a with dropout or more than ALL_ROWS rows. */
static uint32_t forward_registers(const struct target *t, const struct kernel_request *r,
                                  uint32_t rows)
{
    const bool sm_100a = !strcmp(t->name, "sm_100a");
    const bool tight = r->head_dim > 64 && ((r->dropout && (rows % ROWS || sm_100a)) ||
                                            (sm_100a && rows > ALL_ROWS));
    const bool draws = r->dropout && r->head_dim > 32;
    if (r->head_dim > 80 || r->transform == ABI_SPARSEGEN || tight)
        return MOST_REGISTERS;
    return rows <= ALL_ROWS && r->head_dim <= 64 && !draws ? 128 : 168;
}

static uint32_t backward_registers(const struct kernel_request *r, uint32_t row_blocks)
{
    return r->head_dim > 64 || row_blocks > 1 ? MOST_REGISTERS : 168;
}

/* Thread blocks that fit an SM. */
static uint32_t fit_blocks(const struct target *t, const struct resident_shape *s,
                           uint32_t registers)
{
    uint32_t by_registers = REGISTERS / registers / (32 * s->warps * s->heads);
    uint32_t by_shared = cuda_blocks_that_fit(t, s->shared_bytes);
    uint32_t blocks = by_registers < by_shared ? by_registers : by_shared;
    return blocks ? blocks : 1;
}

static void group_heads(const struct target *t, struct resident_shape *s, uint32_t head_bytes,
                        uint32_t registers)
{
    s->heads = 1;
    while ((s->heads + 1) * s->warps <= BLOCK_WARPS &&
           (s->heads + 1) * head_bytes <= BLOCK_BYTES)
        s->heads++;
    s->shared_bytes = s->heads * head_bytes;
    s->blocks = fit_blocks(t, s, registers);
}

/* Copies Q to shared memory too, if an SM still holds the same number of heads and blocks, and rows and D are small enough. */
static void copy_queries(const struct target *t, const struct kernel_request *r,
                         struct resident_shape *s)
{
    struct resident_shape with = *s;
    group_heads(t, &with, RESIDENT_FORWARD_BYTES(s->rows, r->head_dim, 1),
                forward_registers(t, r, s->rows));
    with.q_copied = true;
    if (s->rows <= ALL_ROWS && r->head_dim <= 128 && with.heads == s->heads &&
        with.blocks == s->blocks && with.shared_bytes <= t->shared_bytes)
        *s = with;
}

/* Keeps K and V on chip. If a head has more row blocks of 16 rows than a thread block has warps, they are spread evenly
   over the warps. */
bool resident_forward(const struct target *t, const struct kernel_request *r,
                      struct resident_shape *ret)
{
    if (!is_candidate(t, r))
        return false;
    uint32_t rows = stored_rows(t, r), row_blocks = rounded(rows) / ROWS;
    uint32_t rounds = (row_blocks + BLOCK_WARPS - 1) / BLOCK_WARPS;
    if (!fits_forward(t, r, rows))
        return false;
    if (ret) {
        *ret = (struct resident_shape){
            .rows = rows, .warps = (row_blocks + rounds - 1) / rounds, .row_blocks = 1};
        group_heads(t, ret, forward_bytes(r, rows), forward_registers(t, r, rows));
        copy_queries(t, r, ret);
    }
    return true;
}

bool resident_backward(const struct target *t, const struct kernel_request *r,
                       struct resident_shape *ret)
{
    if (!r->backward || !resident_forward(t, r, NULL))
        return false;
    const uint32_t rows = stored_rows(t, r);
    if (!fits_backward(t, r, rows))
        return false;
    if (ret) {
        *ret = (struct resident_shape){.rows = rows,
                                       .warps = backward_warps(t, r, rows),
                                       .row_blocks = two_row_blocks(t, r, rows) ? 2 : 1};
        group_heads(t, ret, backward_bytes(r, rows), backward_registers(r, ret->row_blocks));
    }
    return true;
}

/* ---- the family ---- */

static bool takes(const struct target *t, const struct kernel_request *r, enum family_pass pass,
                  struct resident_shape *ret)
{
    return (pass == FAMILY_FORWARD ? resident_forward : resident_backward)(t, r, ret);
}

static bool applies(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    return takes(t, r, pass, NULL);
}

static uint32_t can(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)t, (void)r, (void)pass;
    return MERGES_LAST |
           SKIPS_FRAGMENTS; /* prices; the kernels skip halves, two fragments together */
}

/* Shape of the plan: its row blocks are those of the tiled kernels, which may do the backward pass. */
static struct family_shape shape(const struct target *t, const struct kernel_config *c)
{
    (void)c;
    return (struct family_shape){t->threads / 2, t->threads};
}

static uint32_t row_blocks_of(const struct target *t, const struct kernel_config *c)
{
    const uint32_t block_rows = shape(t, c).block_rows;
    const uint32_t row_blocks = (c->request.length + block_rows - 1) / block_rows;
    return row_blocks ? row_blocks : 1;
}

/* Scales the rates of the tiled kernels, for a machine without measurements. K and V of a head come to shared memory once, not once for each row block. A warp begins
   its row block without a block's start, which is about half of an item's cost. The backward pass has five products,
   whereas dQ and dK, dV of the tiled kernels have eight. */
static void guess_rates(uint32_t row_blocks, struct machine *m)
{
    const double products[PASSES] = {1, 5.0 / 8, 5.0 / 8};
    for (int pass = 0; pass < PASSES; pass++) {
        m->rate[pass][RATE_ITEM] /= 2;
        m->rate[pass][RATE_GATHER] /= row_blocks;
        m->rate[pass][RATE_TILE_FLOP] *= products[pass];
        m->rate[pass][RATE_TILE_ENTRY] *= products[pass];
        m->rate[pass][RATE_TILE_MASK] *= products[pass];
    }
}

/* Row blocks of 64 rows that warps of a processor work on at a time. */
static uint32_t in_flight(const struct target *t, const struct kernel_config *c,
                          enum machine_pass pass)
{
    struct resident_shape s;
    if (!takes(t, &c->request, pass == PASS_FORWARD ? FAMILY_FORWARD : FAMILY_BACKWARD, &s))
        return 1;
    const uint32_t rows = s.blocks * s.heads * s.warps * s.row_blocks * ROWS;
    return rows > shape(t, c).block_rows ? rows / shape(t, c).block_rows : 1;
}

/* A head's loads, work and stores follow each other, so that nothing hides its bytes. A row block searches the list of all
   tiles for its bits: the factor of a pattern grows with the row blocks of a head. */
static void measured_rates(uint32_t length, uint32_t row_blocks, struct machine *m)
{
    for (int pass = 0; pass < PASSES; pass++) {
        const struct head_rates *of = &m->heads[pass];
        const bool pairs = length > BACKWARD_WARPS * ROWS && of->pairs > 0;
        const double work =
            (length > ALL_ROWS && of->chunks > 0 ? of->chunks : 1) * (pairs ? of->pairs : 1);
        double *rate = m->rate[pass];
        rate[RATE_ITEM] *= work * of->item;
        rate[RATE_ITEM_ELEMENT] *= work * of->item;
        rate[RATE_LOOP] *= work * of->item;
        rate[RATE_GATHER] *= work * of->gather;
        rate[RATE_TILE_FLOP] *= work * of->tile;
        rate[RATE_TILE_ENTRY] *= work * of->entry;
        rate[RATE_TILE_MASK] *= work * of->mask * pow(row_blocks, of->growth);
        rate[RATE_STREAM] = of->bytes * m->workers / m->bytes;
        rate[RATE_EXPOSED] = 0;
    }
}

static void rates(const struct target *t, const struct kernel_config *c, struct machine *m)
{
    const uint32_t row_blocks = row_blocks_of(t, c);
    if (m->heads[PASS_FORWARD].warps <= 0) {
        guess_rates(row_blocks, m);
        return;
    }
    measured_rates(c->request.length, row_blocks, m);
    for (int pass = 0; pass < PASSES; pass++) {
        struct resident_shape s;
        if (takes(t, &c->request, pass == PASS_FORWARD ? FAMILY_FORWARD : FAMILY_BACKWARD, &s))
            cuda_slow_down(m, (enum machine_pass)pass,
                           m->heads[pass].warps / (s.blocks * s.heads * s.warps));
    }
}

static uint32_t threads_of(const struct resident_shape *s)
{
    return 32 * s->warps * s->heads;
}

static void launch(const struct target *t, const struct kernel_config *c, enum family_pass pass,
                   struct launch_record *ret)
{
    struct resident_shape s;
    takes(t, &c->request, pass, &s);
    cuda_add_scratch(&c->request, ret);
    if (pass == FAMILY_FORWARD)
        ret->forward[ret->n_forward++] = cuda_phase(
            "attention_resident_forward", ABI_OVER_HEADS, threads_of(&s), s.shared_bytes);
    else {
        ret->backward[ret->n_backward++] = cuda_phase(
            "attention_resident_backward", ABI_OVER_HEADS, threads_of(&s), s.shared_bytes);
        cuda_add_key_heads(t->threads, &c->request, ret);
    }
}

static void add_shape(const char *pass, const struct resident_shape *s, struct text *out)
{
    text_add(out, "    RESIDENT_%s_ROW_BLOCKS = %" PRIu32 ",\n", pass, s->row_blocks);
    text_add(out,
             "    RESIDENT_%s_WARPS = %" PRIu32 ",\n    RESIDENT_%s_HEADS = %" PRIu32
             ",\n    RESIDENT_%s_THREADS = %" PRIu32 ",\n    RESIDENT_%s_BLOCKS = %" PRIu32
             ",\n    RESIDENT_%s_SHARED = %" PRIu32 ",\n",
             pass, s->warps, pass, s->heads, pass, threads_of(s), pass, s->blocks, pass,
             s->shared_bytes);
}

static void numbers(const struct target *t, const struct kernel_config *c, struct text *out)
{
    struct resident_shape forward = {0}, backward = {0};
    resident_forward(t, &c->request, &forward);
    text_add(out, "enum {\n    RESIDENT_ROWS = %" PRIu32 ",\n", forward.rows);
    text_add(out, "    RESIDENT_Q_COPIED = %d,\n", forward.q_copied);
    add_shape("FORWARD", &forward, out);
    if (resident_backward(t, &c->request, &backward))
        add_shape("BACKWARD", &backward, out);
    text_add(out, "};\n");
}

extern const struct kernel_family family_cuda_resident;
const struct kernel_family family_cuda_resident = {
    .name = "cuda_resident",
    .takes = "bf16 and f16 on CUDA targets, without a bias, as many keys as queries, heads "
             "that fit a block's shared memory",
    .matrix = true,
    .applies = applies,
    .can = can,
    .rates = rates,
    .in_flight = in_flight,
    .shape = shape,
    .launch = launch,
    .numbers = numbers,
    .common_numbers = cuda_numbers,
    .shared = "cuda/",
    .folder = "cuda/resident/",
    .backward_unit = {"cuda/resident/backward.cu"},
    .forward_unit = "cuda/resident/forward.cu",
};
