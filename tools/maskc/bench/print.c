/* SPDX-License-Identifier: Apache-2.0 */
/* A bench as a table for people and as JSON for programs. */
#include "masks/base/text.h"
#include "tools/common/busy.h"
#include "tools/common/table.h"
#include "tools/maskc/bench/bench.h"
#include "tools/maskc/command.h"
#include <math.h>
#include <stdio.h>

/* Predicted over measured. */
static double of_median(const struct bench_result *r)
{
    return r->predicted / r->median;
}

/* Predicted over measured speed-up over dense. A busy machine or a low clock slows both kernels, and cancels. */
static double of_speedup(const struct bench_result *r)
{
    return r->dense_predicted / r->predicted / (r->dense / r->median);
}

/* Number of these ratios within 0.2 of 1. */
static uint32_t count_within(const struct bench_result *result, uint32_t count,
                             double (*ratio)(const struct bench_result *))
{
    uint32_t within = 0;
    for (uint32_t k = 0; k < count; k++)
        within += fabs(ratio(&result[k]) - 1) <= 0.2;
    return within;
}

/* Dense took too long at this length, and was measured at a shorter one. */
static bool is_extrapolated(const struct bench_result *r)
{
    return r->dense_length != r->length || r->dense_keys != r->keys;
}

static void print_extrapolated(const struct bench_result *result, uint32_t count)
{
    char size[BENCH_SIZE], dense[BENCH_SIZE];
    for (uint32_t k = 0; k < count; k++) {
        const struct bench_result *r = &result[k];
        bench_size(r->length, r->keys, size);
        bench_size(r->dense_length, r->dense_keys, dense);
        if (is_extrapolated(r))
            printf("* dense of n=%s is too long for --seconds: from its rate at n=%s\n", size,
                   dense);
    }
}

/* Columns of the table. */
struct figure_column {
    const char *title;
    bool ratio, wide; /* wide: only with --wide */
    double (*value)(const struct bench_result *r);
};

static double median_ms(const struct bench_result *r)
{
    return 1e3 * r->median;
}

static double p10_ms(const struct bench_result *r)
{
    return 1e3 * r->p10;
}

static double p90_ms(const struct bench_result *r)
{
    return 1e3 * r->p90;
}

static double dense_ms(const struct bench_result *r)
{
    return 1e3 * r->dense;
}

static double speedup(const struct bench_result *r)
{
    return r->dense / r->median;
}

static double predicted_ms(const struct bench_result *r)
{
    return 1e3 * r->predicted;
}

static double predicted_speedup(const struct bench_result *r)
{
    return r->dense_predicted / r->predicted;
}

static double floor_ms(const struct bench_result *r)
{
    return 1e3 * r->floor;
}

static double hard_ms(const struct bench_result *r)
{
    return r->hard > 0 ? 1e3 * r->hard : (double)NAN;
}

static double of_hard(const struct bench_result *r)
{
    return r->hard > 0 ? r->median / r->hard : (double)NAN;
}

static double kept_ms(const struct bench_result *r)
{
    return r->kept > 0 ? 1e3 * r->kept : (double)NAN;
}

static double of_kept(const struct bench_result *r)
{
    return r->kept > 0 ? r->median / r->kept : (double)NAN;
}

static const struct figure_column measured[] = {
    {"median", false, false, median_ms},
    {"p10", false, true, p10_ms},
    {"p90", false, true, p90_ms},
    {"dense", false, false, dense_ms},
    {"speed-up", true, false, speedup},
    {"predicted", false, false, predicted_ms},
    {"speed-up", true, false, predicted_speedup},
    {"floor", false, true, floor_ms},
};
/* Beside the same kernel without a soft mask or dropout, where that was measured. */
static const struct figure_column compared[] = {
    {"hard", false, false, hard_ms},
    {"of hard", true, false, of_hard},
    {"undropped", false, false, kept_ms},
    {"of that", true, false, of_kept},
};
enum {
    MEASURED = sizeof measured / sizeof *measured,
    COMPARED = sizeof compared / sizeof *compared
};

/* Results, and the figures that a table has of each. */
struct figures {
    const struct bench_result *result;
    uint32_t count, columns;
    const struct figure_column *column[MEASURED + COMPARED];
};

static void choose_measured(struct figures *f, bool wide)
{
    for (uint32_t k = 0; k < MEASURED; k++)
        if (wide || !measured[k].wide)
            f->column[f->columns++] = &measured[k];
}

/* Columns that some result has. */
static void choose_compared(struct figures *f)
{
    for (uint32_t k = 0; k < COMPARED; k++) {
        bool any = false;
        for (uint32_t i = 0; i < f->count; i++)
            any = any || !isnan(compared[k].value(&f->result[i]));
        if (any)
            f->column[f->columns++] = &compared[k];
    }
}

