/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of probes; those that few ask for are last. */
#include "tools/maskc/calibrate/probe_table.h"

/* Few distances, near and far, beside a border: most are lines of their own. */
#define SCATTERED "distance(1, 2, 5, 11, 30) | global(0, -1) - diagonal(0)"

static const struct probe cpu_probes[] = {
    {"dense", 128, TILES},
    {"fixed", 1024, AS_IT_IS}, /* beside a matrix unit code of its own: begun early */
    {"dense", 512, TILES},
    {"causal", 512, TILES},
    {"blockbert-3", 2048, TILES},
    {"logsparse", 128, MIXED},
    {"longformer", 512, MIXED},
    {SCATTERED, 512, MIXED},
    {"blockbert-2", 512, TILES},
    {"blocks(4)", 128, TILES},
    {"blocks(8)", 512, TILES},
    {"random(0.3)&blocks(2)", 256, TILES},
    {"random(0.3)", 512, TILES},
    {"window(5)|columns(3, 77)", 512, TILES},
    {"bigbird", 256, TILES},
    {"none", 128, AS_IT_IS},
    {"star", 128, LINES},
    {"star", 2048, LINES},
    {"logsparse", 128, LINES},
    {"logsparse", 512, LINES},
    {"logsparse", 2048, LINES},
    {"logsparse", 4096, LINES},
    {"strided", 128, LINES},
    {"strided", 512, LINES},
    {"longformer", 128, LINES},
    {"longformer", 2048, LINES},
    {"bigbird", 128, LINES},
    {"bigbird", 512, LINES},
    {"bigbird", 2048, LINES},
    {"random(0.01)", 512, LINES},
    {SCATTERED, 512, LINES},
    {SCATTERED, 2048, LINES},
    {"fixed", 128, GATHERS},
    {"fixed", 512, GATHERS},
    {"bigbird", 512, GATHERS},
    {"columns(1, 33, 70)|window(2)", 1024, GATHERS},
    {"bigbird", 2048, GATHERS},
    {"dense", 128, ROWS},
    {"longformer", 128, ROWS},
    {"window(2)", 512, ROWS},
    {"rows(3, 40, 77)", 128, AS_IT_IS},
    {"rows(3, 40, 77, 204, 309)", 512, AS_IT_IS},
    {"bigbird", 1024, ROWS},
    {"logsparse", 1024, AS_IT_IS},
    {"longformer", 1024, AS_IT_IS},
    {"blockbert-3", 1024, AS_IT_IS},
    /* what goes by entry and what by element of a row is distinguished by other head dimensions */
    {"dense", 128, TILES, .head_dim = 32},
    {"dense", 512, TILES, .head_dim = 32},
    {"blocks(4)", 128, TILES, .head_dim = 32},
    {"blocks(8)", 512, TILES, .head_dim = 32},
    {"random(0.3)&blocks(2)", 256, TILES, .head_dim = 32},
    {"window(5)|columns(3, 77)", 512, TILES, .head_dim = 32},
    {"logsparse", 128, LINES, .head_dim = 32},
    {"logsparse", 512, LINES, .head_dim = 32},
    {"columns(1, 9, 17, 40, 77, 99, 100)", 128, GATHERS, .head_dim = 32},
    {"longformer", 128, ROWS, .head_dim = 32},
    {"rows(3, 40, 77)", 128, AS_IT_IS, .head_dim = 32},
    {"dense", 128, TILES, .head_dim = 128},
    {"window(5)|columns(3, 77)", 512, TILES, .head_dim = 128},
    {"logsparse", 512, LINES, .head_dim = 128},
    {"longformer", 128, ROWS, .head_dim = 128},
    /* beside a bias, where that is asked for */
    {"dense", 128, TILES, false, true},
    {"dense", 512, TILES, false, true},
    {"causal", 512, TILES, false, true},
    {"bigbird", 512, AS_IT_IS, false, true},
};

