/* SPDX-License-Identifier: Apache-2.0 */
/* See figure.h. */
#include "tools/common/figure.h"
#include "masks/base/memory.h"
#include "runtime/base/process.h"
#include "tools/common/program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- where the module is ---- */

/* From the folder of the program: in a wheel, in a build folder (twice), installed. */
static const char *const places[] = {"../figures", "../../runtime/python/maskc/figures",
                                     "../maskc/figures", "../share/maskc/figures"};

/* Appends the module's folder, which python3 runs without the rest of the package; or nothing, where PYTHONPATH has to
   know the package. */
static void find_module(struct text *to)
{
    char *own = realpath("/proc/self/exe", NULL), *slash = own ? strrchr(own, '/') : NULL;
    for (size_t k = 0; slash && !to->length && k < sizeof places / sizeof *places; k++) {
        struct text path = {0};
        struct stat s;
        text_add(&path, "%.*s/%s/__main__.py", (int)(slash - own), own, places[k]);
        if (stat(text_get(&path), &s) == 0)
            text_add(to, "%.*s/%s", (int)(slash - own), own, places[k]);
        text_finish(&path);
    }
    free(own);
}

static const char *python(void)
{
    const char *named = getenv("MASKC_PYTHON");
    return named && *named ? named : "python3";
}

/* ---- what it answers ---- */

/* Appends its last line that is not empty. */
static void last_line(const struct text *said, struct text *to)
{
    const char *at = text_get(said);
    size_t end = said->length;
    while (end && (at[end - 1] == '\n' || at[end - 1] == ' '))
        end--;
    size_t begin = end;
    while (begin && at[begin - 1] != '\n')
        begin--;
    text_add(to, "%.*s", (int)(end - begin), at + begin);
}

/* The module ends with our own exit codes and one line. */
static int read_result(int code, const struct text *said, struct error *e)
{
    static const char prefix[] = "figures: ";
    struct text line = {0};
    if (code == 0)
        return 0;
    last_line(said, &line);
    if ((code == 2 || code == 3) && !strncmp(text_get(&line), prefix, sizeof prefix - 1))
        error_set(e, code == 2 ? ERROR_INPUT : ERROR_UNAVAILABLE, "%s",
                  text_get(&line) + sizeof prefix - 1);
    else
        error_set(e, ERROR_UNAVAILABLE, "%s -m maskc.figures ended with %d: %s", python(), code,
                  text_get(&line));
    text_finish(&line);
    return -1;
}

static int start(const struct figure *f, const char *what, const char *input, struct error *e)
{
    struct text module = {0}, output = {0}, said = {0};
    const char *argument[7] = {python()};
    int n = 1;
    find_module(&module);
    if (!module.length) {
        argument[n++] = "-m";
        text_add(&module, "maskc.figures");
    }
    text_add(&output, "--output=%s", f->path);
    argument[n++] = text_get(&module);
    argument[n++] = what;
    argument[n++] = text_get(&output);
    argument[n++] = f->columns == 1 ? "--columns=1" : "--columns=2";
    const int code = process_feed(argument, input, strlen(input), &said, e);
    const int r = code < 0 ? error_set(e, ERROR_UNAVAILABLE,
                                       "figures need %s with matplotlib, and it cannot be "
                                       "started: apt install python3-matplotlib",
                                       python())
                           : read_result(code, &said, e);
    text_finish(&said);
    text_finish(&output);
    text_finish(&module);
    return r;
}

/* ---- figures ---- */

int figure_check(const struct figure *f, struct error *e)
{
    if (!has_suffix(f->path, ".pdf") && !has_suffix(f->path, ".svg") &&
        !has_suffix(f->path, ".png"))
        return error_set(e, ERROR_INPUT, "%s: a figure is .pdf, .svg or .png", f->path);
    return f->columns > 2
               ? error_set(e, ERROR_INPUT, "--columns %u: 1 or 2 is expected", f->columns)
               : 0;
}

int figure_ready(const struct figure *f, struct error *e)
{
    return figure_check(f, e) < 0 ? -1 : start(f, "--check", "", e);
}

int figure_draw(const struct figure *f, json_t *numbers, struct error *e)
{
    char *text = json_dumps(numbers, JSON_COMPACT | JSON_REAL_PRECISION(17));
    int r = text ? figure_check(f, e)
                 : error_set(e, ERROR_INPUT, "%s: a name is not UTF-8", f->path);
    json_decref(numbers);
    if (r == 0)
        r = start(f, f->kind, text, e);
    free(text);
    return r;
}

/* ---- arrays ---- */

static char *base64_of(const uint8_t *bytes, size_t size)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *ret = memory_new((size + 2) / 3 * 4 + 1, 1), *to = ret;
    for (size_t k = 0; k < size; k += 3, to += 4) {
        const size_t rest = size - k;
        const uint32_t bits = (uint32_t)bytes[k] << 16 | (rest > 1 ? bytes[k + 1] << 8 : 0) |
                              (rest > 2 ? bytes[k + 2] : 0);
        for (int digit = 0; digit < 4; digit++)
            to[digit] = digits[bits >> (18 - 6 * digit) & 63];
        if (rest < 3)
            memcpy(to + rest + 1, "==", 3 - rest);
    }
    return ret;
}

static json_t *array_of(const char *type, const void *values, size_t element,
                        const struct figure_shape *s)
{
    json_t *shape = json_array();
    size_t count = 1;
    for (uint32_t k = 0; k < s->rank; k++) {
        json_array_append_new(shape, json_integer(s->size[k]));
        count *= s->size[k];
    }
    char *base64 = base64_of(values, count * element);
    json_t *ret = json_pack("{s:s, s:o, s:s}", "type", type, "shape", shape, "base64", base64);
    free(base64);
    return ret;
}

json_t *figure_floats(const float *values, struct figure_shape s)
{
    return array_of("f4", values, sizeof *values, &s);
}

json_t *figure_bits(const uint8_t *values, struct figure_shape s)
{
    return array_of("u1", values, sizeof *values, &s);
}
