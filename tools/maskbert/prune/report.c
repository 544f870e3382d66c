/* SPDX-License-Identifier: Apache-2.0 */
/* The table, and the same as JSON. */
#include "masks/base/text.h"
#include "tools/common/table.h"
#include "tools/maskbert/prune/prune.h"
#include <math.h>
#include <stdio.h>

/* ---- for people ---- */

/* "-" where it is not known. */
static void add_number(struct table *t, int digits, double value, const char *unit)
{
    if (isnan(value))
        table_cell(t, "-");
    else
        table_cell(t, "%.*f%s", digits, value, unit);
}

static void add_row(const struct prune_row *r, struct table *t)
{
    table_cell(t, "%s", r->file ? r->mask ? r->file : r->kind : "dense");
    add_number(t, 0, 100 * r->share, " %");
    add_number(t, 3, r->density, "");
    add_number(t, 3, r->retained, "");
    add_number(t, 3, 1000 * r->predicted, " ms");
    add_number(t, 3, 1000 * r->measured, " ms");
    add_number(t, 4, r->cosine, "");
    add_number(t, 3, r->neighbours, "");
}

static const char *const figures[] = {"share",    "density", "retained",  "predicted",
                                      "measured", "cosine",  "neighbours"};

static void print_table(const struct prune *p)
{
    struct text title = {0};
    struct table t = {0};
    text_add(
        &title,
        "importance of %s over %u lines; %u other lines are held out; n = %u, batch %u, %u "
        "threads\n\n",
        p->of_output ? "the output" : "attention", p->measured.texts, p->held_out.texts, p->n,
        p->batch, p->s.engine->threads);
    lines_print(&title, TABLE_WIDTH, 2);
    if (!p->rows)
        return;
    table_text_column(&t, "mask");
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
        table_number_column(&t, figures[k]);
    add_row(&p->dense, &t);
    for (uint32_t k = 0; k < p->rows; k++)
        add_row(&p->row[k], &t);
    table_print(&t, TABLE_WIDTH);
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
