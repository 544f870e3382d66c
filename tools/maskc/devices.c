/* SPDX-License-Identifier: Apache-2.0 */
/* maskc devices: what this machine can launch on and compile with. maskc cache: compiled code that
   is kept. */
#include "masks/base/text.h"
#include "runtime/ahead/ahead.h"
#include "runtime/base/cache.h"
#include "runtime/base/cache_folder.h"
#include "runtime/compile/compile.h"
#include "runtime/device/device.h"
#include "tools/common/table.h"
#include "tools/maskc/command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void print_line(const char *name, const char *before, const char *what)
{
    struct text line = {0};
    text_add(&line, "%-10s %s%s\n", name, before, what);
    lines_print(&line, TABLE_WIDTH, 11);
}

/* The folder, or why it is not used. */
static void print_cache(void)
{
    struct error e = {0};
    char *folder = cache_folder_default();
    if (cache_folder_trusted(folder, &e) < 0)
        print_line("cache", "not used: ", e.text);
    else if (cache_folder_writable(folder, &e) < 0)
        print_line("cache", "nothing new can be kept: ", e.text);
    else
        print_line("cache", "", folder);
    free(folder);
}

int command_devices(const struct options *o)
{
    (void)o;
    for (const struct device *const *d = devices; *d; d++) {
        const char *why = (*d)->unavailable();
        struct text about = {0};
        if (!*why)
            (*d)->describe(&about);
        print_line((*d)->name, *why ? "not here: " : "", *why ? why : text_get(&about));
        text_finish(&about);
    }
    const char *host = host_compiler_version();
    struct error e = {0};
    const char *nvrtc = nvrtc_version(&e);
    print_line("compiler", "", *host ? host : "none: install clang or gcc");
    print_line("ahead", "", ahead_describe());
    print_cache();
    print_line("nvrtc", "", *nvrtc ? nvrtc : e.text);
    return 0;
}

static void print_entries(struct cache *c)
{
    uint32_t count = 0;
    uint64_t bytes = 0;
    struct cache_entry *entry = cache_list(c, &count);
    for (uint32_t k = 0; k < count; k++) {
        char when[32] = "";
        struct tm tm;
        time_t used = (time_t)entry[k].used;
        if (localtime_r(&used, &tm))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
        printf("%-40s %10llu bytes  used %s\n", entry[k].name,
               (unsigned long long)entry[k].size, when);
        bytes += entry[k].size;
    }
    printf("%s: %u entr%s, %llu bytes\n", cache_directory(c), count, count == 1 ? "y" : "ies",
           (unsigned long long)bytes);
    free(entry);
}

int command_cache(const struct options *o)
{
    bool clear = !strcmp(o->argument[0], "clear");
    if (!clear && strcmp(o->argument[0], "list")) {
        fprintf(stderr, "maskc: cache: '%s' is neither list nor clear\n", o->argument[0]);
        return 2;
    }
    struct cache *c = cache_open(NULL);
    if (!*cache_directory(c)) {
        char *folder = cache_folder_default();
        struct error e = {0};
        cache_folder_trusted(folder, &e);
        printf("no cache folder: %s\n", e.text);
        free(folder);
    } else if (clear) {
        uint32_t gone = cache_clear(c);
        printf("%s: removed %u entr%s\n", cache_directory(c), gone, gone == 1 ? "y" : "ies");
    } else {
        print_entries(c);
    }
    cache_close(c);
    return 0;
}
