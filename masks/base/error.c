/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/error.h"
#include <stdio.h>
#include <string.h>

int error_set(struct error *e, enum error_kind kind, const char *format, ...)
{
    if (!e)
        return -1;
    va_list args;
    va_start(args, format);
    e->kind = kind;
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
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
    return -1;
}
