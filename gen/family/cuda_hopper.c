/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over steps by wgmma and TMA, for sm_90a. A block takes a group of row blocks of 64 rows, one to each warpgroup;
   one more warp copies. Each pass has kernels of several shapes, and takes the one with the fewest predicted clocks. */
#include "gen/family/cuda_hopper.h"
#include "gen/family/cuda.h"
#include "templates/cuda/hopper/sizes.h"
#include <inttypes.h>
#include <string.h>

enum {
    ROWS = 64, /* of a row block */
    MOST_DIM = 128,
    GROUP_THREADS = 128,
    WARP_THREADS = 32,
    LEAST_LENGTH =
        512, /* the times are of n = 2048 and 8192; blocks of 256 stand for shorter masks */
};

/* Clocks are fitted by least squares to 53 times of prototypes on an H100 (bf16, 12 heads, 65536 tokens at D = 64, half of
   these at D = 128; n = 2048 and 8192): dense, causal, windows with and without global rows, blocks of 256, scattered tiles
   and columns. They miss these by 3.5 % (root mean square), a time left out of the fit by 7 %. Few times: wide of dK and dV
   (dense alone), all shapes of D above 64. Dense and causal backward by the narrow ones: as two warpgroups that shared their
   steps. Gathers are measured in the wide forward kernel alone, and taken for what a
   processor can do. */
/* clang-format off */
static const struct step_shape shapes[PASSES][STEP_SHAPES_MOST] = {
    [PASS_FORWARD] = {
        {.name = "wide", .warpgroups = 3, .slots = 4, .stages = 4, .row_buffers = 2, .blocks = 1, .registers = 160,
         .copy_registers = 32, .in_turn = true, .least_dim = 8, .most_dim = 64, .clocks = {1738, 1087, 630, 537, 123, 124}},
        {.name = "four", .warpgroups = 4, .slots = 2, .stages = 6, .row_buffers = 2, .blocks = 1, .registers = 112,
         .copy_registers = 24, .least_dim = 8, .most_dim = 64, .clocks = {842, 828, 304, 304, 74, 124}},
        {.name = "narrow", .warpgroups = 1, .slots = 2, .stages = 3, .row_buffers = 2, .blocks = 3, .rows_held = true,
         .least_dim = 8, .most_dim = 64, .clocks = {980, 334, 498, 498, 1171, 372}},
        {.name = "deep", .warpgroups = 2, .slots = 4, .stages = 2, .row_buffers = 2, .blocks = 1, .registers = 232,
         .copy_registers = 40, .least_dim = 72, .most_dim = MOST_DIM, .clocks = {3930, 808, 786, 786, 410, 124}},
    },
    [PASS_DQ] = {
        {.name = "wide", .warpgroups = 2, .slots = 4, .stages = 3, .row_buffers = 2, .blocks = 1, .registers = 232,
         .copy_registers = 40, .least_dim = 8, .most_dim = 64, .clocks = {1652, 724, 730, 730, 455, 124}},
        {.name = "narrow", .warpgroups = 1, .slots = 2, .stages = 3, .row_buffers = 2, .blocks = 2, .registers = 232,
         .copy_registers = 24, .rows_held = true, .least_dim = 8, .most_dim = 64, .clocks = {1072, 283, 578, 578, 970, 248}},
        {.name = "deep", .warpgroups = 2, .slots = 2, .stages = 3, .row_buffers = 1, .blocks = 1, .registers = 232,
         .copy_registers = 40, .least_dim = 72, .most_dim = MOST_DIM, .clocks = {2758, 526, 777, 777, 215, 124}},
    },
    [PASS_DKV] = {
        {.name = "wide", .warpgroups = 2, .slots = 4, .stages = 3, .row_buffers = 2, .blocks = 1, .registers = 240,
         .copy_registers = 24, .wait_sums = true, .least_dim = 8, .most_dim = 64, .clocks = {1300, 1030, 960, 960, 530, 124}},
        {.name = "narrow", .warpgroups = 1, .slots = 2, .stages = 4, .row_buffers = 2, .blocks = 2, .registers = 232,
         .copy_registers = 24, .rows_held = true, .least_dim = 8, .most_dim = 64, .clocks = {662, 331, 1218, 1218, 679, 248}},
        {.name = "deep", .warpgroups = 2, .slots = 2, .stages = 3, .row_buffers = 1, .blocks = 1, .registers = 232,
         .copy_registers = 40, .wait_sums = true, .least_dim = 72, .most_dim = MOST_DIM, .clocks = {4885, 552, 1185, 1185, 200, 124}},
    },
};
/* clang-format on */

