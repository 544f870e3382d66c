/* SPDX-License-Identifier: Apache-2.0 */
/* maskc show: what a mask holds, for each group of places with the same mask, as text with a small
   picture, as JSON, as PNG or SVG. */
#include "masks/analysis/analysis.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/picture/picture.h"
#include "masks/places.h"
#include "tools/common/table.h"
#include "tools/maskc/command.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 80, MOST_COLUMNS = 160, MOST_TERMS = 12 };
enum { MOST_IN_FULL = 4, MOST_ROWS = 24, TERMS_IN_ROW = 3 };

static double sparsity(const struct pattern *p)
{
    return 100 - 100 * (double)p->active / ((double)p->n * p->n);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static json_t *places_json(const struct mask *m, uint32_t k)
{
    json_t *at = json_array();
    for (uint32_t l = 0; l < m->layers; l++)
        for (uint32_t h = 0; h < m->heads; h++)
            if (m->at[(size_t)l * m->heads + h] == k)
                json_array_append_new(at, json_pack("[i, i]", (int)l, (int)h));
    return at;
}

/* Heads that have this mask in some layer. */
static json_t *heads_json(const struct mask *m, uint32_t k)
{
    json_t *heads = json_array();
    for (uint32_t h = 0; h < m->heads; h++) {
        bool has = false;
        for (uint32_t l = 0; l < m->layers && !has; l++)
            has = m->at[(size_t)l * m->heads + h] == k;
        if (has)
            json_array_append_new(heads, json_integer(h));
    }
    return heads;
}

static json_t *structure_json(const struct analysis *a)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < a->n_terms; k++)
        json_array_append_new(list, json_string(a->terms[k].structure));
    if (a->without.structure)
        json_array_append_new(list, json_string(a->without.structure));
    return list;
}

static json_t *pattern_json(const struct mask *m, uint32_t k, const struct analysis *a)
{
    char *expression = analysis_expression(a);
    json_t *j =
        json_pack("{s:o, s:o, s:I, s:f, s:f, s:i, s:b, s:o, s:I, s:b, s:o}", "heads",
                  heads_json(m, k), "at", places_json(m, k), "active", (json_int_t)a->active,
                  "sparsity", round(sparsity(m->pattern[k]) * 100) / 100, "density",
                  (double)a->active / ((double)a->n * a->n), "empty_rows", (int)a->empty_rows,
                  "symmetric", (int)a->symmetric, "structure", structure_json(a), "residue",
                  (json_int_t)a->residue, "exact", (int)a->exact, "expression",
                  expression ? json_string(expression) : json_null());
    free(expression);
    return j;
}

static void print_json(const struct mask *m, struct analysis *const *analysis)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < m->n_patterns; k++)
        json_array_append_new(list, pattern_json(m, k, analysis[k]));
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)mask_hash(m));
    command_print_json(json_pack("{s:i, s:i, s:i, s:i, s:s, s:o}", "length", (int)m->n, "heads",
                                 (int)m->heads, "layers", (int)m->layers, "distinct",
                                 (int)m->n_patterns, "hash", hash, "masks", list));
}

/* --- text ------------------------------------------------------------------------------------ */

static void add_structure(const struct analysis *a, struct text *out)
{
    const char *title = "structure";
    uint32_t shown = a->n_terms > MOST_TERMS ? MOST_TERMS - 1 : a->n_terms;
    for (uint32_t k = 0; k < shown; k++, title = "")
        text_add(out, "  %-12s %s\n", title, a->terms[k].structure);
    if (shown < a->n_terms)
        text_add(out, "  %-12s ... and %u more\n", "", a->n_terms - shown);
    if (a->without.structure)
        text_add(out, "  %-12s %s\n", "", a->without.structure);
    if (a->residue)
        text_add(out, "  %-12s %llu entries without structure\n", title,
                 (unsigned long long)a->residue);
}

