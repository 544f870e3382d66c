/* SPDX-License-Identifier: Apache-2.0 */
/* maskc calibrate: measures this CPU with our own kernels, fits the rates of its rows of the machine
   table to what came out, and stores them for later plans. */
#include "gen/cost/fit.h"
#include "masks/base/memory.h"
#include "runtime/calibration.h"
#include "runtime/compile/compile.h"
#include "tools/maskc/command.h"
#include "tools/maskc/probe.h"
#include "tools/maskc/progress.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One row of the table, fitted. */
struct fitted {
    const struct machine *row;
    struct machine machine;
    enum abi_dtype dtype;
    struct probe_time *time;
    uint32_t count;
};

static void fit_pass(struct fitted *f, enum machine_pass pass)
{
    struct fit_row *rows = memory_new(f->count, sizeof *rows);
    for (uint32_t k = 0; k < f->count; k++)
        rows[k] = f->time[k].row[pass];
    fit_rates(rows, f->count, f->row->rate[pass], f->machine.rate[pass]);
    free(rows);
}

static int fit_row(struct fitted *f, const struct target *t, struct cache *cache,
                   struct error *e)
{
    f->machine = *f->row;
    f->count = probes_time(f->row, t, f->dtype, cache, &f->time, e);
    if (!f->count)
        return -1;
    for (int pass = 0; pass < PASSES; pass++)
        fit_pass(f, (enum machine_pass)pass);
    for (int k = 0; k < 1; k++)
        f->machine.rate[PASS_DKV][RATE_PACK] = f->machine.rate[PASS_DQ][RATE_PACK];
    return 0;
}

static void print_fit(const struct fitted *f)
{
    printf("%s\n", f->row->name);
    for (uint32_t k = 0; k < f->count; k++) {
        printf("  %-44s", f->time[k].name);
        for (int pass = 0; pass < PASSES; pass++)
            printf(" %9.1f us %5.2f", 1e6 * f->time[k].seconds[pass],
                   fit_seconds(&f->time[k].row[pass], f->machine.rate[pass]) /
                       f->time[k].row[pass].seconds);
        printf(" %s\n", f->time[k].lowering);
    }
    for (int k = 0; k < RATES; k++) {
        printf("  %-14s", rate_names[k]);
        for (int pass = 0; pass < PASSES; pass++)
            printf(" %10.3g (%5.2f)", f->machine.rate[pass][k],
                   f->machine.rate[pass][k] / f->row->rate[pass][k]);
        printf("\n");
    }
}

/* As gen/cost/machines.c has it. */
static void print_row(const struct machine *m, const char *name)
{
    enum { LINE = 9 }; /* rates in a line */
    printf("    {\"%s\", TARGET_CPU, %.3g, %.3g, %.3g, %.3g, %.3g, %.3g, %u, {\n", name,
           m->flops, m->exps, m->bytes, m->cache_bytes, m->cache, m->launch, m->workers);
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = 0; k < RATES; k++)
            printf("%s%9.3g%s",
                   k == 0      ? "        {"
                   : k == LINE ? "         "
                               : " ",
                   m->rate[pass][k],
                   k == RATES - 1  ? "},\n"
                   : k == LINE - 1 ? ",\n"
                                   : ",");
    printf("    }},\n");
}

static int calibrate(const struct options *o, struct error *e)
{
    (void)o;
    struct cache *cache = cache_open(NULL);
    struct calibration c = {.count = 0};
    int code = 0;
    enum abi_dtype dtypes[] = {ABI_F32, ABI_BF16};
    for (int k = 0; k < 2 && !code; k++) {
        struct features features = {.dtype = dtypes[k], .head_dim = 64, .backward = true};
        const struct target *t = target_find(machine_cpu_target(&features), e);
        if (k && !target_matrix(t, &features))
            break;
        struct fitted f = {.row = machine_find(target_machine(t, &features), e),
                           .dtype = dtypes[k]};
        code = fit_row(&f, t, cache, e);
        progress_clear();
        if (!code) {
            print_fit(&f);
            print_row(&f.machine, f.row->name);
            calibration_add(&c, f.row, &f.machine);
        }
        free(f.time);
    }
    if (!code)
        code = calibration_save(&c, e);
    cache_close(cache);
    return code;
}

int command_calibrate(const struct options *o)
{
    struct error e = {0};
    return calibrate(o, &e) ? command_fail(&e) : 0;
}
