/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert plot: the logs of runs as curves. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/checkpoint/json.h"
#include "tools/common/figure.h"
#include "tools/maskbert/command.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct point {
    double x, y;
};

struct points {
    struct point *at; /* x ascends */
    uint32_t count, capacity;
};

struct curve {
    char *name;
    struct points steps, evaluations;
};

struct curves {
    struct curve *curve;
    struct text setting; /* a line for each run whose folder has its settings */
    uint32_t count;
    const char *x, *y; /* as --x and --y name them */
};

static const struct axis {
    const char *name, *field;
} axes[] = {{"step", "step"}, {"tokens", "tokens"}, {"time", "elapsed_s"}};

static const char *find_axis(const char *name, struct error *e)
{
    for (size_t k = 0; k < sizeof axes / sizeof *axes; k++)
        if (!name || !strcmp(name, axes[k].name))
            return axes[k].field;
    error_set(e, ERROR_INPUT, "--x %s: step, tokens or time is expected", name);
    return NULL;
}

/* A folder has a log.jsonl. */
static char *log_path(const char *given)
{
    struct stat s;
    return stat(given, &s) == 0 && S_ISDIR(s.st_mode) ? path_join(given, "log.jsonl")
                                                      : memory_text(given);
}

/* "runs/a/log.jsonl" is a. */
static char *curve_name(const char *path)
{
    char *copy = memory_text(path), *slash = strrchr(copy, '/');
    while (slash && (!strcmp(slash, "/log.jsonl") || !slash[1])) {
        *slash = 0;
        slash = strrchr(copy, '/');
    }
    char *ret = memory_text(slash ? slash + 1 : copy);
    free(copy);
    return ret;
}

/* ---- a log ---- */

struct reading {
    struct curve *curve;
    const char *x, *y;
    double seconds; /* of the last step: evaluations do not say it */
};

/* After a resume a log has steps again: the last line of a step counts. */
static void add(struct points *p, double x, double y)
{
    while (p->count && p->at[p->count - 1].x >= x)
        p->count--;
    if (isfinite(x) && isfinite(y))
        *MEMORY_PUSH(p->at, p->count, p->capacity) = (struct point){x, y};
}

