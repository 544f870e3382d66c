/* SPDX-License-Identifier: Apache-2.0 */
/* maskc verify: a kernel file against the float64 reference. */
#include "tools/maskc/command.h"
#include "tools/maskc/progress.h"
#include "tools/reference/check.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int command_load(const char *path, const char *device, struct maskc_kernel **ret,
                 struct error *e)
{
    struct maskc_error failure;
    if (maskc_load(path, device, ret, &failure))
        return error_set(e, (enum error_kind)failure.code, "%s", failure.text);
    return 0;
}

json_t *command_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void print_json(const struct check_result *r, uint32_t count, bool ok,
                       const struct maskc_kernel *k)
{
    json_t *list = json_array();
    for (uint32_t c = 0; c < count; c++)
        json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:b}", "name", r[c].name,
                                              "error", command_number(r[c].error), "tolerance",
                                              command_number(r[c].tolerance), "ok", r[c].ok));
    command_print_json(json_pack("{s:b, s:s, s:s, s:o}", "ok", ok, "device", k->device->name,
                                 "target", k->target->name, "checks", list));
}

static void print_text(const struct check_result *r, uint32_t count, uint32_t failed,
                       const struct maskc_kernel *k)
{
    printf("%-48s %10s %10s\n", "check", "error", "at most");
    for (uint32_t c = 0; c < count; c++)
        printf("%-48s %10.2e %10.2e%s\n", r[c].name, r[c].error, r[c].tolerance,
               r[c].ok ? "" : "  FAILED");
    printf("%s on %s (%s): %u of %u checks hold\n", failed ? "not verified" : "verified",
           k->device->name, k->target->name, count - failed, count);
}

static int verify(const struct options *o, struct error *e)
{
    struct maskc_kernel *k;
    struct check_result *r;
    uint32_t count, failed = 0;
    if (command_load(o->argument[0], o->device, &k, e))
        return -1;
    int code = verify_kernel(k, o->threads, progress_show, &r, &count, e);
    progress_clear();
    if (!code) {
        for (uint32_t c = 0; c < count; c++)
            failed += !r[c].ok;
        if (o->json)
            print_json(r, count, !failed, k);
        else
            print_text(r, count, failed, k);
        free(r);
    }
    if (failed)
        code = error_set(e, ERROR_FALSE, "%s: %u of %u checks failed", o->argument[0], failed,
                         count);
    maskc_kernel_destroy(k);
    return code;
}

int command_verify(const struct options *o)
{
    struct error e = {0};
    return verify(o, &e) ? command_fail(&e) : 0;
}
