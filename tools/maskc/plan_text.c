/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskc/plan_text.h"
#include "masks/base/memory.h"
#include "masks/mask.h"
#include "masks/places.h"
#include "tools/common/table.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IN_FULL = 2, MOST_GROUPS = 24, HANG = 10, FIGURES = 3 };

/* --- the JSON of a plan ---------------------------------------------------------------------- */

struct view {
    const json_t *plan, *masks; /* masks: an entry for each pass of each distinct mask */
    uint32_t layers, heads, passes, distinct;
};

static struct view view_of(const json_t *plan)
{
    struct view v = {plan, json_object_get(plan, "masks"), 0, 0, 0, 0};
    v.layers = (uint32_t)json_integer_value(json_object_get(plan, "layers"));
    v.heads = (uint32_t)json_integer_value(json_object_get(plan, "head_count"));
    v.passes = json_object_get(plan, "backward") ? 2 : 1;
    v.distinct = (uint32_t)json_array_size(v.masks) / v.passes;
    if (v.layers > MASK_MAX_LAYERS || v.heads > MASK_MAX_HEADS) /* a corrupt file */
        v.layers = v.heads = v.distinct = 0;
    return v;
}

static const json_t *entry_of(const struct view *v, uint32_t mask, uint32_t pass)
{
    return json_array_get(v->masks, mask * v->passes + pass);
}

static const char *lowering_of_entry(const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "lowering"));
    return name ? name : "-";
}

static double real_of(const json_t *entry, const char *key)
{
    return json_number_value(json_object_get(entry, key));
}

/* Sets at[layer * heads + head] to `value` for each place of the mask. */
static void mark_places(const struct view *v, uint32_t mask, uint32_t value, uint32_t *at)
{
    size_t k;
    const json_t *place;
    json_array_foreach(json_object_get(entry_of(v, mask, 0), "at"), k, place)
    {
        const uint32_t l = (uint32_t)json_integer_value(json_array_get(place, 0)),
                       h = (uint32_t)json_integer_value(json_array_get(place, 1));
        if (l < v->layers && h < v->heads)
            at[(size_t)l * v->heads + h] = value;
    }
}

/* --- groups of masks ------------------------------------------------------------------------- */

struct range {
    double low, high;
};

/* Masks that each pass visits by the same lowerings. */
struct group {
    uint32_t first;                  /* a mask of it */
    struct range figure[2][FIGURES]; /* of each pass: percent executed, us a head, speed-up */
};

struct groups {
    struct group *of;
    uint32_t count, capacity;
    uint32_t *at; /* [layers * heads]: a place's group */
};

static void widen(struct range *r, double x, bool first)
{
    r->low = first ? x : fmin(r->low, x);
    r->high = first ? x : fmax(r->high, x);
}

static void add_figures(const struct view *v, struct group *g, uint32_t mask, bool first)
{
    for (uint32_t pass = 0; pass < v->passes; pass++) {
        const json_t *entry = entry_of(v, mask, pass);
        const double predicted = real_of(entry, "predicted_s");
        const size_t heads = json_array_size(json_object_get(entry, "heads"));
        widen(&g->figure[pass][0], 100 * real_of(entry, "executed_fraction"), first);
        widen(&g->figure[pass][1], 1e6 * predicted / (double)(heads ? heads : 1), first);
        widen(&g->figure[pass][2], real_of(entry, "dense_predicted_s") / predicted, first);
    }
}

static bool visited_alike(const struct view *v, uint32_t a, uint32_t b)
{
    bool same = true;
    for (uint32_t pass = 0; pass < v->passes; pass++)
        same = same && !strcmp(lowering_of_entry(entry_of(v, a, pass)),
                               lowering_of_entry(entry_of(v, b, pass)));
    return same;
}

static struct groups find_groups(const struct view *v)
{
    struct groups all = {.at = memory_new((size_t)v->layers * v->heads, sizeof *all.at)};
    for (uint32_t k = 0; k < v->distinct; k++) {
        uint32_t g = 0;
        while (g < all.count && !visited_alike(v, all.of[g].first, k))
            g++;
        const bool first = g == all.count;
        if (first)
            *MEMORY_PUSH(all.of, all.count, all.capacity) = (struct group){.first = k};
        add_figures(v, &all.of[g], k, first);
        mark_places(v, k, g, all.at);
    }
    return all;
}

/* --- the summary ----------------------------------------------------------------------------- */

/* "12.1" or "12.1-14.3" */
static void add_range(struct table *t, struct range r, const char *unit)
{
    char low[32], high[32];
    snprintf(low, sizeof low, "%.*f", r.high < 10 ? 2 : 1, r.low);
    snprintf(high, sizeof high, "%.*f", r.high < 10 ? 2 : 1, r.high);
    table_cell(t, "%s%s%s%s", low, strcmp(low, high) ? "-" : "", strcmp(low, high) ? high : "",
               unit);
}

