/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/locale/comma_locale.h"
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* LC_NUMERIC in glibc's format: a category's number, how many items, their offsets, then the items. */
static const struct {
    uint32_t category, items, at[6];
    uint32_t wide_point, wide_separator;
    char point[2], none[2], codeset[8];
} file = {0x20031115 ^ LC_NUMERIC, 6, {40, 42, 42, 32, 36, 44}, ',', 0, ",", "", "UTF-8"};

bool comma_locale(void)
{
    char folder[] = "/tmp/maskc-locale-XXXXXX", inside[64], path[80];
    if (!mkdtemp(folder))
        return false;
    snprintf(inside, sizeof inside, "%s/comma", folder);
    snprintf(path, sizeof path, "%s/LC_NUMERIC", inside);
    mkdir(inside, 0700);
    FILE *f = fopen(path, "wb");
    if (f) {
        fwrite(&file, sizeof file, 1, f);
        fclose(f);
    }
    setenv("LOCPATH", folder, 1);
    const bool set = setlocale(LC_NUMERIC, "comma");
    unsetenv("LOCPATH");
    unlink(path);
    rmdir(inside);
    rmdir(folder);
    return set && localeconv()->decimal_point[0] == ',';
}
