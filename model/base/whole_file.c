/* SPDX-License-Identifier: Apache-2.0 */
#include "model/base/whole_file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void whole_file_begin(struct whole_file *f, const char *path)
{
    struct text part = {0};
    text_add(&part, "%s" PART_SUFFIX, path);
    *f = (struct whole_file){
        .path = memory_text(path), .part = text_take(&part), .hash = XXH3_createState()};
    XXH3_128bits_reset(f->hash);
    f->fd = open(f->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->fd < 0)
        f->problem = errno;
}

static int write_at(struct whole_file *f, const char *bytes, uint64_t size, uint64_t at)
{
    while (size && !f->problem) {
        ssize_t n = pwrite(f->fd, bytes, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            f->problem = errno;
            break;
        }
        bytes += n;
        at += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return f->problem ? -1 : 0;
}

int whole_file_write(void *file, const void *bytes, uint64_t size)
{
    struct whole_file *f = file;
    XXH3_128bits_update(f->hash, bytes, size);
    int r = write_at(f, bytes, size, f->size);
    f->size += size;
    return r;
}

void whole_file_sum(const struct whole_file *f, char ret[33])
{
    const XXH128_hash_t sum = XXH3_128bits_digest(f->hash);
    snprintf(ret, 33, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
}

void whole_file_patch(struct whole_file *f, uint64_t at, const char *bytes, uint64_t size)
{
    write_at(f, bytes, size, at);
}

static int cannot(const char *path, int problem, struct error *e)
{
    return error_set(e, ERROR_UNAVAILABLE, "%s: cannot be written: %s", path,
                     strerror(problem));
}

int whole_file_end(struct whole_file *f, struct error *e)
{
    if (!f->problem && fsync(f->fd) < 0)
        f->problem = errno;
    if (f->fd >= 0 && close(f->fd) < 0 && !f->problem)
        f->problem = errno;
    if (!f->problem && rename(f->part, f->path) < 0)
        f->problem = errno;
    int r = f->problem ? cannot(f->path, f->problem, e) : 0;
    if (f->problem)
        unlink(f->part);
    XXH3_freeState(f->hash);
    free(f->path);
    free(f->part);
    *f = (struct whole_file){.fd = -1};
    return r;
}

int folder_sync(const char *folder, struct error *e)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) < 0 ? cannot(folder, errno, e) : 0;
    if (fd >= 0)
        close(fd);
    return r;
}
