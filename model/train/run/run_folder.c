/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_folder.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/base/whole_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Its own: what is there under this name is removed. */
#define FOLDER_SUFFIX ".maskbert-part"
#define LOG           "log.jsonl"

static char *without_slashes(const char *path)
{
    size_t size = strlen(path);
    char *ret = memory_text(path);
    while (size > 1 && ret[size - 1] == '/')
        ret[--size] = 0;
    return ret;
}

/* ---- removing ---- */

static bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

static bool ends_in_part(const char *name)
{
    const size_t n = strlen(name), k = strlen(PART_SUFFIX);
    return n > k && !strcmp(name + n - k, PART_SUFFIX);
}

/* Files that are removed. NOT_LOG: all but the log, whose lock is held. */
enum swept { UNFINISHED, NOT_LOG, ALL };

static bool is_swept(const char *name, enum swept which)
{
    return which == ALL || (which == NOT_LOG ? strcmp(name, LOG) != 0 : ends_in_part(name));
}

static void sweep(int folder, enum swept which)
{
    int fd = dup(folder);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (d)
        rewinddir(d);
    while (d && (entry = readdir(d)))
        if (!is_dots(entry->d_name) && is_swept(entry->d_name, which))
            unlinkat(folder, entry->d_name, 0);
    if (d)
        closedir(d);
}

/* The folders in it, too: the state, and modules of sentence-transformers. */
static void sweep_tree(int folder, enum swept which)
{
    int fd = dup(folder);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (d)
        rewinddir(d);
    while (d && (entry = readdir(d))) {
        int inner = is_dots(entry->d_name)
                        ? -1
                        : openat(folder, entry->d_name,
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0)
            continue;
        sweep(inner, which == UNFINISHED ? UNFINISHED : ALL);
        close(inner);
        if (which != UNFINISHED)
            unlinkat(folder, entry->d_name, AT_REMOVEDIR);
    }
    if (d)
        closedir(d);
    sweep(folder, which);
}

/* ---- locking ---- */

static int lock_one(const struct run_folder *f, int fd, struct error *e)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK
               ? error_set(e, ERROR_INPUT, "%s: another run writes there", f->run)
               : error_set(e, ERROR_UNAVAILABLE, "%s: cannot be locked: %s", f->run,
                           strerror(errno));
}

/* The log keeps its file for as long as there is the run. A folder without one is none of a run, or of one that begins. */
static int lock(struct run_folder *f, int flags, struct error *e)
{
    f->lock = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->lock < 0)
        return error_set(e, ERROR_INPUT, "%s: %s", f->path, strerror(errno));
    if (lock_one(f, f->lock, e) < 0)
        return -1;
    f->log = openat(f->lock, LOG, O_RDWR | O_CLOEXEC | flags, 0666);
    if (f->log < 0)
        return errno == ENOENT && !flags ? 0
                                         : error_set(e, ERROR_UNAVAILABLE, "%s/" LOG ": %s",
                                                     f->path, strerror(errno));
    return lock_one(f, f->log, e);
}

/* Between mkdir and the lock another process may have given the folder its name. */
static bool is_still_there(const struct run_folder *f)
{
    struct stat named, locked;
    return stat(f->path, &named) == 0 && fstat(f->lock, &locked) == 0 &&
           named.st_ino == locked.st_ino && named.st_dev == locked.st_dev;
}

static struct run_folder name_folder(const char *run, const char *suffix)
{
    struct run_folder f = {.run = without_slashes(run), .lock = -1, .log = -1};
    struct text path = {0};
    text_add(&path, "%s%s", f.run, suffix);
    f.path = text_take(&path);
    return f;
}

static int begin(struct run_folder *f, struct error *e)
{
    struct stat status;
    if (!*f->run)
        return error_set(e, ERROR_INPUT, "-o RUN: a name is expected");
    if (lstat(f->run, &status) == 0)
        return error_set(e, ERROR_INPUT,
                         "%s: is there already; a new name is expected, or --resume", f->run);
    if (mkdir(f->path, 0777) < 0 && errno != EEXIST)
        return error_set(e, ERROR_INPUT, "%s: cannot be made: %s", f->run, strerror(errno));
    if (lock(f, O_CREAT | O_NOFOLLOW, e) < 0)
        return -1;
    if (!is_still_there(f))
        return error_set(e, ERROR_INPUT, "%s: another run writes there", f->run);
    f->is_new = true;
    sweep_tree(f->lock, NOT_LOG);
    return ftruncate(f->log, 0) == 0
               ? 0
               : error_set(e, ERROR_UNAVAILABLE, "%s/" LOG ": %s", f->path, strerror(errno));
}

int run_folder_begin(const char *run, struct run_folder *ret, struct error *e)
{
    struct run_folder f = name_folder(run, FOLDER_SUFFIX);
    if (begin(&f, e) < 0) {
        run_folder_finish(&f);
        return -1;
    }
    *ret = f;
    return 0;
}

int run_folder_open(const char *run, struct run_folder *ret, struct error *e)
{
    struct run_folder f = name_folder(run, "");
    if (lock(&f, 0, e) < 0) {
        run_folder_finish(&f);
        return -1;
    }
    sweep_tree(f.lock, UNFINISHED);
    *ret = f;
    return 0;
}

struct run_folder run_folder_join(const char *run, bool is_new)
{
    return name_folder(run, is_new ? FOLDER_SUFFIX : "");
}

void run_folder_joined(struct run_folder *f)
{
    free(f->path);
    f->path = memory_text(f->run);
}

int run_folder_publish(struct run_folder *f, struct error *e)
{
    if (!f->is_new)
        return 0;
    if (rename(f->path, f->run) < 0)
        return error_set(
            e, errno == ENOTEMPTY || errno == EEXIST ? ERROR_INPUT : ERROR_UNAVAILABLE,
            "%s: cannot be made: %s", f->run, strerror(errno));
    free(f->path);
    f->path = memory_text(f->run);
    f->is_new = false;
    char *copy = memory_text(f->run);
    int r = folder_sync(dirname(copy), e);
    free(copy);
    return r;
}

void run_folder_finish(struct run_folder *f)
{
    if (f->is_new)
        sweep_tree(f->lock, ALL);
    if (f->run && f->log >= 0)
        close(f->log); /* NFS keeps a removed file in the folder until then */
    if (f->is_new)
        rmdir(f->path);
    if (f->run && f->lock >= 0)
        close(f->lock);
    free(f->run);
    free(f->path);
    *f = (struct run_folder){0};
}