uint32_t hopper_shapes(const struct kernel_request *r, enum machine_pass pass,
                       const struct step_shape *ret[STEP_SHAPES_MOST])
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < STEP_SHAPES_MOST; k++)
        if (shapes[pass][k].least_dim <= r->head_dim && r->head_dim <= shapes[pass][k].most_dim)
            ret[count++] = &shapes[pass][k];
    return count;
}

const struct step_shape *hopper_shape(const struct kernel_config *c, enum machine_pass pass)
{
    const struct step_shape *list[STEP_SHAPES_MOST];
    const uint32_t count = hopper_shapes(&c->request, pass, list);
    return list[c->step_shape[pass] < count ? c->step_shape[pass] : 0];
}

uint32_t hopper_shared_bytes(const struct step_shape *s, enum machine_pass pass,
                             uint32_t head_dim)
{
    if (pass == PASS_FORWARD)
        return HOPPER_FORWARD_BYTES(s->warpgroups, s->slots, s->stages, s->row_buffers,
                                    head_dim);
    if (pass == PASS_DQ)
        return HOPPER_QUERY_BYTES(s->warpgroups, s->slots, s->stages, s->row_buffers, head_dim);
    return HOPPER_KEY_BYTES(s->warpgroups, s->slots, s->stages, s->row_buffers, head_dim);
}

static bool applies(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)pass;
    return !strcmp(t->arch, "sm_90a") && !t->no_tensor_maps && dtype_bytes(r->dtype) == 2 &&
           r->transform == ABI_SOFTMAX && !r->bias && r->head_dim <= MOST_DIM;
}

static uint32_t can(const struct target *t, const struct kernel_request *r,
                    enum family_pass pass)
{
    (void)t;
    (void)r;
    (void)pass;
    return CAN_PIECES | CAN_CUT_ROWS | MERGES_LAST;
}

static const struct step_shape *least_shape(uint32_t head_dim, enum machine_pass pass)
{
    const struct kernel_request r = {.head_dim = head_dim};
    const struct step_shape *list[STEP_SHAPES_MOST];
    const uint32_t count = hopper_shapes(&r, pass, list);
    const struct step_shape *least = list[0];
    for (uint32_t k = 1; k < count; k++)
        least = list[k]->warpgroups < least->warpgroups ? list[k] : least;
    return least;
}

/* Rates choose the pieces of an item: tiles, ranges, gathers, or rows of their own. They are the clocks of the shape with the
   fewest warpgroups, whose groups are single row blocks. */
static void set_rates(const struct step_shape *s, double worker, uint32_t head_dim,
                      double rate[RATES])
{
    const struct step_clocks *c = &s->clocks;
    const double entries = ROWS * ABI_TILE_COLS, second = worker / STEP_CLOCK;
    const double slot = ((double)c->step / s->warpgroups + c->row_block) / s->slots;
    rate[RATE_TILE_ENTRY] = second * slot / entries;
    rate[RATE_TILE_MASK] = second * c->pattern / s->slots / entries;
    rate[RATE_GATHER] = second * c->gathered / head_dim;
    rate[RATE_ROW_ENTRY] = second * (c->step + c->row_block) / s->slots / ABI_TILE_COLS;
    rate[RATE_ROW_ITEM] = second * c->group;
    rate[RATE_ITEM] = second * c->group / s->warpgroups;
}

static void rates(const struct target *t, const struct kernel_config *c, struct machine *m)
{
    (void)t;
    for (int k = 0; k < PASSES; k++) {
        const struct step_shape *s = least_shape(c->request.head_dim, (enum machine_pass)k);
        const uint32_t processors = m->processors ? m->processors : STEP_PROCESSORS;
        const double worker = (double)m->workers / (processors * s->blocks);
        memset(m->rate[k], 0, sizeof m->rate[k]);
        set_rates(s, worker, c->request.head_dim, m->rate[k]);
    }
}

static struct family_shape shape(const struct target *t, const struct kernel_config *c)
{
    (void)c;
    return (struct family_shape){ROWS, t->threads};
}

/* A warpgroup copies where registers go from it to the others, else a warp. */
static uint32_t block_threads(const struct step_shape *s)
{
    return GROUP_THREADS * s->warpgroups + (s->registers ? GROUP_THREADS : WARP_THREADS);
}

static struct phase make_phase(const struct kernel_config *c, enum machine_pass pass)
{
    static const struct {
        const char *entry;
        enum abi_over over;
        enum phase_arguments arguments;
    } of[PASSES] = {
        [PASS_FORWARD] = {"attention_forward", ABI_OVER_FORWARD, PHASE_HOPPER_FORWARD},
        [PASS_DQ] = {"attention_dq", ABI_OVER_FORWARD, PHASE_HOPPER_DQ},
        [PASS_DKV] = {"attention_dkv", ABI_OVER_TRANSPOSED, PHASE_HOPPER_DKV},
    };
    const struct step_shape *s = hopper_shape(c, pass);
    struct phase p = cuda_phase(of[pass].entry, of[pass].over, block_threads(s),
                                hopper_shared_bytes(s, pass, c->request.head_dim));
    p.arguments = of[pass].arguments;
    return p;
}

