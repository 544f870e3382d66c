/* SPDX-License-Identifier: Apache-2.0 */
/* Options of test programs. */
#pragma once
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program over an argument that it does not know: --help prints the usage, others are an error. */
static inline void test_usage(char **argv, const char *argument, const char *usage)
{
    if (!strcmp(argument, "--help")) {
        printf("usage: %s %s\n", argv[0], usage);
        exit(0);
    }
    fprintf(stderr, "%s: unknown argument '%s', %s is expected\n", argv[0], argument, usage);
    exit(2);
}

/* True if `option` is given, which is the only one that the program knows. */
static inline bool test_option(int argc, char **argv, const char *option)
{
    for (int k = 1; k < argc; k++)
        if (strcmp(argv[k], option) != 0)
            test_usage(argv, argv[k], option);
    return argc > 1;
}