static void add_pattern(const struct mask *m, uint32_t k, const struct analysis *a,
                        struct text *out)
{
    text_add(out, "\n");
    mask_places_text(m, k, out);
    text_add(out, "\n  %-12s %llu of %llu entries\n", "active", (unsigned long long)a->active,
             (unsigned long long)a->n * a->n);
    text_add(out, "  %-12s %.2f %% (density %.4g)\n", "sparsity", sparsity(m->pattern[k]),
             (double)a->active / ((double)a->n * a->n));
    text_add(out, "  %-12s %u\n", "empty rows", a->empty_rows);
    text_add(out, "  %-12s %s\n", "symmetric", a->symmetric ? "yes" : "no");
    add_structure(a, out);
}

/* The first terms, in one line. */
static void structure_cell(const struct analysis *a, struct table *t)
{
    struct text line = {0};
    for (uint32_t k = 0; k < a->n_terms && k < TERMS_IN_ROW; k++)
        text_add(&line, "%s%s", k ? "; " : "", a->terms[k].structure);
    if (a->n_terms > TERMS_IN_ROW)
        text_add(&line, "; %u more", a->n_terms - TERMS_IN_ROW);
    if (a->without.structure)
        text_add(&line, "; %s", a->without.structure);
    if (a->residue)
        text_add(&line, "%s%llu entries without structure", a->n_terms ? "; " : "",
                 (unsigned long long)a->residue);
    table_cell(t, "%s", text_get(&line));
    text_finish(&line);
}

/* A row for each distinct mask. */
static void tabulate_masks(const struct mask *m, struct analysis *const *analysis,
                           struct table *t)
{
    table_text_column(t, "");
    table_number_column(t, "sparsity");
    table_number_column(t, "active");
    table_number_column(t, "empty rows");
    table_text_column(t, "structure");
    for (uint32_t k = 0; k < m->n_patterns && k < MOST_ROWS; k++) {
        struct text places = {0};
        mask_places_text(m, k, &places);
        table_cell(t, "%s", text_get(&places));
        table_cell(t, "%.2f %%", sparsity(m->pattern[k]));
        table_cell(t, "%llu", (unsigned long long)analysis[k]->active);
        table_cell(t, "%u", analysis[k]->empty_rows);
        structure_cell(analysis[k], t);
        text_finish(&places);
    }
}

/* Distinct masks of the layer, and the least and the largest sparsity. */
static uint32_t layer_range(const struct mask *m, uint32_t layer, double *low, double *high)
{
    uint32_t distinct = 0;
    const uint32_t *at = m->at + (size_t)layer * m->heads;
    *low = 100;
    *high = 0;
    for (uint32_t h = 0; h < m->heads; h++) {
        const double x = sparsity(m->pattern[at[h]]);
        uint32_t before = 0;
        while (at[before] != at[h])
            before++;
        distinct += before == h;
        *low = fmin(*low, x);
        *high = fmax(*high, x);
    }
    return distinct;
}

/* A row for each layer. */
static void tabulate_layers(const struct mask *m, struct analysis *const *analysis,
                            struct table *t)
{
    table_text_column(t, "");
    table_number_column(t, "distinct masks");
    table_number_column(t, "sparsity from");
    table_number_column(t, "to");
    table_number_column(t, "empty rows");
    for (uint32_t l = 0; l < m->layers && l < MOST_ROWS; l++) {
        double low, high;
        const uint32_t distinct = layer_range(m, l, &low, &high);
        uint64_t empty = 0;
        for (uint32_t h = 0; h < m->heads; h++)
            empty += analysis[m->at[(size_t)l * m->heads + h]]->empty_rows;
        table_cell(t, "layer %u", l);
        table_cell(t, "%u", distinct);
        table_cell(t, "%.2f %%", low);
        table_cell(t, "%.2f %%", high);
        table_cell(t, "%llu", (unsigned long long)empty);
    }
}

static void add_summary(const struct mask *m, struct analysis *const *analysis,
                        struct text *out)
{
    const bool layers = m->layers > 1 && m->n_patterns > MOST_ROWS;
    const uint32_t rows = layers ? m->layers : m->n_patterns;
    struct table t = {0};
    (layers ? tabulate_layers : tabulate_masks)(m, analysis, &t);
    text_add(out, "\n");
    table_add_to(&t, TABLE_WIDTH, out);
    if (rows > MOST_ROWS)
        text_add(out, "... and %u more %s\n", rows - MOST_ROWS, layers ? "layers" : "masks");
    text_add(out, "\n%s--head H prints one head in full, --wide all, --json everything.\n",
             m->layers > 1 ? "--layer L " : "");
    table_finish(&t);
}

