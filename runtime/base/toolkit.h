/* SPDX-License-Identifier: Apache-2.0 */
/* Where libraries of the CUDA toolkit may be: the toolkit's own folders, the loader's path, pip's and conda's
   packages. */
#pragma once
#include <stdbool.h>

struct toolkit_library {
    const char
        *variable;       /* of the environment: a path; where it is set nothing else is tried */
    const char *pattern; /* glob pattern of the file's name in a folder */
    const char *names[4]; /* names for dlopen; ends with null */
};

/* Calls open() with one path after another until it returns true; false where it never does. */
bool toolkit_find(const struct toolkit_library *l,
                  bool (*open)(const char *path, void *context), void *context);
