/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/readers/duo.h"
#include "masks/base/file.h"
#include "masks/base/json_load.h"
#include "masks/base/memory.h"
#include "masks/base/number.h"
#include "masks/base/text.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 26 };

/* ---- full_attention_heads.tsv ---- */

struct lines {
    const char *name;
    char *at, *begin; /* of the line */
    uint32_t line;    /* from 1 */
    uint64_t count, capacity;
};

static int refuse(const struct lines *in, struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s:%u:%zu: numbers between tabs are expected", in->name,
                     in->line, (size_t)(in->at - in->begin) + 1);
}

/* A number in decimal notation at in->at, which moves behind it. */
static int parse_number(struct lines *in, double *ret, struct error *e)
{
    char *end = in->at;
    const size_t size = strspn(in->at, "+-.0123456789eE");
    *ret = size ? number_read(in->at, &end) : 0;
    if (!size || end != in->at + size || !isfinite(*ret))
        return refuse(in, e);
    in->at = end;
    return 0;
}

static int parse_line(struct lines *in, struct duo *g, struct error *e)
{
    uint32_t count = 0;
    for (bool more = true; more; count++) {
        double value;
        if (parse_number(in, &value, e) < 0)
            return -1;
        *MEMORY_PUSH(g->value, in->count, in->capacity) = value;
        more = *in->at == '\t' && in->count <= MASK_MAX_PLACES;
        in->at += more;
    }
    g->heads = g->layers++ ? g->heads : count;
    if (count != g->heads)
        return error_set(e, ERROR_INPUT, "%s:%u:1: %u numbers, %u are expected", in->name,
                         in->line, count, g->heads);
    if (g->heads > MASK_MAX_HEADS || g->layers > MASK_MAX_LAYERS || in->count > MASK_MAX_PLACES)
        return error_set(e, ERROR_INPUT,
                         "%s:%u:1: at most %d layers, %d heads and %d values are expected",
                         in->name, in->line, MASK_MAX_LAYERS, MASK_MAX_HEADS, MASK_MAX_PLACES);
    return 0;
}

static int parse_lines(struct lines *in, struct duo *g, const char *end, struct error *e)
{
    for (; in->at < end; in->line++) {
        in->begin = in->at;
        if (*in->at != '\n' && *in->at != '\r' && parse_line(in, g, e) < 0)
            return -1;
        in->at += *in->at == '\r';
        if (in->at < end && *in->at != '\n')
            return refuse(in, e);
        in->at++;
    }
    return g->layers ? 0
                     : error_set(e, ERROR_INPUT, "%s: empty, a line for each layer is expected",
                                 in->name);
}

int duo_parse(const char *text, size_t size, const char *name, struct duo *ret, struct error *e)
{
    struct duo g = {0};
    if (size > MOST_BYTES)
        return error_set(e, ERROR_INPUT, "%s: %zu bytes, at most %d are expected", name, size,
                         MOST_BYTES);
    char *copy = memory_new(size + 1, 1); /* ends in a zero */
    memcpy(copy, text, size);
    struct lines in = {.name = name, .at = copy, .begin = copy, .line = 1};
    const int r = parse_lines(&in, &g, copy + size, e);
    free(copy);
    if (r < 0)
        duo_finish(&g);
    else
        *ret = g;
    return r;
}

void duo_finish(struct duo *g)
{
    free(g->value);
    *g = (struct duo){0};
}

/* ---- config.json ---- */

static int take_size(const json_t *json, const char *key, const char *name, uint32_t *ret,
                     struct error *e)
{
    const json_t *value = json_object_get(json, key);
    const json_int_t size = json_integer_value(value);
    if (!json_is_integer(value) || size < 0 || size > INT32_MAX)
        return error_set(e, ERROR_INPUT, "%s: %s: a number of tokens is expected", name, key);
    *ret = (uint32_t)size;
    return 0;
}

int duo_parse_config(const char *json, size_t size, const char *name, struct duo *ret,
                     struct error *e)
{
    json_error_t why;
    json_t *object = json_load_bytes(json, size, JSON_FROM_FILE, &why);
    if (!object)
        return error_set(e, ERROR_INPUT, "%s:%d:%d: no JSON: %.80s", name, why.line, why.column,
                         why.text);
    int r = take_size(object, "sink_size", name, &ret->sink, e);
    if (r == 0)
        r = take_size(object, "recent_size", name, &ret->recent, e);
    json_decref(object);
    return r;
}

/* ---- the choice of full heads ---- */

struct place {
    double value;
    uint32_t at; /* layer * heads + head */
};

