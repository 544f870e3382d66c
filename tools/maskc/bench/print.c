/* SPDX-License-Identifier: Apache-2.0 */
/* A bench as a table for people and as JSON for programs. */
#include "masks/base/text.h"
#include "tools/common/busy.h"
#include "tools/maskc/bench/bench.h"
#include "tools/maskc/command.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Predicted over measured. */
static double of_median(const struct bench_result *r)
{
    return r->predicted / r->median;
}

/* The same of how many times faster than dense: what a busy machine, or a low clock, does to both at once is
   not in it. */
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
    return r->dense_length != r->length;
}

static void print_extrapolated(const struct bench_result *result, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        if (is_extrapolated(&result[k]))
            printf("* dense of n=%u is too long for --seconds: from its rate at n=%u\n",
                   result[k].length, result[k].dense_length);
}

static int wider(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

void bench_print_table(const char *device, uint32_t threads, const struct bench_result *result,
                       uint32_t count)
{
    bool bias = false, dropout = false;
    int wide = 4, lowering = 8;
    for (uint32_t k = 0; k < count; k++) {
        bias = bias || result[k].hard > 0;
        dropout = dropout || result[k].kept > 0;
        wide = wider(wide, result[k].mask);
        lowering = wider(lowering, result[k].lowering);
    }
    printf("%s, %u thread%s; milliseconds\n", device, threads, threads == 1 ? "" : "s");
    printf("%-*s %6s %5s %-8s %-*s %9s %9s %9s %9s %8s %9s %8s %9s", wide, "mask", "n", "dtype",
           "pass", lowering, "lowering", "median", "p10", "p90", "dense", "speed-up",
           "predicted", "speed-up", "floor");
    if (bias)
        printf(" %9s %8s", "hard", "of hard");
    printf(dropout ? " %9s %9s\n" : "\n", "undropped", "of that");
    for (uint32_t k = 0; k < count; k++) {
        const struct bench_result *r = &result[k];
        printf("%-*s %6u %5s %-8s %-*s %9.3f %9.3f %9.3f %9.3f%c%7.2fx %9.3f %7.2fx %9.3f",
               wide, r->mask, r->length, dtype_name(r->dtype),
               r->backward ? "backward" : "forward", lowering, r->lowering, 1e3 * r->median,
               1e3 * r->p10, 1e3 * r->p90, 1e3 * r->dense, is_extrapolated(r) ? '*' : ' ',
               r->dense / r->median, 1e3 * r->predicted, r->dense_predicted / r->predicted,
               1e3 * r->floor);
        if (r->hard > 0)
            printf(" %9.3f %7.2fx", 1e3 * r->hard, r->median / r->hard);
        if (r->kept > 0)
            printf(" %9.3f %8.2fx", 1e3 * r->kept, r->median / r->kept);
        putchar('\n');
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
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, "
                     "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:b, s:i, s:f}",
                     "mask", r->mask, "length", (int)r->length, "heads", (int)r->heads, "batch",
                     (int)r->batch, "head_dim", (int)r->head_dim, "dtype", dtype_name(r->dtype),
                     "pass", r->backward ? "backward" : "forward", "lowering", r->lowering,
                     "reason", r->reason, "sparsity", command_number(r->sparsity), "median_s",
                     command_number(r->median), "p10_s", command_number(r->p10), "p90_s",
                     command_number(r->p90), "dense_s", command_number(r->dense), "speedup",
                     command_number(r->dense / r->median), "predicted_s",
                     command_number(r->predicted), "dense_predicted_s",
                     command_number(r->dense_predicted), "floor_s", command_number(r->floor),
                     "hard_s", r->hard > 0 ? command_number(r->hard) : json_null(), "dropout",
                     command_number(r->dropout), "undropped_s",
                     r->kept > 0 ? command_number(r->kept) : json_null(), "machine", r->machine,
                     "dense_extrapolated", is_extrapolated(r), "dense_length",
                     (int)r->dense_length, "cpu_share", r->cpu_share);
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
