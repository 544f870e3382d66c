/* SPDX-License-Identifier: Apache-2.0 */
/* The figure of one head: its importance, and next to it the entries that each mask keeps, a line of maps for each share or percentage. */
#include "masks/base/memory.h"
#include "tools/common/figure.h"
#include "tools/maskbert/prune/prune.h"
#include <math.h>
#include <stdlib.h>

static struct figure figure_of(const struct prune *p)
{
    return (struct figure){"pruned", p->o->picture, p->o->columns};
}

/* True for a row that begins a line. */
static bool begins(const struct prune *p, uint32_t k)
{
    const struct prune_row *row = &p->row[k];
    return k == 0 ||
           (isnan(row->share) ? row->keep != row[-1].keep : row->share != row[-1].share);
}

static json_t *bits_of(const struct prune *p, const struct mask *m)
{
    const struct pattern *pattern =
        mask_pattern(m, m->layers == 1 ? 0 : p->layer, m->heads == 1 ? 0 : p->head);
    uint8_t *bits = memory_new((size_t)p->n * p->n, 1);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++)
            bits[(size_t)i * p->n + j] = pattern_test(pattern, i, j);
    json_t *ret = figure_bits(bits, (struct figure_shape){2, {p->n, p->n}});
    free(bits);
    return ret;
}

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *row_json(const struct prune *p, const struct prune_row *r)
{
    return json_pack("{s:s, s:o, s:o, s:o}", "name", r->kind, "mask",
                     r->mask ? bits_of(p, r->mask) : json_null(), "density",
                     r->mask ? number(r->density) : json_null(), "cosine", number(r->cosine));
}

static json_t *line_name(const struct prune_row *r)
{
    return isnan(r->share) ? json_sprintf("%g %% of\nthe entries", r->keep)
                           : json_sprintf("%g %% of\ndense's time", 100 * r->share);
}

static json_t *lines_json(const struct prune *p)
{
    json_t *lines = json_array(), *masks = NULL;
    for (uint32_t k = 0; k < p->rows; k++) {
        if (begins(p, k)) {
            masks = json_array();
            json_array_append_new(
                lines, json_pack("{s:o, s:O}", "name", line_name(&p->row[k]), "masks", masks));
            json_decref(masks);
        }
        json_array_append_new(masks, row_json(p, &p->row[k]));
    }
    return lines;
}

int prune_check_picture(const struct prune *p, struct error *e)
{
    const struct figure f = figure_of(p);
    if (f.path && !p->keeps && !p->shares)
        return error_set(e, ERROR_INPUT,
                         "--plot %s: masks to draw are expected (--keep or --snap)", f.path);
    return f.path ? figure_ready(&f, e) : 0;
}

int prune_draw(const struct prune *p, struct error *e)
{
    const struct figure f = figure_of(p);
    json_t *numbers = json_pack(
        "{s:o, s:s, s:o, s:o}", "title", json_sprintf("Layer %u, head %u", p->layer, p->head),
        "label", p->of_output ? "importance for the output" : "mean attention", "importance",
        figure_floats(importance_head(&p->importance, p->layer, p->head),
                      (struct figure_shape){2, {p->n, p->n}}),
        "lines", lines_json(p));
    return figure_draw(&f, numbers, e);
}
