/* SPDX-License-Identifier: Apache-2.0 */
/* Each word is found in a few rows and then compared with every row of the pattern. The last row of a
   neighbourhood shows its whole window, causal or not; the first row shows which axes are causal. */
#include "masks/analysis/words.h"
#include "masks/base/memory.h"
#include "masks/graph/grid.h"
#include <stdlib.h>

enum { WINDOW_MAX = 1 << 14 }; /* keys of the last row */

/* --- documents ------------------------------------------------------------------------------- */

/* True if row i is the one run begin .. end - 1. */
static bool is_run(const struct pattern *p, uint32_t i, uint32_t begin, uint32_t end)
{
    const struct run *r = &p->run[p->row[i]];
    return p->row[i + 1] - p->row[i] == 1 && r->begin == begin && r->end == end;
}

/* End of the document that begins at `begin`; 0 where none does. */
static uint32_t document_end(const struct pattern *p, uint32_t begin, bool causal)
{
    uint32_t end = begin;
    if (causal)
        while (end < p->n && is_run(p, end, begin, end + 1))
            end++;
    else if (p->row[begin + 1] > p->row[begin])
        end = p->run[p->row[begin]].end;
    for (uint32_t i = begin; !causal && i < end; i++)
        if (!is_run(p, i, begin, end))
            return 0;
    return end > begin ? end : 0;
}

static bool say_documents(struct phrase *ret, const struct pattern *p, bool causal)
{
    struct text list = {0}, text = {0}, shown = {0};
    uint32_t begin = 0, count = 0;
    for (; begin < p->n; count++) {
        uint32_t end = document_end(p, begin, causal);
        if (!end || list.length > PHRASE_MAX_BYTES)
            break;
        text_add(&list, "%s%u", count ? "," : "", end - begin);
        if (count < PHRASE_SHOWN)
            text_add(&shown, "%s%u", count ? "," : "", end - begin);
        begin = end;
    }
    bool found = begin == p->n && count > 1;
    if (found) {
        struct text title = {0};
        text_add(&text, causal ? "(causal&documents(%s))" : "documents(%s)", text_get(&list));
        text_add(&title, "%sdocuments %s%s", causal ? "causal " : "", text_get(&shown),
                 count > PHRASE_SHOWN ? ",..." : "");
        phrase_add(ret, text_take(&text), text_take(&title));
    }
    text_finish(&list);
    text_finish(&shown);
    return found;
}

/* --- sink ------------------------------------------------------------------------------------ */

/* True if each row has the s first tokens, and a window of w keys. Causal: no key after its query. */
static bool is_sink(const struct pattern *p, uint32_t s, uint32_t w, bool causal)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct run *r = &p->run[p->row[i]];
        uint32_t begin = i + 1 > w ? i + 1 - w : 0, end = causal || i + 1 > s ? i + 1 : s;
        bool two = begin > s;
        if (p->row[i + 1] - p->row[i] != 1u + two || r[0].begin ||
            r[0].end != (two ? s : end) || (two && (r[1].begin != begin || r[1].end != end)))
            return false;
    }
    return true;
}

/* The last row has the s first tokens and the w last ones. */
static bool say_sink(struct phrase *ret, const struct pattern *p)
{
    const struct run *last = &p->run[p->row[p->n - 1]];
    if (p->row[p->n] - p->row[p->n - 1] != 2 || last[0].begin || last[1].end != p->n)
        return false;
    const uint32_t s = last[0].end, w = p->n - last[1].begin;
    const bool plain = is_sink(p, s, w, false);
    if (!plain && !is_sink(p, s, w, true))
        return false;
    struct text text = {0}, shown = {0};
    text_add(&text, plain ? "sink(%u,%u)" : "(causal&sink(%u,%u))", s, w);
    text_add(&shown, "%ssink %u window %u", plain ? "" : "causal ", s, w);
    phrase_add(ret, text_take(&text), text_take(&shown));
    return true;
}

/* --- neighbourhoods -------------------------------------------------------------------------- */

/* Keys of the last row as distances from the last token, ascending. */
struct window {
    uint32_t n, count;
    uint32_t *distance; /* owned */
};

static struct window window_new(const struct pattern *p)
{
    uint32_t last = p->n - 1, count = pattern_row_active(p, last);
    struct window w = {.n = p->n};
    if (count < 2 || count > WINDOW_MAX || !pattern_test(p, last, last))
        return w;
    w.distance = memory_new(count, sizeof *w.distance);
    for (uint64_t r = p->row[p->n]; r-- > p->row[last];)
        for (uint32_t j = p->run[r].end; j-- > p->run[r].begin;)
            w.distance[w.count++] = last - j;
    return w;
}

/* Finds the axis whose neighbours are `unit` tokens apart. `every` is the number of window keys along the inner axes.
   False unless the distances below unit * size are 0, d, 2d, ... times `unit`. */
static bool find_axis(const struct window *w, uint32_t unit, uint32_t size, uint32_t every,
                      struct grid_axis *ret)
{
    uint64_t limit = (uint64_t)unit * size;
    uint32_t kernel = 0, dilation = 1;
    for (uint64_t k = 0; k < w->count && w->distance[k] < limit; k += every, kernel++) {
        uint32_t at = w->distance[k] / unit;
        dilation = kernel == 1 ? at : dilation;
        if (w->distance[k] % unit || at != (uint64_t)kernel * dilation)
            return false;
    }
    *ret = (struct grid_axis){size, kernel, dilation, false};
    return kernel && dilation && (uint64_t)kernel * dilation <= size;
}

