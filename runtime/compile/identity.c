/* SPDX-License-Identifier: Apache-2.0 */
/* Which host compiler would run, told from its file alone: asking it for its version takes longer
   than everything else that a cached compile does. */
#include "masks/base/text.h"
#include "runtime/base/process.h"
#include "runtime/compile/compile.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* By its name. Behind a wrapper (ccache) another file decides which compiler runs. */
static bool is_compiler(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return !strncmp(name, "clang", 5) || strstr(name, "gcc");
}

/* False where the program exists but its file does not identify it. */
static bool add_program(struct text *t, const char *name)
{
    struct stat s;
    char *path = process_find(name), *real = path ? realpath(path, NULL) : NULL;
    bool ok = !path || (real && is_compiler(real) && stat(real, &s) == 0);
    if (path && ok)
        text_add(t, "%s %llu %llu %lld.%09ld\n", real, (unsigned long long)s.st_ino,
                 (unsigned long long)s.st_size, (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    free(path);
    free(real);
    return ok;
}

/* All candidates, since one that is there may still fail to run. */
char *host_compiler_identity(void)
{
    struct text t = {0};
    const char *asked = getenv("MASKC_CC");
    bool ok = true;
    if (asked && *asked)
        ok = add_program(&t, asked);
    else
        for (const char *const *name = host_compilers; *name && ok; name++)
            ok = add_program(&t, *name);
    if (ok)
        return text_take(&t);
    text_finish(&t);
    return NULL;
}
