/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a calibration. It says whose it is, in full: its name is only a digest of that. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/pipeline/calibration.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 4 };

/* Numbers of the two structs by name. */
static const struct {
    const char *name;
    size_t at;
    bool beyond; /* may be what the table lacks */
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
      {"wake", offsetof(struct machine, wake), true},
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

static json_t *ceilings_json(const struct calibration *c)
{
    struct ceilings ceilings = c->ceilings;
    json_t *peaks = json_object();
    for (int k = 0; k < CEILING_FIELDS; k++)
        json_object_set_new(peaks, ceiling_fields[k].name,
                            json_real(*field(&ceilings, ceiling_fields[k].at)));
    return peaks;
}

static const char *owner_key(int whose)
{
    return whose == CALIBRATION_CPU ? "cpu" : "gpu";
}

json_t *calibration_json(const struct calibration *c, int whose)
{
    char *identity = calibration_identity(whose);
    json_t *j = json_object(), *list = json_array();
    json_object_set_new(j, "calibration", json_integer(VERSION));
    json_object_set_new(j, owner_key(whose), json_string(identity));
    if (whose == CALIBRATION_CPU)
        json_object_set_new(j, "ceilings", ceilings_json(c));
    for (uint32_t k = 0; k < c->count; k++)
        json_array_append_new(list, machine_json(&c->row[k]));
    json_object_set_new(j, "machines", list);
    free(identity);
    return j;
}

int calibration_prepare(struct error *e)
{
    char *path = calibration_path(CALIBRATION_CPU), *slash = strrchr(path, '/');
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

int calibration_save(const struct calibration *c, int whose, struct error *e)
{
    if (calibration_prepare(e))
        return -1;
    char *path = calibration_path(whose);
    json_t *j = calibration_json(c, whose);
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

static bool read_machine(const json_t *j, int whose, struct calibration *c)
{
    struct error unknown;
    const char *name = json_string_value(json_object_get(j, "machine"));
    const struct machine *row = name ? machine_find(name, &unknown) : NULL;
    const char *own = whose == CALIBRATION_CPU ? NULL : machine_cuda_target(whose);
    const struct target *target = own ? target_find(own, &unknown) : NULL;
    if (!row || row->kind != (target ? TARGET_CUDA : TARGET_CPU))
        return false;
    struct machine m = *row;
    if (target)
        calibration_size(whose, &m);
    for (int k = 0; k < MACHINE_FIELDS; k++) {
        double *to = field(&m, machine_fields[k].at), table = *to;
        if (!read_number(j, machine_fields[k].name, 1e18, to) ||
            (!machine_fields[k].beyond && (*to == 0) != (table == 0)))
            return false;
    }
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = 0; k < RATES; k++)
            if (!read_number(json_object_get(j, pass_names[pass]), rate_names[k], 1,
                             &m.rate[pass][k]))
                return false;
    calibration_add(c, row, target, &m);
    return true;
}

static bool read_ceilings(const json_t *j, struct calibration *c)
{
    for (int k = 0; k < CEILING_FIELDS; k++)
        if (!read_number(j, ceiling_fields[k].name, 1e18,
                         field(&c->ceilings, ceiling_fields[k].at)))
            return false;
    return true;
}

/* 1: read; 0: another CPU's or GPU's; -1: not a calibration. */
static int read_json(const json_t *j, int whose, struct calibration *c)
{
    const char *name = json_string_value(json_object_get(j, owner_key(whose)));
    const json_t *list = json_object_get(j, "machines");
    char *identity = calibration_identity(whose);
    bool ours = name && !strcmp(name, identity);
    free(identity);
    if (json_integer_value(json_object_get(j, "calibration")) != VERSION || !name)
        return -1;
    if (!ours)
        return 0;
    if (whose == CALIBRATION_CPU && !read_ceilings(json_object_get(j, "ceilings"), c))
        return -1;
    if (!json_array_size(list) || json_array_size(list) > CALIBRATION_ROWS)
        return -1;
    for (size_t k = 0; k < json_array_size(list); k++)
        if (!read_machine(json_array_get(list, k), whose, c))
            return -1;
    return 1;
}

/* Adds to *c, which is a new one where it was null, or leaves it as it is. */
static int read_file(const char *path, int whose, struct calibration **c, struct error *e)
{
    struct file f = {0};
    if (file_open(path, &f, e))
        return -1;
    json_error_t why;
    json_t *j = json_loadb((const char *)f.bytes, f.size, JSON_REJECT_DUPLICATES, &why);
    struct calibration *more = memory_new(1, sizeof *more);
    if (*c)
        *more = **c;
    int found = j ? read_json(j, whose, more) : -1;
    json_decref(j);
    file_close(&f);
    if (found > 0) {
        struct calibration *before = *c;
        *c = more;
        more = before;
    }
    free(more);
    return found < 0 ? error_set(e, ERROR_INPUT,
                                 "%s: not a calibration of this version of maskc; run maskc "
                                 "calibrate again, or remove it",
                                 path)
                     : 0;
}

static int load(int whose, struct calibration **c, struct error *e)
{
    char *path = calibration_path(whose);
    int code = *path && !access(path, F_OK) ? read_file(path, whose, c, e) : 0;
    free(path);
    return code;
}

int calibration_load(struct calibration **ret, struct error *e)
{
    *ret = NULL;
    return load(CALIBRATION_CPU, ret, e);
}

/* The first of several GPUs with one target is the one that plans are made for. */
int calibration_load_gpus(struct calibration **c, struct error *e)
{
    const struct cuda_driver *d = cuda_driver();
    int code = 0;
    for (int k = 0; !d->problem[0] && k < d->devices; k++)
        if (machine_cuda_target(k) && load(k, c, e))
            code = -1;
    return code;
}
