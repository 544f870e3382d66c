/* SPDX-License-Identifier: Apache-2.0 */
/* The file says whose it is, in full: its name is only a digest of that. */
#include "runtime/calibration.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "runtime/cache.h"
#include "runtime/compile/compile.h"
#include <cpuid.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 2 };

/* ---- whose ---- */

char *calibration_identity(void)
{
    unsigned brand[13] = {0}, a = 0, b, c, d;
    char *ret;
    for (unsigned k = 0; k < 3; k++)
        if (!__get_cpuid(0x80000002 + k, &brand[4 * k], &brand[4 * k + 1], &brand[4 * k + 2],
                         &brand[4 * k + 3]))
            brand[0] = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        a = 0;
    if (asprintf(&ret, "%s, signature %x; %s", (const char *)brand, a,
                 machine_cpu_target(NULL)) < 0)
        ret = memory_text("");
    return ret;
}

char *calibration_path(void)
{
    struct cache *cache = cache_open(NULL);
    char *identity = calibration_identity(), *ret = NULL;
    struct cache_key key = cache_key(identity, strlen(identity));
    if (!*cache_directory(cache) ||
        asprintf(&ret, "%s/calibration-%016llx.json", cache_directory(cache),
                 (unsigned long long)key.low) < 0)
        ret = memory_text("");
    free(identity);
    cache_close(cache);
    return ret;
}

/* ---- the struct ---- */

void calibration_add(struct calibration *c, const struct machine *row,
                     const struct machine *measured)
{
    if (c->count == CALIBRATION_ROWS)
        return;
    struct calibrated *r = &c->row[c->count++];
    r->row = row;
    r->machine = *measured;
    snprintf(r->name, sizeof r->name, "%s (%s)", row->name, CALIBRATED);
    for (uint32_t k = 0; k < c->count; k++)
        c->row[k].machine.name = c->row[k].name;
}

const struct machine *calibration_machine(const struct calibration *c, const char *row)
{
    for (uint32_t k = 0; c && k < c->count; k++)
        if (!strcmp(c->row[k].row->name, row))
            return &c->row[k].machine;
    return NULL;
}

void calibration_destroy(struct calibration *c)
{
    free(c);
}

const struct machine *machine_named(const char *name, const struct calibration *c,
                                    struct error *e)
{
    char row[32];
    snprintf(row, sizeof row, "%s", name);
    char *suffix = strstr(row, " (" CALIBRATED ")");
    if (!suffix)
        return machine_find(name, e);
    *suffix = 0;
    const struct machine *stored = calibration_machine(c, row);
    return stored ? stored : machine_find(row, e);
}

const struct machine *machine_choose(const char *asked, const struct calibration *c,
                                     const struct target *t, const struct features *f,
                                     struct error *e)
{
    const char *own = target_machine(t, f);
    bool here = t->kind == TARGET_CPU && machine_runs(t->name);
    const struct machine *stored = here ? calibration_machine(c, own) : NULL;
    if (asked && !strcmp(asked, CALIBRATED)) {
        if (here && !stored)
            error_set(e, ERROR_INPUT,
                      "no calibration of this machine is stored: run maskc calibrate");
        return here ? stored : machine_find(own, e);
    }
    const struct machine *named = asked ? machine_find(asked, e) : NULL;
    if (asked && !named)
        return NULL;
    if (named && named->kind == t->kind)
        return named;
    return stored ? stored : machine_find(own, e);
}

/* ---- the file ---- */

/* Numbers of the two structs by name. */
static const struct {
    const char *name;
    size_t at;
} ceiling_fields[] =
    {
        {"matrix_flops", offsetof(struct ceilings, matrix)},
        {"flops", offsetof(struct ceilings, flops)},
        {"exps", offsetof(struct ceilings, exps)},
        {"bytes", offsetof(struct ceilings, bytes)},
        {"cache_bytes", offsetof(struct ceilings, cache_bytes)},
},
  machine_fields[] = {
      {"flops", offsetof(struct machine, flops)},
      {"exps", offsetof(struct machine, exps)},
      {"bytes", offsetof(struct machine, bytes)},
      {"cache_bytes", offsetof(struct machine, cache_bytes)},
      {"cache", offsetof(struct machine, cache)},
      {"launch", offsetof(struct machine, launch)},
};

enum {
    CEILING_FIELDS = sizeof ceiling_fields / sizeof *ceiling_fields,
    MACHINE_FIELDS = sizeof machine_fields / sizeof *machine_fields
};

static double *field(void *base, size_t at)
{
    return (double *)(void *)((char *)base + at);
}

static json_t *machine_json(const struct calibrated *r)
{
    struct machine m = r->machine;
    json_t *j = json_object();
    json_object_set_new(j, "machine", json_string(r->row->name));
    for (int k = 0; k < MACHINE_FIELDS; k++)
        json_object_set_new(j, machine_fields[k].name,
                            json_real(*field(&m, machine_fields[k].at)));
    for (int pass = 0; pass < PASSES; pass++) {
        json_t *rates = json_object();
        for (int k = 0; k < RATES; k++)
            json_object_set_new(rates, rate_names[k], json_real(m.rate[pass][k]));
        json_object_set_new(j, pass_names[pass], rates);
    }
    return j;
}