static double number(const json_t *line, const char *name)
{
    const json_t *v = json_object_get(line, name);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static void add_line(struct reading *r, const json_t *line)
{
    const bool evaluation = json_object_get(line, "eval");
    double x = number(line, r->x);
    if (json_object_get(line, "event"))
        return;
    if (!evaluation)
        r->seconds = number(line, "elapsed_s");
    else if (!strcmp(r->x, "elapsed_s"))
        x = r->seconds;
    add(evaluation ? &r->curve->evaluations : &r->curve->steps, x, number(line, r->y));
}

static int read_lines(struct reading *r, const struct file *f, const char *path,
                      struct error *e)
{
    const char *at = (const char *)f->bytes, *end = at + f->size, *next;
    for (uint32_t n = 1; (next = memchr(at, '\n', (size_t)(end - at))); n++, at = next + 1) {
        json_t *line = json_loadb(at, (size_t)(next - at), 0, NULL);
        if (!json_is_object(line)) {
            json_decref(line);
            return error_set(e, ERROR_INPUT, "%s:%u: a JSON object is expected", path, n);
        }
        add_line(r, line);
        json_decref(line);
    }
    const struct curve *c = r->curve;
    return c->steps.count + c->evaluations.count
               ? 0
               : error_set(e, ERROR_INPUT, "%s: no line has numbers named \"%s\"", path, r->y);
}

static int read_log(const char *given, struct reading r, struct error *e)
{
    struct file f;
    char *path = log_path(given);
    int result = file_open(path, &f, e);
    if (result == 0) {
        r.curve->name = curve_name(path);
        result = read_lines(&r, &f, path, e);
        file_close(&f);
    }
    free(path);
    return result;
}

/* ---- a run's settings ---- */

/* The JSON of a file next to a log; null without one. */
static json_t *beside(const char *log, const char *name)
{
    const char *slash = strrchr(log, '/');
    struct text path = {0};
    text_add(&path, "%.*s%s", slash ? (int)(slash - log) + 1 : 0, log, name);
    json_t *ret = json_load_file(text_get(&path), 0, NULL);
    text_finish(&path);
    return ret;
}

static void add_field(struct text *to, const json_t *of, const char *name, const char *words)
{
    const json_t *v = json_object_get(of, name);
    if (json_is_string(v))
        text_add(to, ", %s%s", words, json_string_value(v));
    else if (json_is_integer(v))
        text_add(to, ", %s%" JSON_INTEGER_FORMAT, words, json_integer_value(v));
}

/* "run: model 4x256x4 (layers x hidden size x heads), n = 128, mask window(2), batches of 16, bf16" */
static void add_setting(struct text *to, const char *given, const char *name)
{
    int layers, hidden, heads;
    char *log = log_path(given);
    json_t *config = beside(log, "config.json"), *run = beside(log, "run.json");
    if (json_unpack(config, "{s:i, s:i, s:i}", "num_hidden_layers", &layers, "hidden_size",
                    &hidden, "num_attention_heads", &heads) == 0) {
        text_add(to, "%s%s: model %dx%dx%d (layers x hidden size x heads)",
                 to->length ? "\n" : "", name, layers, hidden, heads);
        add_field(to, config, "max_position_embeddings", "n = ");
        add_field(to, run, "mask", "mask ");
        add_field(to, run, "batch", "batches of ");
        add_field(to, run, "dtype", "");
    }
    json_decref(config);
    json_decref(run);
    free(log);
}

/* ---- the figure ---- */

static json_t *points_json(const struct points *p)
{
    json_t *ret = json_array();
    for (uint32_t k = 0; k < p->count; k++)
        json_array_append_new(ret, json_pack("[f, f]", p->at[k].x, p->at[k].y));
    return ret;
}

static json_t *curves_json(const struct curves *c)
{
    json_t *curves = json_array();
    for (uint32_t k = 0; k < c->count; k++)
        json_array_append_new(curves, json_pack("{s:o, s:o, s:o}", "name",
                                                json_string_nocheck(c->curve[k].name), "steps",
                                                points_json(&c->curve[k].steps), "evaluations",
                                                points_json(&c->curve[k].evaluations)));
    return json_pack("{s:s, s:s, s:s, s:o}", "x", c->x, "y", c->y, "note",
                     text_get(&c->setting), "curves", curves);
}

/* ---- the command ---- */

static int plot(const struct options *o, struct curves *c, struct error *e)
{
    const char *x = find_axis(o->x, e);
    const struct figure figure = {"curves", o->output, o->columns};
    if (!x)
        return -1;
    if (!o->output)
        return error_set(e, ERROR_INPUT, "plot: -o FIGURE.pdf, .svg or .png is expected");
    if (figure_check(&figure, e) < 0)
        return -1;
    for (uint32_t k = 0; k < o->n_arguments; k++) {
        if (read_log(o->arguments[k], (struct reading){&c->curve[k], x, c->y, 0}, e) < 0)
            return -1;
        add_setting(&c->setting, o->arguments[k], c->curve[k].name);
    }
    return figure_draw(&figure, curves_json(c), e);
}

int command_plot(const struct options *o)
{
    struct error e = {0};
    struct curves c = {.curve = memory_new(o->n_arguments, sizeof *c.curve),
                       .count = o->n_arguments,
                       .x = o->x ? o->x : "step",
                       .y = o->y ? o->y : "loss"};
    int r = plot(o, &c, &e);
    for (uint32_t k = 0; k < c.count; k++) {
        free(c.curve[k].name);
        free(c.curve[k].steps.at);
        free(c.curve[k].evaluations.at);
    }
    free(c.curve);
    text_finish(&c.setting);
    return r < 0 ? command_fail(&e) : 0;
}
