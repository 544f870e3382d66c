/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_log.h"
#include "masks/base/text.h"
#include "model/checkpoint/json.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int cannot(struct error *e)
{
    return error_set(e, ERROR_UNAVAILABLE, "log.jsonl: cannot be written: %s", strerror(errno));
}

/* Back to the end of the last whole line. */
static int cut_last_line(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END), end = size;
    char c;
    while (end > 0 && pread(fd, &c, 1, end - 1) == 1 && c != '\n')
        end--;
    return end < size ? ftruncate(fd, end) : 0;
}

int run_log_open(struct run_log *l, const char *run, struct error *e)
{
    char *path = path_join(run, "log.jsonl");
    l->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    free(path);
    return l->fd < 0 || cut_last_line(l->fd) < 0 ? cannot(e) : 0;
}

void run_log_close(struct run_log *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

int run_log_write(struct run_log *l, const char *kind, const char *name,
                  const struct log_field *field, uint32_t fields, struct error *e)
{
    struct text line = {0};
    if (l->fd < 0)
        return 0;
    text_add(&line, "{");
    if (kind)
        text_add(&line, "\"%s\":\"%s\"", kind, name);
    for (uint32_t k = 0; k < fields; k++) {
        text_add(&line, "%s\"%s\":", kind || k ? "," : "", field[k].name);
        if (isfinite(field[k].value))
            text_add(&line, "%.17g", field[k].value);
        else
            text_add(&line, "null");
    }
    text_add(&line, "}\n");
    ssize_t n;
    do
        n = write(l->fd, line.bytes, line.length);
    while (n < 0 && errno == EINTR);
    if (n >= 0 && (size_t)n < line.length)
        errno = ENOSPC;
    int r = n == (ssize_t)line.length ? 0 : cannot(e);
    text_finish(&line);
    return r;
}

void log_line_add(struct log_line *to, const struct log_field *field, size_t count)
{
    for (size_t k = 0; k < count; k++)
        to->field[to->count++] = field[k];
}

void log_line_add_metrics(struct log_line *to, const struct metric *m, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        to->field[to->count++] = (struct log_field){m[k].name, m[k].value};
}
