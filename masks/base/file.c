/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/file.h"
#include "masks/base/aside.h"
#include "masks/base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map_open_file(int fd, const char *path, struct file *ret, struct error *e)
{
    struct stat s;
    if (fstat(fd, &s) < 0)
        return error_set(e, ERROR_INPUT, "%s: %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode))
        return error_set(e, ERROR_INPUT, "%s: is a directory, a file is expected", path);
    if (!S_ISREG(s.st_mode))
        return error_set(e, ERROR_INPUT, "%s: not a regular file", path);
    *ret = (struct file){.size = (size_t)s.st_size, .bytes = (const uint8_t *)""};
    if (ret->size == 0)
        return 0;
    void *p = mmap(NULL, ret->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return error_set(e, ERROR_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    ret->bytes = ret->mapping = p;
    return 0;
}

int file_open(const char *path, struct file *ret, struct error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(e, ERROR_INPUT, "%s: %s", path, strerror(errno));
    int r = map_open_file(fd, path, ret, e);
    close(fd);
    return r;
}

void file_close(struct file *f)
{
    if (f->mapping)
        munmap(f->mapping, f->size);
    *f = (struct file){0};
}

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

/* A disk that is full, or a limit: not the input's fault. */
static enum error_kind kind_of(int problem)
{
    return problem == ENOSPC || problem == EDQUOT || problem == EFBIG || problem == EIO
               ? ERROR_UNAVAILABLE
               : ERROR_INPUT;
}

/* 0, or what went wrong. */
static int fill(int fd, const char *bytes, size_t size)
{
    int problem = write_all(fd, bytes, size) < 0 ? errno : 0;
    return close(fd) < 0 && !problem ? errno : problem;
}

/* A device or a pipe stays what it is. */
static int write_through(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? errno : fill(fd, bytes, size);
}

static int write_aside(const char *path, const void *bytes, size_t size)
{
    size_t length = strlen(path) + sizeof ".XXXXXX";
    char *aside = memory_new(length, 1);
    snprintf(aside, length, "%s.XXXXXX", path);
    int fd = aside_file(aside), problem = fd < 0 ? errno : fill(fd, bytes, size);
    if (!problem && rename(aside, path) < 0)
        problem = errno;
    if (problem && fd >= 0)
        unlink(aside);
    free(aside);
    return problem;
}

int file_write(const char *path, const void *bytes, size_t size, struct error *e)
{
    struct stat s;
    bool there = stat(path, &s) == 0;
    if (there && S_ISDIR(s.st_mode))
        return error_set(e, ERROR_INPUT, "%s: is a directory, a file name is expected", path);
    char *target = there ? realpath(path, NULL) : NULL; /* a link stays one: /dev/stdout */
    int problem = there && !S_ISREG(s.st_mode)
                      ? write_through(path, bytes, size)
                      : write_aside(target ? target : path, bytes, size);
    free(target);
    return problem ? error_set(e, kind_of(problem), "%s: cannot be written: %s", path,
                               strerror(problem))
                   : 0;
}

int file_make_directory(const char *path, struct error *e)
{
    char *copy = memory_text(path);
    int r = 0;
    for (char *p = copy + 1; *copy; p++) {
        char c = *p;
        if (c != '/' && c != 0)
            continue;
        *p = 0;
        if (mkdir(copy, 0777) < 0 && errno != EEXIST) {
            r = error_set(e, ERROR_INPUT, "%s: cannot be made: %s", copy, strerror(errno));
            break;
        }
        *p = c;
        if (c == 0)
            break;
    }
    struct stat s;
    if (r == 0 && (stat(path, &s) < 0 || !S_ISDIR(s.st_mode)))
        r = error_set(e, ERROR_INPUT, "%s: not a directory", path);
    free(copy);
    return r;
}
