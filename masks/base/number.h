/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of files and languages: the decimal point is a point in every locale of the process. */
#pragma once
#include <stdarg.h>
#include <stddef.h>

double number_read(const char *text, char **end);                /* as strtod() */
int number_print(char *to, size_t size, const char *format, ...) /* as snprintf() */
    __attribute__((format(printf, 3, 4)));
int number_vprint(char *to, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
