/* SPDX-License-Identifier: Apache-2.0 */
/* maskc calibrate: measures this CPU, or a GPU, with our own kernels, fits the rates of its rows of the
   machine table to what came out, and stores them for later plans. */
#include "gen/cost/fit.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/device/emulated/emulated.h"
#include "runtime/pipeline/calibration.h"
#include "tools/maskc/calibrate/ceiling.h"
#include "tools/maskc/calibrate/probe.h"
#include "tools/maskc/command.h"
#include "tools/maskc/progress.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Device to measure, and the cache of its kernels. */
struct subject {
    const char *device; /* "cpu", "cuda", "cuda:1" */
    int whose;          /* CALIBRATION_CPU, or the GPU's number */
    enum abi_bias bias;
    struct cache *cache;
};

/* One row of the table, fitted. */
struct fitted {
    const struct machine *row;
    struct machine machine;
    enum abi_dtype dtype;
    struct probes *probes;
    const struct probe_time *time; /* [count], of the probes */
    uint32_t count;
};

/* Starting values of the fit for rates that the table's row includes in others. */
static const double guess[RATES] = {[RATE_LOOP] = 2e-7, [RATE_EXPOSED] = 3e-11};
static void fit_pass(struct fitted *f, enum machine_pass pass)
{
    struct fit_row *rows = memory_new(f->count, sizeof *rows);
    double prior[RATES];
    memcpy(prior, f->row->rate[pass], sizeof prior);
    for (int k = 0; k < RATES && f->row->kind == TARGET_CPU; k++)
        prior[k] = prior[k] > 0 ? prior[k] : guess[k];
    for (uint32_t k = 0; k < f->count; k++)
        rows[k] = f->time[k].row[pass];
    fit_rates(rows, f->count, prior, f->machine.rate[pass]);
    free(rows);
}

static void begin_row(struct fitted *f, const struct target *t, const struct subject *s)
{
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    f->machine = *f->row;
    if (s->whose == CALIBRATION_CPU)
        f->machine.cache = bytes > 0 ? (double)bytes : f->row->cache;
    else
        calibration_size(s->whose, &f->machine);
    f->probes = probes_new(&f->machine, t, f->dtype, s->bias, s->device, s->cache);
    f->count = probes_count(f->probes);
    f->time = probes_times(f->probes);
}

static int fit_row(struct fitted *f, double seconds, struct error *e)
{
    if (probes_time(f->probes, seconds, e))
        return -1;
    for (int pass = 0; pass < PASSES; pass++)
        fit_pass(f, (enum machine_pass)pass);
    if (f->row->kind == TARGET_CUDA)
        f->machine.launch = probes_launch(f->probes);
    else
        f->machine.wake = probes_wake(f->probes);
    return 0;
}

/* ---- output ---- */

static double error_of(const struct fitted *f, uint32_t probe, int pass)
{
    const struct fit_row *row = &f->time[probe].row[pass];
    return fit_seconds(row, f->machine.rate[pass]) / row->seconds;
}

static void print_ceiling(const char *what, double measured, double table, double unit,
                          const char *name)
{
    if (measured > 0)
        printf("  %-28s %10.4g %-8s  %10.4g\n", what, measured / unit, name, table / unit);
}

/* `last`: the matrix unit's row, where there is one. */
static void print_ceilings(const struct ceilings *c, const struct fitted *f,
                           const struct fitted *last)
{
    printf("%-30s %10s %-8s  %10s\n", "one core at most", "measured", "", "table");
    print_ceiling("bf16 on the matrix unit", c->matrix, last->row->flops, 1e12, "TFLOP/s");
    print_ceiling("f32 multiply-add", c->flops, f->row->flops, 1e9, "GFLOP/s");
    print_ceiling("exp2", c->exps, f->row->exps, 1e9, "G/s");
    print_ceiling("reading memory", c->bytes, f->row->bytes, 1e9, "GB/s");
    print_ceiling("reading the second cache", c->cache_bytes, f->row->cache_bytes, 1e9, "GB/s");
}

static uint32_t count_within(const struct fitted *f, int pass)
{
    uint32_t within = 0;
    for (uint32_t k = 0; k < f->count; k++)
        within += fabs(error_of(f, k, pass) - 1) <= 0.2;
    return within;
}