static void add_group(const struct view *v, const struct groups *all, uint32_t g,
                      struct table *t)
{
    const struct mask places = {
        .layers = v->layers, .heads = v->heads, .n_patterns = all->count, .at = all->at};
    struct text where = {0};
    mask_places_text(&places, g, &where);
    for (uint32_t pass = 0; pass < v->passes; pass++) {
        const struct range *figure = all->of[g].figure[pass];
        table_cell(t, "%s", pass ? "" : text_get(&where));
        table_cell(t, pass ? "backward" : "forward");
        table_cell(t, "%s", lowering_of_entry(entry_of(v, all->of[g].first, pass)));
        add_range(t, figure[0], " %");
        add_range(t, figure[1], "");
        add_range(t, figure[2], "x");
    }
    text_finish(&where);
}

static void add_summary(const struct view *v, struct text *out)
{
    struct groups all = find_groups(v);
    struct table t = {0};
    table_text_column(&t, "");
    table_text_column(&t, "pass");
    table_text_column(&t, "visited by");
    table_number_column(&t, "executed");
    table_number_column(&t, "us a head");
    table_number_column(&t, "speed-up");
    for (uint32_t g = 0; g < all.count && g < MOST_GROUPS; g++)
        add_group(v, &all, g, &t);
    text_add(out, "\n");
    table_add_to(&t, TABLE_WIDTH, out);
    if (all.count > MOST_GROUPS)
        text_add(out, "... and %u more groups\n", all.count - MOST_GROUPS);
    text_add(out, "\n%s--head H prints one head in full, --wide all, --json everything.\n",
             v->layers > 1 ? "--layer L " : "");
    table_finish(&t);
    free(all.of);
    free(all.at);
}

/* --- one head -------------------------------------------------------------------------------- */

static const char *section(const char *text, uint32_t mask)
{
    char title[32];
    snprintf(title, sizeof title, "\nmask %u: ", mask);
    return strstr(text, title);
}

/* The distinct mask of the head in the layer of --layer; without it that of all layers. */
static int find_mask(const struct view *v, const struct options *o, uint32_t *ret,
                     struct error *e)
{
    const uint32_t head = (uint32_t)o->head, layers = v->layers,
                   layer = layers > 1 && o->layer >= 0 ? (uint32_t)o->layer : 0;
    if (head >= v->heads)
        return error_set(e, ERROR_INPUT, "--head %u: the plan has %u head%s, from 0", head,
                         v->heads, v->heads == 1 ? "" : "s");
    if (layer >= layers)
        return error_set(e, ERROR_INPUT, "--layer %u: the plan has %u layers, from 0", layer,
                         layers);
    uint32_t *at = memory_new((size_t)layers * v->heads, sizeof *at);
    bool differ = false;
    for (uint32_t k = 0; k < v->distinct; k++)
        mark_places(v, k, k, at);
    for (uint32_t l = 1; l < layers; l++)
        differ = differ || at[(size_t)l * v->heads + head] != at[head];
    *ret = at[(size_t)layer * v->heads + head];
    free(at);
    if (differ && o->layer < 0)
        return error_set(e, ERROR_INPUT,
                         "--head %u: its masks differ between the %u layers; --layer L is "
                         "expected",
                         head, layers);
    return 0;
}

static int add_one(const char *text, const struct view *v, const struct options *o,
                   struct text *out, struct error *e)
{
    uint32_t mask = 0;
    if (find_mask(v, o, &mask, e) < 0)
        return -1;
    const char *from = section(text, mask);
    const char *to = from ? section(text, mask + 1) : NULL;
    if (from)
        text_append(out, from, to ? (size_t)(to - from) : strlen(from));
    return 0;
}

int plan_text(const char *text, const json_t *plan, const struct options *o, struct text *out,
              struct error *e)
{
    const struct view v = view_of(plan);
    const char *masks = section(text, 0);
    const bool one = o->head >= 0, all = o->wide || v.distinct <= MOST_IN_FULL;
    struct text lines = {0};
    int r = 0;
    text_append(&lines, text, masks && (one || !all) ? (size_t)(masks - text) : strlen(text));
    if (one)
        r = add_one(text, &v, o, &lines, e);
    else if (!all)
        add_summary(&v, &lines);
    if (r == 0)
        lines_fold(text_get(&lines), o->wide ? 0 : TABLE_WIDTH, HANG, out);
    text_finish(&lines);
    return r;
}
