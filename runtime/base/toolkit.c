/* SPDX-License-Identifier: Apache-2.0 */
/* See toolkit.h. */
#include "runtime/base/toolkit.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Folders behind what a variable of the environment names, or behind a root; before and after the loader's
   path is asked. The Python package sets MASKC_PREFIX to its Python's sys.prefix. */
static const struct place {
    const char *variable, *root, *folder;
} first[] =
    {
        {"CUDA_HOME", NULL, "/lib64/"},
        {0},
},
  later[] = {
      {NULL, "/usr/local/cuda", "/lib64/"},
      {NULL, "/usr/local/cuda-*", "/lib64/"},
      {"MASKC_PREFIX", NULL, "/lib/python3*/[sd]i[ts][et]-packages/nvidia/*/lib/"},
      {"MASKC_PREFIX", NULL, "/lib/"},
      {"VIRTUAL_ENV", NULL, "/lib/python3*/[sd]i[ts][et]-packages/nvidia/*/lib/"},
      {"CONDA_PREFIX", NULL, "/lib/"},
      {"CONDA_PREFIX", NULL, "/lib/python3*/site-packages/nvidia/*/lib/"},
      {"HOME", NULL, "/.local/lib/python3*/site-packages/nvidia/*/lib/"},
      {NULL, "/usr/local", "/lib/python3*/[sd]i[ts][et]-packages/nvidia/*/lib/"},
      {NULL, "/usr", "/lib/python3*/[sd]i[ts][et]-packages/nvidia/*/lib/"},
      {0},
};

struct search {
    const struct toolkit_library *library;
    bool (*open)(const char *path, void *context);
    void *context;
};

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* The newest of the files that match. */
static bool open_matching(const struct search *s, const struct place *p)
{
    char path[1024];
    glob_t found = {0};
    bool ok = false;
    const char *root = p->variable ? getenv(p->variable) : p->root;
    if (!root || snprintf(path, sizeof path, "%s%s%s", root, p->folder, s->library->pattern) >=
                     (int)sizeof path)
        return false;
    if (!glob(path, GLOB_NOSORT, NULL, &found)) {
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_version);
        for (size_t k = found.gl_pathc; k > 0 && !ok; k--)
            ok = s->open(found.gl_pathv[k - 1], s->context);
    }
    globfree(&found);
    return ok;
}

static bool open_places(const struct search *s, const struct place *list)
{
    for (const struct place *p = list; p->folder; p++)
        if (open_matching(s, p))
            return true;
    return false;
}

static bool open_names(const struct search *s)
{
    for (const char *const *name = s->library->names; *name; name++)
        if (s->open(*name, s->context))
            return true;
    return false;
}

bool toolkit_find(const struct toolkit_library *l,
                  bool (*open)(const char *path, void *context), void *context)
{
    const struct search s = {l, open, context};
    const char *given = getenv(l->variable);
    if (given && *given)
        return open(given, context);
    return open_places(&s, first) || open_names(&s) || open_places(&s, later);
}
