/* SPDX-License-Identifier: Apache-2.0 */
/* maskc show: what a mask holds, for each group of places with the same mask, as text with a small
   picture, as JSON, as PNG or SVG. */
#include "masks/analysis/analysis.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/picture/picture.h"
#include "masks/places.h"
#include "tools/maskc/command.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 80, MOST_COLUMNS = 160, MOST_TERMS = 12 };

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

static void print_structure(const struct analysis *a)
{
    const char *title = "structure";
    uint32_t shown = a->n_terms > MOST_TERMS ? MOST_TERMS - 1 : a->n_terms;
    for (uint32_t k = 0; k < shown; k++, title = "")
        printf("  %-12s %s\n", title, a->terms[k].structure);
    if (shown < a->n_terms)
        printf("  %-12s ... and %u more\n", "", a->n_terms - shown);
    if (a->without.structure)
        printf("  %-12s %s\n", "", a->without.structure);
    if (a->residue)
        printf("  %-12s %llu entries without structure\n", title,
               (unsigned long long)a->residue);
}

static void print_pattern(const struct mask *m, uint32_t k, const struct analysis *a)
{
    struct text places = {0};
    mask_places_text(m, k, &places);
    printf("\n%s\n", text_get(&places));
    text_finish(&places);
    printf("  %-12s %llu of %llu entries\n", "active", (unsigned long long)a->active,
           (unsigned long long)a->n * a->n);
    printf("  %-12s %.2f %% (density %.4g)\n", "sparsity", sparsity(m->pattern[k]),
           (double)a->active / ((double)a->n * a->n));
    printf("  %-12s %u\n", "empty rows", a->empty_rows);
    printf("  %-12s %s\n", "symmetric", a->symmetric ? "yes" : "no");
    print_structure(a);
}

static uint32_t terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 16)
        return COLUMNS;
    return size.ws_col < MOST_COLUMNS ? size.ws_col : MOST_COLUMNS;
}

static void print_text(const struct mask *m, struct analysis *const *analysis)
{
    printf("%s: %u x %u, %u head%s, %u layer%s, %u distinct mask%s\n", m->source, m->n, m->n,
           m->heads, m->heads == 1 ? "" : "s", m->layers, m->layers == 1 ? "" : "s",
           m->n_patterns, m->n_patterns == 1 ? "" : "s");
    for (uint32_t k = 0; k < m->n_patterns; k++)
        print_pattern(m, k, analysis[k]);
    struct text picture = {0};
    mask_draw_text(m, terminal_columns(), &picture);
    printf("\n%s", text_get(&picture));
    text_finish(&picture);
}

/* --------------------------------------------------------------------------------------------- */

static void show(const struct mask *m, bool json)
{
    struct analysis **analysis = memory_new(m->n_patterns, sizeof *analysis);
    for (uint32_t k = 0; k < m->n_patterns; k++)
        analysis[k] = analysis_run(m->pattern[k]);
    if (json)
        print_json(m, analysis);
    else
        print_text(m, analysis);
    for (uint32_t k = 0; k < m->n_patterns; k++)
        analysis_destroy(analysis[k]);
    free(analysis);
}

/* The picture first: where it cannot be written, nothing is printed. */
int command_show(const struct options *o)
{
    struct error e = {0};
    struct mask *m = options_mask(o, o->argument[0], o->length[0], 0, &e);
    if (!m)
        return command_fail(&e);
    int r = o->output ? mask_draw(m, o->output, &e) : 0;
    if (r == 0)
        show(m, o->json);
    mask_destroy(m);
    return r < 0 ? command_fail(&e) : 0;
}
