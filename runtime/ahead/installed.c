/* SPDX-License-Identifier: Apache-2.0 */
/* The file of kernels compiled ahead that belongs to this installation. It is looked for from where this code lies, so
   that an installation may be moved. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "runtime/ahead/ahead.h"
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From the folder of the library or program. */
static const char *const places[] = {"kernels.ahead", "maskc/kernels.ahead",
                                     "../share/maskc/kernels.ahead",
                                     "../../share/maskc/kernels.ahead", NULL};

static struct {
    struct file file;
    struct ahead ahead;
    bool usable;
    char *about;
} installed;

static void tell(const char *path)
{
    struct error e = {0};
    struct text about = {0};
    installed.usable =
        file_open(path, &installed.file, &e) == 0 &&
        ahead_read(installed.file.bytes, installed.file.size, path, &installed.ahead, &e) == 0;
    if (installed.usable)
        text_add(&about, "%s: %u kernels by %s", path, installed.ahead.codes,
                 installed.ahead.compiler);
    else
        text_add(&about, "%s; it is ignored", e.text);
    free(installed.about);
    installed.about = text_take(&about);
}

/* The file that this code was loaded from; null where that cannot be said. Caller frees. */
static char *own_path(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1((const void *)(uintptr_t)ahead_installed, &info, (void **)&map,
                 RTLD_DL_LINKMAP) ||
        !map)
        return NULL;
    return realpath(map->l_name[0] ? map->l_name : "/proc/self/exe", NULL);
}

static void look(void)
{
    char *own = own_path(), *slash = own ? strrchr(own, '/') : NULL;
    for (const char *const *place = places; slash && *place; place++) {
        struct text path = {0};
        text_add(&path, "%.*s/%s", (int)(slash - own), own, *place);
        char *real = realpath(text_get(&path), NULL);
        text_finish(&path);
        if (real)
            tell(real);
        free(real);
        if (real)
            break;
    }
    free(own);
}

static void find_once(void)
{
    const char *asked = getenv("MASKC_AHEAD");
    installed.about = memory_text("none installed");
    if (!asked || !*asked)
        look();
    else if (strcmp(asked, "none") != 0)
        tell(asked);
}

static void find(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_once);
}

const struct ahead *ahead_installed(void)
{
    find();
    return installed.usable ? &installed.ahead : NULL;
}

const char *ahead_describe(void)
{
    find();
    return installed.about;
}