static const struct probe gpu_probes[] = {
    {"none", 64, AS_IT_IS, true}, /* little more than its launch */
    {"dense", 64, AS_IT_IS, true},
    {"dense", 128, TILES}, /* resident where that family applies, as the next */
    {"longformer", 256, AS_IT_IS},
    {"dense", 512, TILES},
    {"dense", 1024, TILES},
    {"causal", 1024, TILES},
    {"blockbert-3", 2048, TILES},
    {"longformer", 1024, TILES},
    {"bigbird", 1024, TILES},
    {"logsparse", 1024, TILES},
    {"none", 1024, AS_IT_IS},
    {"fixed", 1024, GATHERS},
    {"bigbird", 512, GATHERS},
    {"bigbird", 2048, GATHERS},
    {"global(1, 33, 70)|window(2)", 1024, GATHERS},
    {"random(0.01)", 1024, GATHERS},
    {"dense", 512, ROWS},
    {"longformer", 1024, ROWS},
    {"window(2)", 2048, ROWS},
    {"bigbird", 1024, ROWS},
    {"star", 2048, AS_IT_IS},
    {"fixed", 1024, AS_IT_IS},
    {"logsparse", 2048, AS_IT_IS},
    {"longformer", 4096, AS_IT_IS},
    {"blockbert-3", 1024, AS_IT_IS},
    /* partial rows: residue classes that neighbours merge, global rows in parts */
    {"strided", 1024, AS_IT_IS},
    {"strided", 2048, AS_IT_IS},
    {"star", 4096, ROWS},
    /* what goes by entry, by element of a row and by row block is told apart by other head dimensions; row blocks of 128 rows at
       D = 128 */
    {"none", 1024, AS_IT_IS, .head_dim = 32},
    {"dense", 512, TILES, .head_dim = 32},
    {"blockbert-3", 1024, AS_IT_IS, .head_dim = 32},
    {"bigbird", 1024, TILES, .head_dim = 32},
    {"random(0.01)", 1024, GATHERS, .head_dim = 32},
    {"longformer", 1024, ROWS, .head_dim = 32},
    {"none", 1024, AS_IT_IS, .head_dim = 128},
    {"dense", 512, TILES, .head_dim = 128},
    {"causal", 1024, TILES, .head_dim = 128},
    {"bigbird", 1024, TILES, .head_dim = 128},
    {"random(0.01)", 1024, GATHERS, .head_dim = 128},
    {"longformer", 1024, ROWS, .head_dim = 128},
    {"bigbird", 1024, ROWS, .head_dim = 128},
    {"star", 2048, AS_IT_IS, .head_dim = 128},
    /* where templates walk lines */
    {"star", 2048, LINES},
    {"logsparse", 512, LINES},
    {"logsparse", 4096, LINES},
    {"strided", 512, LINES},
    {"longformer", 2048, LINES},
    {"bigbird", 512, LINES},
    {"random(0.01)", 512, LINES},
    {SCATTERED, 2048, LINES},
    {"logsparse", 512, LINES, .head_dim = 32},
    {"logsparse", 512, LINES, .head_dim = 128},
};

enum {
    CPU_PROBES = sizeof cpu_probes / sizeof *cpu_probes,
    GPU_PROBES = sizeof gpu_probes / sizeof *gpu_probes,
    CPU_BIAS = 4, /* the last */
    GPU_LINES = 10,
};
typedef char all_are_no_more
    [(int)CPU_PROBES <= (int)PROBES_MOST && (int)GPU_PROBES <= (int)PROBES_MOST ? 1 : -1];

const struct probe *probe_table(enum target_kind kind, bool lines, bool bias,
                                uint32_t *ret_count)
{
    if (kind == TARGET_CUDA) {
        *ret_count = lines ? GPU_PROBES : GPU_PROBES - GPU_LINES;
        return gpu_probes;
    }
    *ret_count = bias ? CPU_PROBES : CPU_PROBES - CPU_BIAS;
    return cpu_probes;
}

double probe_gpu_terms(const struct plan *p, enum machine_pass pass, uint32_t batch,
                       double ret[RATES])
{
    const struct price_shape shape = family_price_shape(p->target, &p->config, p->n, p->heads);
    const double share = (p->config.tall ? 2.0 : 1.0) / p->machine->workers;
    const double spread = plan_spread(p, pass, 0, batch, 0);
    const struct effort e = plan_effort(p, pass, 0, batch, 1);
    const double rest = family_terms(p->machine, pass, shape, &e, ret);
    for (int r = 0; r < RATES; r++)
        ret[r] *= r == RATE_STREAM || r == RATE_EXPOSED ? share : spread;
    return rest * share;
}

static void scale(struct machine *m, enum rate first, enum rate last, double factor)
{
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = first; k <= (int)last; k++)
            m->rate[pass][k] *= factor;
}

struct machine probe_machine(const struct machine *row, enum favour favour)
{
    struct machine m = *row;
    const double dear = 20;
    if (favour == MIXED) { /* lines for tiles of few entries, tiles for the others */
        scale(&m, RATE_GATHER, RATE_GATHER, dear);
        scale(&m, RATE_MIXED, RATE_MIXED_ROW, 0);
    }
    if (favour == ROWS) {
        scale(&m, RATE_TILE_FLOP, RATE_LINE_ROW, dear);
        scale(&m, RATE_ITEM, RATE_ITEM_ELEMENT, dear);
        scale(&m, RATE_ROW_ENTRY, RATE_ROW_RANGE, 1 / dear);
    }
    if (favour == TILES || favour == GATHERS)
        scale(&m, RATE_LINE_ENTRY, RATE_ROW_RANGE, dear);
    if (favour == LINES)
        scale(&m, RATE_TILE_FLOP, RATE_GATHER, dear);
    if (favour == GATHERS)
        scale(&m, RATE_GATHER, RATE_GATHER, 1 / dear);
    if (favour == TILES)
        scale(&m, RATE_GATHER, RATE_GATHER, dear);
    return m;
}
