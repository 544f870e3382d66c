/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/number.h"
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* The C library's own object: nothing is allocated, nothing has to be freed. */
static locale_t plain(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double number_read(const char *text, char **end)
{
    return strtod_l(text, end, plain());
}

int number_vprint(char *to, size_t size, const char *format, va_list args)
{
    const locale_t before = uselocale(plain());
    const int r = vsnprintf(to, size, format, args);
    uselocale(before);
    return r;
}

int number_print(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int r = number_vprint(to, size, format, args);
    va_end(args);
    return r;
}