static int ascending(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* numpy.quantile(values, q) lies above so many of n different values, where 0 < q < 1. */
static uint32_t below_quantile(double q, uint32_t n)
{
    return q <= 0 ? 0 : q >= 1 ? n : (uint32_t)ceil(q * (n - 1.0));
}

/* ret: [layers, heads], zeroed */
static void choose(const struct duo *g, const struct mask_request *r, bool *ret)
{
    const uint32_t n = g->layers * g->heads;
    const double threshold = r->has_threshold ? r->threshold : 0.5;
    struct place *place = memory_new(n, sizeof *place);
    for (uint32_t k = 0; k < n; k++) {
        place[k] = (struct place){fmin(fmax(g->value[k], 0), 1), k};
        ret[k] = !r->has_keep && place[k].value >= threshold;
    }
    if (r->has_keep) {
        qsort(place, n, sizeof *place, ascending);
        for (uint32_t k = below_quantile((100 - r->keep) / 100, n); k < n; k++)
            ret[place[k].at] = true;
    }
    free(place);
}

static int check_request(const struct duo *g, const struct mask_request *r, struct error *e)
{
    if (!r->n)
        return error_set(e, ERROR_INPUT,
                         "%s: the mask has no length of its own, -n N is expected", r->name);
    if (r->has_threshold && r->has_keep)
        return error_set(e, ERROR_INPUT, "%s: --threshold or --keep is expected, not both",
                         r->name);
    if (r->has_threshold && r->threshold != r->threshold)
        return error_set(e, ERROR_INPUT, "--threshold is not a number");
    if (r->has_keep && !(r->keep >= 0 && r->keep <= 100))
        return error_set(
            e, ERROR_INPUT,
            "--keep %g is out of range, a percentage of the heads, 0..100, is expected",
            r->keep);
    if (r->heads % g->heads != 0)
        return error_set(e, ERROR_INPUT,
                         "%s: --heads %u: a multiple of the file's %u heads is expected",
                         r->name, r->heads, g->heads);
    return mask_check_heads(g->layers, r->heads, e);
}

/* ---- the mask ---- */

/* Causal rows; from the row on that has them, keys sink .. i - recent are left out. */
static struct pattern *make_pattern(uint32_t n, uint64_t sink, uint64_t recent)
{
    struct pattern *p = pattern_new(n);
    for (uint32_t i = 0; i < n; i++) {
        const bool whole = i + UINT64_C(1) <= sink + recent;
        if (whole || sink)
            pattern_add(p, i, 0, whole ? i + 1 : (uint32_t)sink);
        if (!whole && recent)
            pattern_add(p, i, (uint32_t)(i + 1 - recent), i + 1);
        pattern_row(p, i);
    }
    return pattern_finish(p);
}

struct mask *duo_mask(const struct duo *g, const struct mask_request *r, struct error *e)
{
    if (check_request(g, r, e) < 0)
        return NULL;
    const uint32_t heads = r->heads ? r->heads : g->heads, each = heads / g->heads;
    const bool all = (uint64_t)g->sink + g->recent >= r->n; /* both patterns are equal */
    bool *full = memory_new((size_t)g->layers * g->heads, sizeof *full), any[2] = {false};
    struct pattern *of[2] = {make_pattern(r->n, g->sink, g->recent),
                             make_pattern(r->n, r->n, 0)};
    struct pattern **given = memory_new((size_t)g->layers * heads, sizeof *given);
    choose(g, r, full);
    for (uint32_t k = 0; k < g->layers * heads; k++) {
        const bool is_full = all || full[k / heads * g->heads + k % heads / each];
        given[k] = of[is_full];
        any[is_full] = true;
    }
    struct mask *m = mask_new(g->layers, heads, given, r->name);
    for (int k = 0; k < 2; k++)
        if (!any[k])
            pattern_destroy(of[k]);
    free(given);
    free(full);
    return m;
}

static int read_file(const char *path, struct duo *g,
                     int (*parse)(const char *, size_t, const char *, struct duo *,
                                  struct error *),
                     struct error *e)
{
    struct file f;
    if (file_open(path, &f, e) < 0)
        return -1;
    const int r = parse((const char *)f.bytes, f.size, path, g, e);
    file_close(&f);
    return r;
}

struct mask *duo_read(const struct mask_request *r, struct error *e)
{
    struct duo g = {0};
    struct text config = {0};
    const char *slash = strrchr(r->name, '/');
    text_append(&config, r->name, slash ? (size_t)(slash + 1 - r->name) : 0);
    text_add(&config, "config.json");
    struct mask *m = NULL;
    if (read_file(r->name, &g, duo_parse, e) == 0 &&
        read_file(text_get(&config), &g, duo_parse_config, e) == 0)
        m = duo_mask(&g, r, e);
    text_finish(&config);
    duo_finish(&g);
    return m;
}
