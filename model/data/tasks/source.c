/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/tasks/source.h"
#include "masks/base/memory.h"
#include "model/data/stream.h"
#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 1 << 20 };
static const size_t MOST_BYTES = (size_t)16 << 30;

static int unpack(struct byte_stream *packed, const char *path, struct loaded_source *ret,
                  struct error *e)
{
    size_t size = 0, capacity = 0;
    for (;;) {
        if (READ_BYTES > capacity - size) {
            capacity = 2 * capacity + READ_BYTES;
            ret->unpacked = memory_resize(ret->unpacked, capacity, 1);
        }
        int64_t got = stream_read(packed, ret->unpacked + size, READ_BYTES, e);
        if (got < 0)
            return -1;
        size += (size_t)got;
        if (size > MOST_BYTES)
            return error_set(e, ERROR_INPUT, "%s: more than 16 GiB when unpacked", path);
        if (!got)
            break;
    }
    ret->from = (struct task_source){.path = path, .bytes = ret->unpacked, .size = size};
    return 0;
}

static int load_packed(const char *path, struct loaded_source *ret, struct error *e)
{
    struct byte_stream *packed = stream_open(path, e);
    if (!packed)
        return -1;
    int result = unpack(packed, path, ret, e);
    stream_close(packed);
    if (result < 0)
        source_unload(ret);
    return result;
}

int source_load(const char *path, struct loaded_source *ret, struct error *e)
{
    *ret = (struct loaded_source){.file = {0}};
    if (stream_plain_name(path) < strlen(path))
        return load_packed(path, ret, e);
    if (file_open(path, &ret->file, e) < 0)
        return -1;
    ret->from =
        (struct task_source){.path = path, .bytes = ret->file.bytes, .size = ret->file.size};
    return 0;
}

void source_unload(struct loaded_source *s)
{
    file_close(&s->file);
    free(s->unpacked);
    *s = (struct loaded_source){.file = {0}};
}
