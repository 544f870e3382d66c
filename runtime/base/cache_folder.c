/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/cache_folder.h"
#include "masks/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

char *cache_folder_default(void)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int r = 0;
    if (xdg && xdg[0] == '/') /* the XDG rules ignore a relative one */
        r = asprintf(&path, "%s/maskc", xdg);
    else if (home && home[0] == '/')
        r = asprintf(&path, "%s/.cache/maskc", home);
    return r < 0 || !path ? memory_text("") : path;
}

int cache_folder_trusted(const char *folder, struct error *e)
{
    struct stat s;
    if (!*folder)
        return error_set(e, ERROR_UNAVAILABLE,
                         "neither XDG_CACHE_HOME nor HOME begins with a slash");
    if (stat(folder, &s) < 0)
        return errno == ENOENT
                   ? 0
                   : error_set(e, ERROR_UNAVAILABLE, "%s: %s", folder, strerror(errno));
    if (!S_ISDIR(s.st_mode))
        return error_set(e, ERROR_UNAVAILABLE, "%s is not a folder", folder);
    if (s.st_uid != geteuid() && s.st_uid != 0)
        return error_set(e, ERROR_UNAVAILABLE, "%s is owned by user %u, maskc runs as %u",
                         folder, (unsigned)s.st_uid, (unsigned)geteuid());
    if (s.st_mode & S_IWOTH)
        return error_set(e, ERROR_UNAVAILABLE,
                         "every user may write to %s; chmod o-w is expected", folder);
    return 0;
}

/* 0, or the reason as an errno. */
static int try_writing(const char *folder)
{
    struct statvfs s;
    if (access(folder, W_OK | X_OK) < 0)
        return errno;
    return !statvfs(folder, &s) && s.f_blocks && !s.f_bavail ? ENOSPC : 0;
}

int cache_folder_writable(const char *folder, struct error *e)
{
    char *path = memory_text(folder), *slash;
    int why;
    while ((why = try_writing(path)) == ENOENT && path[1] && (slash = strrchr(path, '/')))
        slash[slash == path] = 0; /* the root keeps its slash */
    const int r = why ? error_set(e, ERROR_UNAVAILABLE, "%s: %s", path, strerror(why)) : 0;
    free(path);
    return r;
}
