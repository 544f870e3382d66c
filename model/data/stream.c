/* SPDX-License-Identifier: Apache-2.0 */
/* A table of three readers: plain, gzip, zstd. A file whose reader is missing from the build is refused by name. */
#include "model/data/stream.h"
#include "masks/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#if MASKBERT_ZLIB
#include <zlib.h>
#endif
#if MASKBERT_ZSTD
#include <zstd.h>
#endif

enum { PACKED_BYTES = 128 << 10 };

struct kind {
    const char *suffix,
        *library; /* the library that the build lacks; null: the reader is built, or none is needed */
    int (*begin)(struct byte_stream *s, struct error *e);
    int64_t (*read)(struct byte_stream *s, void *ret, size_t size, struct error *e);
    void (*finish)(struct byte_stream *s);
};

struct byte_stream {
    char *path;
    const struct kind *kind;
    FILE *file;
    uint64_t taken;
    uint8_t *packed; /* [PACKED_BYTES]: at .. end are read and not unpacked yet */
    size_t at, end;
    bool in_frame; /* the packed bytes are incomplete: the file must not end here */
#if MASKBERT_ZLIB
    z_stream gzip;
#endif
#if MASKBERT_ZSTD
    ZSTD_DStream *zstd;
#endif
};

static int64_t read_file(struct byte_stream *s, void *ret, size_t size, struct error *e)
{
    size_t got = fread(ret, 1, size, s->file);
    if (!got && ferror(s->file))
        return error_set(e, ERROR_INPUT, "%s: cannot be read: %s", s->path, strerror(errno));
    s->taken += got;
    return (int64_t)got;
}

#if MASKBERT_ZLIB || MASKBERT_ZSTD
static int begin_packed(struct byte_stream *s)
{
    s->packed = memory_new(PACKED_BYTES, 1);
    s->in_frame = true; /* an empty file is not packed at all */
    return 0;
}

/* Reads more packed bytes if there are none. 0: the file ends, as it may. Neither library consumes the last bytes of a file
   before it has returned all its content: zlib still needs the trailer, zstd keeps one byte back. */
static int64_t fill(struct byte_stream *s, struct error *e)
{
    if (s->at < s->end)
        return 1;
    int64_t got = read_file(s, s->packed, PACKED_BYTES, e);
    s->at = 0;
    s->end = got > 0 ? (size_t)got : 0;
    if (got == 0 && s->in_frame)
        return error_set(e, ERROR_INPUT, "%s: ends too early: %s was cut", s->path,
                         s->kind->suffix + 1);
    return got;
}

static int damaged(const struct byte_stream *s, const char *why, struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s: not %s, or damaged: %s", s->path, s->kind->suffix + 1,
                     why);
}
#endif

#if MASKBERT_ZLIB
static int begin_gzip(struct byte_stream *s, struct error *e)
{
    begin_packed(s);
    return inflateInit2(&s->gzip, 15 + 16) == Z_OK ? 0 : damaged(s, "zlib does not start", e);
}

static int64_t read_gzip(struct byte_stream *s, void *ret, size_t size, struct error *e)
{
    s->gzip.next_out = ret;
    s->gzip.avail_out = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
    uInt whole = s->gzip.avail_out;
    while (s->gzip.avail_out == whole) {
        int64_t more = fill(s, e);
        if (more <= 0)
            return more;
        s->in_frame = true;
        s->gzip.next_in = s->packed + s->at;
        s->gzip.avail_in = (uInt)(s->end - s->at);
        int r = inflate(&s->gzip, Z_NO_FLUSH);
        s->at = s->end - s->gzip.avail_in;
        if (r != Z_OK && r != Z_STREAM_END)
            return damaged(s, s->gzip.msg ? s->gzip.msg : "inflate fails", e);
        if (r == Z_STREAM_END) { /* several packed files may follow one another */
            s->in_frame = false;
            inflateReset(&s->gzip);
        }
    }
    return whole - s->gzip.avail_out;
}

static void finish_gzip(struct byte_stream *s)
{
    inflateEnd(&s->gzip);
}
#endif

#if MASKBERT_ZSTD
static int begin_zstd(struct byte_stream *s, struct error *e)
{
    begin_packed(s);
    s->zstd = ZSTD_createDStream();
    return s->zstd ? 0 : damaged(s, "zstd does not start", e);
}

static int64_t read_zstd(struct byte_stream *s, void *ret, size_t size, struct error *e)
{
    ZSTD_outBuffer out = {ret, size, 0};
    while (!out.pos) {
        int64_t more = fill(s, e);
        if (more <= 0)
            return more;
        ZSTD_inBuffer in = {s->packed, s->end, s->at};
        size_t r = ZSTD_decompressStream(s->zstd, &out, &in);
        s->at = in.pos;
        if (ZSTD_isError(r))
            return damaged(s, ZSTD_getErrorName(r), e);
        s->in_frame = r != 0;
    }
    return (int64_t)out.pos;
}

static void finish_zstd(struct byte_stream *s)
{
    ZSTD_freeDStream(s->zstd);
}
#endif

static const struct kind kinds[] = {
#if MASKBERT_ZLIB
    {".gz", NULL, begin_gzip, read_gzip, finish_gzip},
#else
    {".gz", "zlib", NULL, NULL, NULL},
#endif
#if MASKBERT_ZSTD
    {".zst", NULL, begin_zstd, read_zstd, finish_zstd},
#else
    {".zst", "libzstd", NULL, NULL, NULL},
#endif
    {NULL, NULL, NULL, read_file, NULL},
};

static const struct kind *find_kind(const char *name)
{
    size_t size = strlen(name);
    const struct kind *k = kinds;
    for (; k->suffix; k++) {
        size_t length = strlen(k->suffix);
        if (size > length && !strcmp(name + size - length, k->suffix))
            break;
    }
    return k;
}

size_t stream_plain_name(const char *name)
{
    const struct kind *k = find_kind(name);
    return strlen(name) - (k->suffix ? strlen(k->suffix) : 0);
}

struct byte_stream *stream_open(const char *path, struct error *e)
{
    struct stat status;
    const struct kind *k = find_kind(path);
    if (k->library) {
        error_set(e, ERROR_INPUT,
                  "%s: this maskbert was built without %s; a plain file is expected", path,
                  k->library);
        return NULL;
    }
    FILE *file = fopen(path, "rbe");
    if (!file || fstat(fileno(file), &status) < 0 || S_ISDIR(status.st_mode)) {
        error_set(e, ERROR_INPUT, "%s: %s", path,
                  file ? "is a directory, a file is expected" : strerror(errno));
        if (file)
            fclose(file);
        return NULL;
    }
    struct byte_stream *s = memory_new(1, sizeof *s);
    *s = (struct byte_stream){.path = memory_text(path), .kind = k, .file = file};
    if (k->begin && k->begin(s, e) < 0) {
        stream_close(s);
        return NULL;
    }
    return s;
}

void stream_close(struct byte_stream *s)
{
    if (!s)
        return;
    if (s->kind->finish)
        s->kind->finish(s);
    fclose(s->file);
    free(s->packed);
    free(s->path);
    free(s);
}

int64_t stream_read(struct byte_stream *s, void *ret, size_t size, struct error *e)
{
    return s->kind->read(s, ret, size, e);
}

uint64_t stream_taken(const struct byte_stream *s)
{
    return s->taken;
}
