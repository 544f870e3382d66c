/* SPDX-License-Identifier: Apache-2.0 */
/* Where libraries of the CUDA toolkit may be: the toolkit's own folders, the loader's path, pip's and conda's
   packages. */
#pragma once
#include <stdbool.h>

struct toolkit_library {
    const char *variable; /* of the environment: a path that is taken or nothing is */
    const char *pattern;  /* of its file's name in a folder */
    const char *names[4]; /* that the loader is asked for; ends with null */
};

/* Calls open with one path after another until it says that it has what it needs; false where none did. */
bool toolkit_find(const struct toolkit_library *l,
                  bool (*open)(const char *path, void *context), void *context);