static void print_rates(const struct fitted *f)
{
    printf("\n%s, %s kernels: nanoseconds (of the table)\n  %-14s", f->row->name,
           dtype_name(f->dtype), "");
    for (int pass = 0; pass < PASSES; pass++)
        printf(" %18s ", pass_names[pass]);
    for (int k = 0; k < RATES; k++) {
        printf("\n  %-14s", rate_names[k]);
        for (int pass = 0; pass < PASSES; pass++)
            printf(" %9.4g (%6.4g)", 1e9 * f->machine.rate[pass][k],
                   1e9 * f->row->rate[pass][k]);
    }
    if (f->machine.wake > 0)
        printf("\n  several threads: %.1f us a launch more", 1e6 * f->machine.wake);
    printf("\n  %u probes; within 20 %% of what the rates say:", f->count);
    for (int pass = 0; pass < PASSES; pass++)
        printf(" %s %u%s", pass_names[pass], count_within(f, pass),
               pass + 1 < PASSES ? "," : "\n");
}

/* Prints the row in the format of gen/cost/machines.c. */
static void print_row(const struct machine *m, const char *name)
{
    enum { LINE = 10 }; /* rates in a line */
    printf("    {\"%s\", %s, %.3g, %.3g, %.3g, %.3g, %.3g, %.3g, %u, %u, {\n", name,
           m->kind == TARGET_CUDA ? "TARGET_CUDA" : "TARGET_CPU", m->flops, m->exps, m->bytes,
           m->cache_bytes, m->cache, m->launch, m->workers, m->processors);
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = 0; k < RATES; k++)
            printf("%s%9.3g%s",
                   k == 0          ? "        {"
                   : k % LINE == 0 ? "         "
                                   : " ",
                   m->rate[pass][k],
                   k == RATES - 1         ? "},\n"
                   : k % LINE == LINE - 1 ? ",\n"
                                          : ",");
    printf("    }},\n");
}

static json_t *probe_json(const struct fitted *f, uint32_t k, int pass)
{
    const struct probe_time *t = &f->time[k];
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "machine", f->row->name, "probe",
                     t->name, "lowering", t->lowering, "pass", pass_names[pass], "measured_s",
                     command_number(t->row[pass].seconds), "fitted_s",
                     command_number(fit_seconds(&t->row[pass], f->machine.rate[pass])));
}

static void print_json(const struct calibration *c, const struct fitted *f, uint32_t count,
                       int whose, const char *path)
{
    json_t *j = calibration_json(c, whose), *list = json_array();
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t k = 0; k < f[r].count; k++)
            for (int pass = 0; pass < PASSES; pass++)
                json_array_append_new(list, probe_json(&f[r], k, pass));
    json_object_set_new(j, "probes", list);
    json_object_set_new(j, "path", json_string(path));
    command_print_json(j);
}

static void print(const struct options *o, const struct calibration *c, const struct fitted *f,
                  uint32_t count, int whose)
{
    char *path = calibration_path(whose);
    if (o->json) {
        print_json(c, f, count, whose, path);
    } else if (o->table) {
        for (uint32_t k = 0; k < count; k++)
            print_row(&f[k].machine, f[k].row->name);
    } else {
        char *identity = calibration_identity(whose);
        printf("%s\n", identity);
        if (whose == CALIBRATION_CPU)
            print_ceilings(&c->ceilings, f, f + count - 1);
        for (uint32_t k = 0; k < count; k++)
            print_rates(&f[k]);
        printf("\nstored in %s\n", path);
        free(identity);
    }
    free(path);
}

/* ---- what is measured ---- */

/* The rows of levels that this CPU has but that nobody runs on it: as much faster or slower than the
   table as the row that was measured. */
static void add_others(struct calibration *c, const struct fitted *f)
{
    double sum = 0;
    for (uint32_t k = 0; k < f->count; k++)
        sum += log(f->time[k].row[PASS_FORWARD].seconds /
                   fit_seconds(&f->time[k].row[PASS_FORWARD], f->row->rate[PASS_FORWARD]));
    double factor = exp(sum / f->count);
    for (const struct machine *row = machines; row->name; row++) {
        if (row->kind != TARGET_CPU || calibration_machine(c, row->name, NULL))
            continue;
        struct machine m = *row;
        m.wake = f->machine.wake;
        for (int pass = 0; pass < PASSES; pass++)
            for (int k = 0; k < RATES; k++)
                m.rate[pass][k] *= factor;
        calibration_add(c, row, NULL, &m);
    }
}

static void set_ceilings(struct machine *m, const struct ceilings *c, bool matrix)
{
    m->flops = matrix ? c->matrix : c->flops;
    m->exps = c->exps;
    m->bytes = c->bytes;
    m->cache_bytes = c->cache_bytes;
}

enum { ROWS = 2 };

static const struct target *target_of(const struct subject *s, const struct kernel_request *f)
{
    return target_find(s->whose == CALIBRATION_CPU ? machine_cpu_target(f)
                                                   : machine_cuda_target(s->whose),
                       NULL);
}

