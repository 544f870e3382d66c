/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/folder.h"
#include "masks/base/aside.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_AT_ONCE = 8 };

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* A link that leads nowhere is no place either. */
static int check_place(const char *path, struct error *e)
{
    struct stat s;
    if (!*path)
        return error_set(e, ERROR_INPUT, "-o: a name is expected");
    return lstat(path, &s) == 0 && !is_folder(path)
               ? error_set(e, ERROR_INPUT, "%s: not a directory", path)
               : 0;
}

/* The bytes of the path's parent; 0: it has none in its name, or the root. */
static size_t parent_of(const char *path, size_t size)
{
    while (size && path[size - 1] != '/')
        size--;
    while (size && path[size - 1] == '/')
        size--;
    return size;
}

static bool is_made(const char *path, size_t size)
{
    char *parent = memory_text(path);
    parent[size] = 0;
    const bool ret = is_folder(parent);
    free(parent);
    return ret;
}

static int make_parents(struct folder *f, struct error *e)
{
    const size_t parent = parent_of(f->path, strlen(f->path));
    for (size_t k = parent; k && !is_made(f->path, k); k = parent_of(f->path, k))
        f->made = k;
    if (!f->made)
        return 0;
    char *name = memory_text(f->path);
    name[parent] = 0;
    const int r = file_make_directory(name, e);
    free(name);
    return r;
}

/* Parents that others have put something into stay. */
static void remove_parents(const struct folder *f)
{
    char *name = memory_text(f->path);
    for (size_t k = parent_of(name, strlen(name)); f->made && k >= f->made;
         k = parent_of(name, k)) {
        name[k] = 0;
        rmdir(name);
    }
    free(name);
}

static void hold_signals(sigset_t *ret_before)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, ret_before);
}

static void finish(struct folder *f)
{
    pthread_sigmask(SIG_SETMASK, &f->held, NULL);
    free(f->path);
    free(f->aside);
    *f = (struct folder){0};
}

int folder_begin(const char *path, struct folder *ret, struct error *e)
{
    struct text aside = {0};
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    *ret = (struct folder){.path = memory_text(path)};
    hold_signals(&ret->held);
    ret->path[size] = 0;
    text_add(&aside, "%s%s.XXXXXX", ret->path, is_folder(path) ? "/" : "");
    ret->aside = text_take(&aside);
    int r = check_place(ret->path, e);
    if (r == 0)
        r = make_parents(ret, e);
    if (r == 0 && aside_folder(ret->aside) < 0)
        r = error_set(e, ERROR_INPUT, "%s: cannot be made: %s", path, strerror(errno));
    if (r < 0) {
        remove_parents(ret);
        finish(ret);
    }
    return r;
}

/* ---- to their place ---- */

/* 0, or -1 with errno. */
typedef int place_fn(const char *source, const char *target);

/* Fails if a file would take a folder's place or the reverse. */
static int check_target(const char *source, const char *target)
{
    struct stat s;
    if (lstat(target, &s) < 0 || is_folder(source) == is_folder(target))
        return 0;
    errno = is_folder(target) ? EISDIR : ENOTDIR;
    return -1;
}

static int for_all(const char *from, const char *to, place_fn *run);

static int for_one(const char *from, const char *to, const char *name, place_fn *run)
{
    struct text source = {0}, target = {0};
    text_add(&source, "%s/%s", from, name);
    text_add(&target, "%s/%s", to, name);
    const bool both = is_folder(source.bytes) && is_folder(target.bytes);
    const int r =
        both ? for_all(source.bytes, target.bytes, run) : run(source.bytes, target.bytes);
    text_finish(&source);
    text_finish(&target);
    return r;
}

static int for_all(const char *from, const char *to, place_fn *run)
{
    DIR *d = opendir(from);
    const struct dirent *entry;
    int r = d ? 0 : -1;
    while (r == 0 && (errno = 0, entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = for_one(from, to, entry->d_name, run);
    r = r == 0 && errno ? -1 : r;
    const int problem = errno;
    if (d)
        closedir(d);
    errno = problem;
    return r;
}

static int give_name(const struct folder *f)
{
    if (is_folder(f->path))
        return for_all(f->aside, f->path, check_target) < 0
                   ? -1
                   : for_all(f->aside, f->path, rename);
    return rename(f->aside, f->path);
}

/* ---- or away ---- */

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    (void)s, (void)kind, (void)where;
    remove(path);
    return 0;
}

void folder_remove(const char *path)
{
    nftw(path, remove_one, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS);
}

static void name_the_target(const struct folder *f, struct error *e)
{
    char *found = e ? strstr(e->text, f->aside) : NULL;
    if (!found)
        return;
    struct text said = {0};
    text_add(&said, "%.*s%s%s", (int)(found - e->text), e->text, f->path,
             found + strlen(f->aside));
    snprintf(e->text, sizeof e->text, "%s", text_get(&said));
    text_finish(&said);
}

int folder_end(struct folder *f, int result, struct error *e)
{
    if (!f->path)
        return result;
    if (result == 0 && give_name(f) < 0)
        result = error_set(e, ERROR_UNAVAILABLE, "%s: cannot be written: %s", f->path,
                           strerror(errno));
    else if (result < 0)
        name_the_target(f, e);
    folder_remove(f->aside);
    if (result < 0)
        remove_parents(f);
    finish(f);
    return result;
}
