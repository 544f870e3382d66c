/* SPDX-License-Identifier: Apache-2.0 */
/* The table of devices, and their names with an ordinal: "cuda:1". */
#include "runtime/device/device.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct device *const devices[] = {&device_cuda, &device_cpu, &device_emulated, NULL};

static const struct device *find_word(const char *name, size_t length)
{
    for (const struct device *const *d = devices; *d; d++)
        if (strlen((*d)->name) == length && !memcmp((*d)->name, name, length))
            return *d;
    return NULL;
}

/* "" or ":N". */
static bool parse_ordinal(const char *text, int *ret)
{
    char *end;
    *ret = 0;
    if (!*text)
        return true;
    if (text[0] != ':' || text[1] < '0' || text[1] > '9')
        return false;
    unsigned long n = strtoul(text + 1, &end, 10);
    *ret = (int)n;
    return !*end && n < 1024;
}

int device_find(const char *name, const struct device **ret, int *ret_ordinal, struct error *e)
{
    int ordinal = 0;
    const struct device *d = NULL;
    if (name) {
        size_t length = strcspn(name, ":");
        d = find_word(name, length);
        if (!d || !parse_ordinal(name + length, &ordinal))
            return error_set(e, ERROR_INPUT,
                             "unknown device '%.64s'; known are cpu, cuda, cuda:N, emulated",
                             name);
        if (ordinal && d != &device_cuda)
            return error_set(e, ERROR_INPUT, "there is one device '%s', not '%.64s'", d->name,
                             name);
    }
    *ret = d;
    *ret_ordinal = ordinal;
    return 0;
}