/* f32, and bf16 where a matrix unit takes it: all other kernels go by one of the two. */
static uint32_t begin_rows(struct fitted f[ROWS], const struct subject *s, struct error *e)
{
    static const enum abi_dtype dtypes[ROWS] = {ABI_F32, ABI_BF16};
    uint32_t count = 0;
    for (int k = 0; k < ROWS; k++) {
        struct kernel_request request = {.dtype = dtypes[k], .head_dim = 64, .backward = true};
        const struct target *t = target_of(s, &request);
        if (k && !family_is_matrix(t, &(struct kernel_config){.request = request}))
            break;
        f[count].row = machine_find(family_machine(t, &request), e);
        f[count].dtype = dtypes[k];
        begin_row(&f[count++], t, s);
    }
    return count;
}

static int measure_cpu(struct calibration *c, struct fitted *f, uint32_t count, double seconds,
                       struct error *e)
{
    progress_show("peaks");
    c->ceilings = ceilings_measure(target_find(machine_level(), e));
    for (uint32_t k = 0; k < count; k++) {
        if (fit_row(&f[k], seconds / ROWS, e))
            return -1;
        set_ceilings(&f[k].machine, &c->ceilings, f[k].dtype != ABI_F32);
        calibration_add(c, f[k].row, NULL, &f[k].machine);
    }
    add_others(c, f);
    return 0;
}

/* Its peaks stay the table's. */
static int measure_gpu(struct calibration *c, struct fitted *f, uint32_t count,
                       const struct subject *s, double seconds, struct error *e)
{
    for (uint32_t k = 0; k < count; k++) {
        if (fit_row(&f[k], seconds / ROWS, e))
            return -1;
        calibration_add(c, f[k].row, target_of(s, NULL), &f[k].machine);
    }
    return 0;
}

static int measure(struct calibration *c, struct fitted *f, uint32_t count,
                   const struct subject *s, double seconds, struct error *e)
{
    struct probes *list[ROWS];
    for (uint32_t k = 0; k < count; k++)
        list[k] = f[k].probes;
    if (probes_open(list, count, e))
        return -1;
    return s->whose == CALIBRATION_CPU ? measure_cpu(c, f, count, seconds, e)
                                       : measure_gpu(c, f, count, s, seconds, e);
}

static int find_gpu(struct subject *s, struct error *e)
{
    struct cuda_gpu gpu;
    if (s->bias)
        return error_set(e, ERROR_INPUT,
                         "--soft: kernels beside a soft mask are measured on the cpu alone");
    if (cuda_describe(s->whose, &gpu, e))
        return -1;
    return machine_cuda_target(s->whose)
               ? 0
               : error_set(e, ERROR_UNAVAILABLE, "%s: no target for compute capability %d.%d",
                           gpu.name, gpu.capability / 10, gpu.capability % 10);
}

static int find_subject(const struct options *o, struct subject *s, struct error *e)
{
    const struct device *device;
    int ordinal;
    s->device = o->device ? o->device : "cpu";
    if ((o->bias && bias_parse(o->bias, &s->bias, e)) ||
        device_find(s->device, &device, &ordinal, e))
        return -1;
    if (device == &device_emulated)
        return error_set(e, ERROR_INPUT,
                         "--device emulated: the emulation's time is nobody's; calibrate "
                         "measures cpu, cuda, cuda:N");
    s->whose = device != &device_cuda ? CALIBRATION_CPU : ordinal < 0 ? 0 : ordinal;
    return s->whose == CALIBRATION_CPU ? 0 : find_gpu(s, e);
}

static int calibrate(const struct options *o, struct error *e)
{
    struct subject s = {0};
    if (options_check_seconds(o, e) || find_subject(o, &s, e) || calibration_prepare(e))
        return -1;
    s.cache = cache_open(NULL);
    struct calibration *c = memory_new(1, sizeof *c);
    struct fitted fitted[ROWS] = {{0}};
    uint32_t count = begin_rows(fitted, &s, e);
    int code = measure(c, fitted, count, &s, o->seconds > 0 ? o->seconds : 6, e);
    progress_clear();
    if (!code)
        code = calibration_save(c, s.whose, e);
    if (!code)
        print(o, c, fitted, count, s.whose);
    for (uint32_t k = 0; k < count; k++)
        probes_destroy(fitted[k].probes);
    calibration_destroy(c);
    cache_close(s.cache);
    return code;
}

int command_calibrate(const struct options *o)
{
    struct error e = {0};
    return calibrate(o, &e) ? command_fail(&e) : 0;
}