static uint32_t terminal_columns(bool wide)
{
    const uint32_t most = wide ? MOST_COLUMNS : TABLE_WIDTH;
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 16)
        return COLUMNS;
    return size.ws_col < most ? size.ws_col : most;
}

static bool head_has(const struct mask *m, uint32_t head, uint32_t which)
{
    for (uint32_t l = 0; l < m->layers; l++)
        if (m->at[(size_t)l * m->heads + head] == which)
            return true;
    return false;
}

/* The masks of a head in all layers. `one` is a mask of this head only. */
static void print_head(const struct mask *m, const struct mask *one,
                       struct analysis *const *analysis, const struct options *o)
{
    struct text out = {0}, picture = {0};
    mask_draw_text(one, terminal_columns(o->wide), &picture);
    const char *untitled = strchr(text_get(&picture), '\n'); /* "head 0" is above it */
    text_add(&out, "%s: %u x %u, head %u of %u\n", m->source, m->n, m->n, (uint32_t)o->head,
             m->heads);
    for (uint32_t k = 0; k < m->n_patterns; k++)
        if (head_has(m, (uint32_t)o->head, k))
            add_pattern(m, k, analysis[k], &out);
    if (one->n_patterns == 1 && untitled)
        text_add(&out, "%s", untitled);
    lines_print(&out, o->wide ? 0 : TABLE_WIDTH, 13);
    text_finish(&picture);
}

static void print_text(const struct mask *m, struct analysis *const *analysis, bool wide)
{
    struct text out = {0};
    text_add(&out, "%s: %u x %u, %u head%s, %u layer%s, %u distinct mask%s\n", m->source, m->n,
             m->n, m->heads, m->heads == 1 ? "" : "s", m->layers, m->layers == 1 ? "" : "s",
             m->n_patterns, m->n_patterns == 1 ? "" : "s");
    if (wide || m->n_patterns <= MOST_IN_FULL)
        for (uint32_t k = 0; k < m->n_patterns; k++)
            add_pattern(m, k, analysis[k], &out);
    else
        add_summary(m, analysis, &out);
    text_add(&out, "\n");
    mask_draw_text(m, terminal_columns(wide), &out);
    lines_print(&out, wide ? 0 : TABLE_WIDTH, 13);
}

/* --------------------------------------------------------------------------------------------- */

static void show(const struct mask *m, const struct mask *one, const struct options *o)
{
    struct analysis **analysis = memory_new(m->n_patterns, sizeof *analysis);
    for (uint32_t k = 0; k < m->n_patterns; k++)
        analysis[k] = analysis_run(m->pattern[k]);
    if (o->json)
        print_json(m, analysis);
    else if (one)
        print_head(m, one, analysis, o);
    else
        print_text(m, analysis, o->wide);
    for (uint32_t k = 0; k < m->n_patterns; k++)
        analysis_destroy(analysis[k]);
    free(analysis);
}

static int check_options(const struct options *o, struct error *e)
{
    if (o->head >= 0 && o->output)
        return error_set(e, ERROR_INPUT, "--head and -o: the picture has all heads");
    return command_check_head(o, e);
}

/* The picture first: where it cannot be written, nothing is printed. */
static int show_mask(const struct mask *m, const struct options *o, struct error *e)
{
    struct mask *one = o->head >= 0 ? mask_head(m, (uint32_t)o->head, e) : NULL;
    int r = o->head >= 0 && !one ? -1 : o->output ? mask_draw(m, o->output, e) : 0;
    if (r == 0)
        show(m, one, o);
    mask_destroy(one);
    return r;
}

int command_show(const struct options *o)
{
    struct error e = {0};
    if (check_options(o, &e) < 0)
        return command_fail(&e);
    struct mask *m = options_mask(o, o->argument[0], o->length[0], 0, &e);
    int r = m ? show_mask(m, o, &e) : -1;
    mask_destroy(m);
    return r < 0 ? command_fail(&e) : 0;
}
