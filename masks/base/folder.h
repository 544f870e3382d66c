/* SPDX-License-Identifier: Apache-2.0 */
/* A folder whose files appear all together: they are written into a new folder first. Signals that end a program wait
   from begin to end, so that no half of it is left. */
#pragma once
#include "masks/base/error.h"
#include <signal.h>
#include <stddef.h>

/* `aside` is where the files are written: beside `path`, or inside it if it exists. Both are owned. */
struct folder {
    char *path, *aside;
    size_t made;   /* of path's bytes: the first parent that was missing; 0: none was */
    sigset_t held; /* the signals that were blocked before */
};

/* Removes the folder and all in it; what cannot be removed stays. */
void folder_remove(const char *path);

/* Makes the folder `aside` and the missing parents of `path`. Returns 0, or -1 with an error of one line that starts with a path. */
int folder_begin(const char *path, struct folder *ret, struct error *e);

/* Releases *f. If `result` is 0, gives the files their place: a new folder gets its name at once, in one that exists
   each file replaces the one of its name, unless a file would replace a folder or the reverse. Otherwise removes all that was made, and *e names `path` where it named
   `aside`. Returns `result`, or -1 with *e. */
int folder_end(struct folder *f, int result, struct error *e);
