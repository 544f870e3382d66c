/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/serve/metrics.h"
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

const unsigned metric_codes[METRIC_CODES] = {200, 400, 404, 405, 408, 413, 500, 503, 0};
const double metric_bounds[METRIC_BUCKETS] = {0.001, 0.002, 0.005, 0.01, 0.02,
                                              0.05,  0.1,   0.25,  1,    5};

void metrics_request(struct metrics *m, unsigned path, unsigned code)
{
    unsigned k = 0;
    while (k + 1 < METRIC_CODES && metric_codes[k] != code)
        k++;
    m->requests[path][k]++;
}

void metrics_time(struct metrics *m, double seconds)
{
    unsigned k = 0;
    while (k < METRIC_BUCKETS && seconds > metric_bounds[k])
        k++;
    m->bucket[k]++;
    m->microseconds += (uint64_t)(seconds * 1e6);
    m->answered++;
}

static void head(struct text *out, const char *name, const char *type, const char *help)
{
    text_add(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_requests(struct metrics *m, const char *const *paths, struct text *out)
{
    head(out, "maskbert_requests_total", "counter", "Requests answered, by path and status.");
    for (unsigned p = 0; p < METRIC_PATHS && paths[p]; p++)
        for (unsigned c = 0; c < METRIC_CODES; c++) {
            char code[16] = "other";
            if (metric_codes[c])
                snprintf(code, sizeof code, "%u", metric_codes[c]);
            if (m->requests[p][c])
                text_add(out, "maskbert_requests_total{path=\"%s\",code=\"%s\"} %" PRIu64 "\n",
                         paths[p], code, m->requests[p][c]);
        }
}

static void print_times(struct metrics *m, struct text *out)
{
    uint64_t sum = 0;
    head(out, "maskbert_request_seconds", "histogram", "From headers to reply.");
    for (unsigned k = 0; k < METRIC_BUCKETS; k++) {
        sum += m->bucket[k];
        text_add(out, "maskbert_request_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
                 metric_bounds[k], sum);
    }
    text_add(out, "maskbert_request_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n",
             sum + m->bucket[METRIC_BUCKETS]);
    text_add(out, "maskbert_request_seconds_sum %.6f\n", (double)m->microseconds / 1e6);
    text_add(out, "maskbert_request_seconds_count %" PRIu64 "\n", m->answered);
}

/* Pages that the process has in memory, in bytes; 0 where /proc does not say. */
static uint64_t resident_bytes(void)
{
    uint64_t all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        return 0;
    if (fscanf(f, "%" SCNu64 " %" SCNu64, &all, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void print_number(struct text *out, const char *name, const char *type, const char *help,
                         uint64_t value)
{
    head(out, name, type, help);
    text_add(out, "%s %" PRIu64 "\n", name, value);
}

void metrics_print(struct metrics *m, const char *const *paths, uint64_t waiting,
                   struct text *out)
{
    print_requests(m, paths, out);
    print_times(m, out);
    print_number(out, "maskbert_texts_total", "counter", "Texts run.", m->texts);
    print_number(out, "maskbert_tokens_total", "counter", "Tokens run.", m->tokens);
    print_number(out, "maskbert_batches_total", "counter", "Requests were run in so many goes.",
                 m->batches);
    print_number(out, "maskbert_waiting", "gauge", "Requests in the queue.", waiting);
    print_number(out, "process_resident_memory_bytes", "gauge", "Memory in use.",
                 resident_bytes());
}