/* The launch after a pass, which merges the parts of global rows: a thread for each position of the head. */
static struct phase merge_phase(const char *entry, enum abi_over over)
{
    return cuda_phase(entry, over, MOST_DIM, 0);
}

/* Floats that a part of a global row leaves (templates/cuda/hopper/partial.h). */
static uint64_t partial_row(const struct kernel_config *c)
{
    const uint64_t width = (c->request.head_dim + 15) / 16 * 16;
    return sizeof(float) * ((1 + c->request.backward) * width + 8);
}

static void launch(const struct target *t, const struct kernel_config *c, enum family_pass pass,
                   struct launch_record *ret)
{
    ret->partial_row = c->cut_rows ? partial_row(c) : 0;
    if (pass == FAMILY_FORWARD) {
        ret->forward[ret->n_forward++] = make_phase(c, PASS_FORWARD);
        if (c->cut_rows)
            ret->forward[ret->n_forward++] =
                merge_phase("attention_forward_merge", ABI_OVER_FORWARD_MERGE);
        return;
    }
    ret->backward[ret->n_backward++] = make_phase(c, PASS_DQ);
    if (c->cut_rows)
        ret->backward[ret->n_backward++] =
            merge_phase("attention_dq_merge", ABI_OVER_FORWARD_MERGE);
    ret->backward[ret->n_backward++] = make_phase(c, PASS_DKV);
    if (c->cut_rows)
        ret->backward[ret->n_backward++] =
            merge_phase("attention_dkv_merge", ABI_OVER_TRANSPOSED_MERGE);
    cuda_add_key_heads(t->threads, &c->request, ret);
    ret->delta_row = 2 * sizeof(float); /* delta, and LSE to base 2 */
}

static void add_number(struct text *out, const char *pass, const char *name, uint32_t value)
{
    text_add(out, "    %s_%s = %" PRIu32 ",\n", pass, name, value);
}

/* `held`: row operands that stay in registers in shapes that hold them. */
static void add_shape(struct text *out, const char *pass, const struct step_shape *s,
                      uint32_t held)
{
    add_number(out, pass, "WARPGROUPS", s->warpgroups);
    add_number(out, pass, "SLOTS", s->slots);
    add_number(out, pass, "STAGES", s->stages);
    add_number(out, pass, "ROW_BUFFERS", s->row_buffers);
    add_number(out, pass, "BLOCKS", s->blocks);
    add_number(out, pass, "REGISTERS", s->registers);
    add_number(out, pass, "COPY_REGISTERS", s->copy_registers);
    add_number(out, pass, "ROWS_HELD", s->rows_held ? held : 0);
    add_number(out, pass, "IN_TURN", s->in_turn);
    add_number(out, pass, "THREADS", block_threads(s));
}

static void numbers(const struct target *t, const struct kernel_config *c, struct text *out)
{
    (void)t;
    text_add(out, "enum {\n");
    add_shape(out, "FORWARD", hopper_shape(c, PASS_FORWARD), 1);
    add_shape(out, "QUERY", hopper_shape(c, PASS_DQ), 2);
    add_number(out, "QUERY", "WAIT_SUMS", hopper_shape(c, PASS_DQ)->wait_sums);
    add_shape(out, "KEY", hopper_shape(c, PASS_DKV), 2);
    add_number(out, "KEY", "WAIT_SUMS", hopper_shape(c, PASS_DKV)->wait_sums);
    text_add(out, "    MERGE_THREADS = %d,\n    CUT_ROWS = %d,\n};\n", MOST_DIM, c->cut_rows);
}

extern const struct kernel_family family_cuda_hopper;
const struct kernel_family family_cuda_hopper = {
    .name = "cuda_hopper",
    .takes = "bf16 and f16 on sm_90a, softmax without a bias, head dimensions up to 128",
    .matrix = true,
    .alone = true,
    .least_length = LEAST_LENGTH,
    .applies = applies,
    .can = can,
    .rates = rates,
    .shape = shape,
    .step_shapes = hopper_shapes,
    .launch = launch,
    .numbers = numbers,
    .common_numbers = cuda_numbers,
    .shared = "cuda/",
    .folder = "cuda/hopper/",
    .backward_unit = {"cuda/hopper/keys.cu", "cuda/hopper/queries.cu"},
    .forward_unit = "cuda/hopper/forward.cu",
};