json_t *calibration_json(const struct calibration *c)
{
    struct ceilings ceilings = c->ceilings;
    char *identity = calibration_identity();
    json_t *j = json_object(), *list = json_array(), *peaks = json_object();
    json_object_set_new(j, "calibration", json_integer(VERSION));
    json_object_set_new(j, "cpu", json_string(identity));
    for (int k = 0; k < CEILING_FIELDS; k++)
        json_object_set_new(peaks, ceiling_fields[k].name,
                            json_real(*field(&ceilings, ceiling_fields[k].at)));
    json_object_set_new(j, "ceilings", peaks);
    for (uint32_t k = 0; k < c->count; k++)
        json_array_append_new(list, machine_json(&c->row[k]));
    json_object_set_new(j, "machines", list);
    free(identity);
    return j;
}

int calibration_prepare(struct error *e)
{
    char *path = calibration_path(), *slash = strrchr(path, '/');
    int code = 0;
    if (!slash) {
        code =
            error_set(e, ERROR_INPUT,
                      "no folder for the calibration: set HOME or XDG_CACHE_HOME to one that "
                      "only you may write to");
    } else {
        *slash = 0;
        code = file_make_directory(path, e);
    }
    free(path);
    return code;
}

int calibration_save(const struct calibration *c, struct error *e)
{
    if (calibration_prepare(e))
        return -1;
    char *path = calibration_path();
    json_t *j = calibration_json(c);
    char *text = json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    int code = file_write(path, text, strlen(text), e);
    json_decref(j);
    free(text);
    free(path);
    return code;
}

/* A number of a plausible size. */
static bool read_number(const json_t *object, const char *name, double limit, double *ret)
{
    const json_t *j = json_object_get(object, name);
    if (!json_is_number(j))
        return false;
    *ret = json_number_value(j);
    return isfinite(*ret) && *ret >= 0 && *ret <= limit;
}

static bool read_machine(const json_t *j, struct calibration *c)
{
    struct error unknown;
    const char *name = json_string_value(json_object_get(j, "machine"));
    const struct machine *row = name ? machine_find(name, &unknown) : NULL;
    if (!row || row->kind != TARGET_CPU)
        return false;
    struct machine m = *row;
    for (int k = 0; k < MACHINE_FIELDS; k++) {
        double *to = field(&m, machine_fields[k].at);
        if (!read_number(j, machine_fields[k].name, 1e18, to) || *to == 0)
            return false;
    }
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = 0; k < RATES; k++)
            if (!read_number(json_object_get(j, pass_names[pass]), rate_names[k], 1,
                             &m.rate[pass][k]))
                return false;
    calibration_add(c, row, &m);
    return true;
}

/* 1: read; 0: another CPU's; -1: not a calibration. */
static int read_json(const json_t *j, struct calibration *c)
{
    const char *cpu = json_string_value(json_object_get(j, "cpu"));
    const json_t *list = json_object_get(j, "machines");
    char *identity = calibration_identity();
    bool ours = cpu && !strcmp(cpu, identity);
    free(identity);
    if (json_integer_value(json_object_get(j, "calibration")) != VERSION || !cpu)
        return -1;
    if (!ours)
        return 0;
    for (int k = 0; k < CEILING_FIELDS; k++)
        if (!read_number(json_object_get(j, "ceilings"), ceiling_fields[k].name, 1e18,
                         field(&c->ceilings, ceiling_fields[k].at)))
            return -1;
    if (!json_array_size(list) || json_array_size(list) > CALIBRATION_ROWS)
        return -1;
    for (size_t k = 0; k < json_array_size(list); k++)
        if (!read_machine(json_array_get(list, k), c))
            return -1;
    return 1;
}

static int read_file(const char *path, struct calibration **ret, struct error *e)
{
    struct file f = {0};
    if (file_open(path, &f, e))
        return -1;
    json_error_t why;
    json_t *j = json_loadb((const char *)f.bytes, f.size, JSON_REJECT_DUPLICATES, &why);
    struct calibration *c = memory_new(1, sizeof *c);
    int found = j ? read_json(j, c) : -1;
    json_decref(j);
    file_close(&f);
    if (found > 0)
        *ret = c;
    else
        free(c);
    return found < 0 ? error_set(e, ERROR_INPUT,
                                 "%s: not a calibration of this version of maskc; run maskc "
                                 "calibrate again, or remove it",
                                 path)
                     : 0;
}

int calibration_load(struct calibration **ret, struct error *e)
{
    char *path = calibration_path();
    *ret = NULL;
    int code = *path && !access(path, F_OK) ? read_file(path, ret, e) : 0;
    free(path);
    return code;
}