/* Merges adjacent runs as they arrive and compares them with the runs of a row. */
struct match {
    const struct pattern *pattern;
    uint64_t next, end; /* runs of the row */
    struct run pending; /* end 0: none */
    bool equal;
};

static void compare_pending(struct match *m)
{
    const struct run *r = &m->pattern->run[m->next];
    m->equal = m->equal && m->next < m->end && r->begin == m->pending.begin &&
               r->end == m->pending.end;
    m->next++;
}

static void match_run(void *context, uint32_t begin, uint32_t end)
{
    struct match *m = context;
    if (m->pending.end && m->pending.end == begin) {
        m->pending.end = end;
        return;
    }
    if (m->pending.end)
        compare_pending(m);
    m->pending = (struct run){begin, end};
}

static bool is_grid(const struct pattern *p, const struct grid *g)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct match m = {p, p->row[i], p->row[i + 1], {0, 0}, true};
        grid_row(g, i, match_run, &m);
        compare_pending(&m);
        if (!m.equal || m.next != m.end)
            return false;
    }
    return true;
}

/* Marks the causal axes; false if no choice of them gives the pattern. */
static bool find_causal(const struct pattern *p, struct grid *g)
{
    uint32_t first = GRID_MAX_AXES - g->n_axes;
    for (uint32_t bits = 0; bits < 1u << g->n_axes; bits++) {
        bool useful = true;
        for (uint32_t k = 0; k < g->n_axes; k++) {
            g->axis[first + k].causal = bits >> k & 1;
            useful = useful && !(g->axis[first + k].causal && g->axis[first + k].kernel == 1);
        }
        if (useful && is_grid(p, g))
            return true;
    }
    return false;
}

static bool try_grid(const struct pattern *p, const struct window *w, const uint32_t size[3],
                     struct grid *ret)
{
    struct grid_axis *axis = ret->axis;
    ret->n_axes = 1 + (size[1] > 1) + (size[0] > 1);
    if (!find_axis(w, 1, size[2], 1, &axis[2]) ||
        !find_axis(w, size[2], size[1], axis[2].kernel, &axis[1]) ||
        !find_axis(w, size[2] * size[1], size[0], axis[2].kernel * axis[1].kernel, &axis[0]))
        return false;
    return axis[0].kernel * axis[1].kernel * axis[2].kernel == w->count && find_causal(p, ret);
}

/* Grids of one axis first, then of two and three. */
static bool find_grid(const struct pattern *p, const struct window *w, struct grid *ret)
{
    enum { DIVISORS = 256 }; /* at most 240 below 2^20 */
    uint32_t divisor[DIVISORS], count = 0;
    for (uint32_t d = 2; d < p->n; d++)
        if (p->n % d == 0)
            divisor[count++] = d;
    if (try_grid(p, w, (uint32_t[]){1, 1, p->n}, ret))
        return true;
    for (uint32_t k = 0; k < count; k++)
        if (try_grid(p, w, (uint32_t[]){1, p->n / divisor[k], divisor[k]}, ret))
            return true;
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t b = 0; b < k; b++) {
            uint32_t inner = divisor[b], middle = divisor[k] / inner;
            if (divisor[k] % inner == 0 &&
                try_grid(p, w, (uint32_t[]){p->n / divisor[k], middle, inner}, ret))
                return true;
        }
    return false;
}

/* Appends " name=[..]" of all axes where one is not `usual`. */
static void add_option(struct text *out, const struct grid *g, const char *name, uint32_t usual)
{
    const struct grid_axis *axis = g->axis + GRID_MAX_AXES - g->n_axes;
    bool dilation = usual == 1, told = false;
    for (uint32_t k = 0; k < g->n_axes; k++)
        told = told || (dilation ? axis[k].dilation : axis[k].causal) != usual;
    for (uint32_t k = 0; told && k < g->n_axes; k++)
        text_add(out, "%s%s%u", k ? "," : name, k ? "" : "=[",
                 dilation ? axis[k].dilation : axis[k].causal);
    text_add(out, "%s", told ? "]" : "");
}

static void add_grid(struct phrase *ret, const struct grid *g)
{
    const struct grid_axis *axis = g->axis + GRID_MAX_AXES - g->n_axes;
    struct text text = {0}, shown = {0}, dilation = {0}, causal = {0};
    text_add(&text, "neighborhood(");
    text_add(&shown, "neighborhood ");
    for (uint32_t k = 0; k < g->n_axes; k++) {
        text_add(&text, "%u,", axis[k].size);
        text_add(&shown, "%s%u", k ? "x" : "", axis[k].size);
    }
    text_add(&shown, " window ");
    for (uint32_t k = 0; k < g->n_axes; k++) {
        text_add(&text, "%s%u", k ? "," : "", axis[k].kernel);
        text_add(&shown, "%s%u", k ? "x" : "", axis[k].kernel);
    }
    add_option(&dilation, g, "dilation", 1);
    add_option(&causal, g, "causal", 0);
    const char *options[] = {text_get(&dilation), text_get(&causal)};
    for (uint32_t k = 0; k < 2; k++)
        if (options[k][0]) {
            text_add(&text, ",%s", options[k]);
            text_add(&shown, " %s", options[k]);
        }
    text_add(&text, ")");
    text_finish(&dilation);
    text_finish(&causal);
    phrase_add(ret, text_take(&text), text_take(&shown));
}

bool words_say(struct phrase *p, const struct pattern *pattern)
{
    if (say_documents(p, pattern, false) || say_documents(p, pattern, true) ||
        say_sink(p, pattern))
        return true;
    struct window w = window_new(pattern);
    struct grid g;
    bool found = w.count && find_grid(pattern, &w, &g);
    if (found)
        add_grid(p, &g);
    free(w.distance);
    return found;
}
