/* SPDX-License-Identifier: Apache-2.0 */
/* The table, and the same as JSON. */
#include "masks/base/text.h"
#include "tools/maskbert/prune/prune.h"
#include <math.h>
#include <stdio.h>

/* ---- for people ---- */

enum { CELL_BYTES = 32 };

/* "-" where it is not known. */
static const char *cell(char ret[CELL_BYTES], const char *format, double value)
{
    if (isnan(value))
        return "-";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(ret, CELL_BYTES, format, value);
#pragma GCC diagnostic pop
    return ret;
}

static void print_row(const struct prune_row *r)
{
    char share[CELL_BYTES], density[CELL_BYTES], retained[CELL_BYTES], predicted[CELL_BYTES],
        measured[CELL_BYTES], cosine[CELL_BYTES], neighbours[CELL_BYTES];
    printf("%-24s %6s %8s %9s %12s %12s %7s %11s\n",
           r->file ? r->mask ? r->file : r->kind : "dense",
           cell(share, "%.0f %%", 100 * r->share), cell(density, "%.3f", r->density),
           cell(retained, "%.3f", r->retained), cell(predicted, "%.3f ms", 1000 * r->predicted),
           cell(measured, "%.3f ms", 1000 * r->measured), cell(cosine, "%.4f", r->cosine),
           cell(neighbours, "%.3f", r->neighbours));
}

static void print_table(const struct prune *p)
{
    printf("importance of %s over %u lines; %u other lines are held out; n = %u, batch %u, %u "
           "threads\n\n",
           p->of_output ? "the output" : "attention", p->measured.texts, p->held_out.texts,
           p->n, p->batch, p->s.engine->threads);
    if (!p->rows)
        return;
    printf("%-24s %6s %8s %9s %12s %12s %7s %11s\n", "mask", "share", "density", "retained",
           "predicted", "measured", "cosine", "neighbours");
    print_row(&p->dense);
    for (uint32_t k = 0; k < p->rows; k++)
        print_row(&p->row[k]);
}

/* ---- for programs ---- */

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *row_json(const struct prune_row *r)
{
    json_t *file = r->file && r->mask ? json_string(r->file) : json_null();
    return json_pack("{s:o, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "file", file, "kind", r->kind, "won", r->won, "keep", number(r->keep),
                     "share", number(r->share), "density", number(r->density), "sparsity",
                     number(100 * (1 - r->density)), "mass", number(r->retained), "retained",
                     number(r->retained), "predicted_s", number(r->predicted), "measured_s",
                     number(r->measured), "cosine", number(r->cosine), "neighbours",
                     number(r->neighbours));
}

static void print_json(const struct prune *p)
{
    json_t *masks = json_array();
    for (uint32_t k = 0; k < p->rows; k++)
        json_array_append_new(masks, row_json(&p->row[k]));
    json_t *json =
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "importance",
                  p->of_output ? "output" : "attention", "texts", (int)p->s.batches.texts,
                  "measured", (int)p->measured.texts, "held_out", (int)p->held_out.texts,
                  "length", (int)p->n, "batch", (int)p->batch, "threads",
                  (int)p->s.engine->threads, "dense", row_json(&p->dense), "masks", masks);
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(json);
}

void prune_report(const struct prune *p)
{
    if (p->o->json)
        print_json(p);
    else
        print_table(p);
}