static void add_row(const struct figures *f, const struct bench_result *r, struct table *t)
{
    char size[BENCH_SIZE];
    bench_size(r->length, r->keys, size);
    table_cell(t, "%s", r->mask);
    table_cell(t, "%s", size);
    table_cell(t, "%s", dtype_name(r->dtype));
    table_cell(t, r->backward ? "backward" : "forward");
    table_cell(t, "%s", r->lowering);
    for (uint32_t k = 0; k < f->columns; k++) {
        const struct figure_column *c = f->column[k];
        const double value = c->value(r);
        const char *mark = c->value == dense_ms && is_extrapolated(r) ? "*" : "";
        if (isnan(value))
            table_cell(t, "-");
        else
            table_cell(t, "%.*f%s", c->ratio ? 2 : 3, value, c->ratio ? "x" : mark);
    }
}

static void print_figures(const struct figures *f, bool wide)
{
    struct table t = {0};
    table_text_column(&t, "mask");
    table_number_column(&t, "n");
    table_text_column(&t, "dtype");
    table_text_column(&t, "pass");
    table_text_column(&t, "lowering");
    for (uint32_t k = 0; k < f->columns; k++)
        table_number_column(&t, f->column[k]->title);
    for (uint32_t k = 0; k < f->count; k++)
        add_row(f, &f->result[k], &t);
    table_print(&t, wide ? 0 : TABLE_WIDTH);
}

/* The end of the first line. --layer is for all masks of a bench, so their layers have one number. */
static void print_layer(const struct bench_result *result, uint32_t count)
{
    uint32_t k = 0;
    while (k < count && !result[k].one_layer)
        k++;
    if (k < count)
        printf("; times of layer %u", result[k].layer);
    printf("\n");
}

void bench_print_table(const char *device, uint32_t threads, const struct bench_result *result,
                       uint32_t count, bool wide)
{
    struct figures f = {result, count, 0, {NULL}}, others = {result, count, 0, {NULL}};
    printf("%s, %u thread%s; milliseconds", device, threads, threads == 1 ? "" : "s");
    print_layer(result, count);
    choose_measured(&f, wide);
    choose_compared(wide ? &f : &others);
    print_figures(&f, wide);
    if (others.columns) {
        printf("\n");
        print_figures(&others, false);
    }
    print_extrapolated(result, count);
    printf("%u of %u predictions within 20 %% of the median, %u within 20 %% of the speed-up\n",
           count_within(result, count, of_median), count,
           count_within(result, count, of_speedup));
}

static double least_share(const struct bench_result *result, uint32_t count)
{
    double least = 1;
    for (uint32_t k = 0; k < count; k++)
        least = fmin(least, result[k].cpu_share);
    return least;
}

void bench_say_busy(uint32_t threads, const struct bench_result *result, uint32_t count)
{
    const double share = least_share(result, count);
    struct text line = {0};
    if (busy_is(share)) {
        busy_text(share, threads == 1 ? "--clock cpu" : "--threads 1 --clock cpu", &line);
        command_note(text_get(&line));
    }
    text_finish(&line);
}

static json_t *result_json(const struct bench_result *r)
{
    return json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:b, s:i, s:f, s:i}",
        "mask", r->mask, "length", (int)r->length, "kv_length", (int)r->keys, "heads",
        (int)r->heads, "batch", (int)r->batch, "head_dim", (int)r->head_dim, "dtype",
        dtype_name(r->dtype), "pass", r->backward ? "backward" : "forward", "lowering",
        r->lowering, "reason", r->reason, "sparsity", command_number(r->sparsity), "median_s",
        command_number(r->median), "p10_s", command_number(r->p10), "p90_s",
        command_number(r->p90), "dense_s", command_number(r->dense), "speedup",
        command_number(r->dense / r->median), "predicted_s", command_number(r->predicted),
        "dense_predicted_s", command_number(r->dense_predicted), "floor_s",
        command_number(r->floor), "hard_s", r->hard > 0 ? command_number(r->hard) : json_null(),
        "dropout", command_number(r->dropout), "undropped_s",
        r->kept > 0 ? command_number(r->kept) : json_null(), "machine", r->machine,
        "dense_extrapolated", is_extrapolated(r), "dense_length", (int)r->dense_length,
        "cpu_share", r->cpu_share, "layer", (int)r->layer);
}

json_t *bench_json(const char *device, uint32_t threads, const struct bench_result *result,
                   uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < count; k++)
        json_array_append_new(list, result_json(&result[k]));
    const double of = count ? count : 1;
    return json_pack(
        "{s:s, s:i, s:b, s:o, s:o, s:o}", "device", device, "threads", (int)threads, "busy",
        (int)busy_is(least_share(result, count)), "results", list,
        "predicted_within_20_percent",
        count ? command_number(count_within(result, count, of_median) / of) : json_null(),
        "predicted_speedup_within_20_percent",
        count ? command_number(count_within(result, count, of_speedup) / of) : json_null());
}
