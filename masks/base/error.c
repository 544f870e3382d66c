/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void error_replace_controls(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        const bool c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        if (c1)
            c[1] = '?';
        if (c1 || *c == 0x7f || (*c < 0x20 && *c != '\n' && *c != '\t'))
            *c = '?';
    }
}

int error_set(struct error *e, enum error_kind kind, const char *format, ...)
{
    if (!e)
        return -1;
    va_list args;
    va_start(args, format);
    e->kind = kind;
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    error_replace_controls(e->text);
    return -1;
}

int error_prefix(struct error *e, const char *format, ...)
{
    if (!e)
        return -1;
    char old[ERROR_TEXT_BYTES];
    memcpy(old, e->text, sizeof old);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    int left = ERROR_TEXT_BYTES - used - (int)sizeof ": ";
    if (used >= 0 && left >= 0)
        snprintf(e->text + used, sizeof e->text - (size_t)used, ": %.*s", left, old);
    error_replace_controls(e->text);
    return -1;
}
