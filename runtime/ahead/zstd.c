/* SPDX-License-Identifier: Apache-2.0 */
/* Frames by zstd, or none in a build without it. */
#include "masks/base/memory.h"
#include "runtime/ahead/ahead.h"
#include <stdlib.h>

#if MASKC_ZSTD
#include <zstd.h>

/* The best level below those that need much memory to unpack; codes that are alike lie up to some MB apart. */
enum { LEVEL = 19, WINDOW_BITS = 24 };

bool frame_unpack(const uint8_t *packed, uint64_t size, uint8_t *ret, uint64_t raw)
{
    return ZSTD_decompress(ret, raw, packed, size) == raw;
}

bool frame_pack(const uint8_t *raw, uint64_t size, struct text *to)
{
    const size_t capacity = ZSTD_compressBound(size);
    char *packed = memory_new(capacity, 1);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, WINDOW_BITS);
    const size_t length = ZSTD_compress2(context, packed, capacity, raw, size);
    const bool ok = !ZSTD_isError(length);
    if (ok)
        text_append(to, packed, length);
    ZSTD_freeCCtx(context);
    free(packed);
    return ok;
}

#else

bool frame_unpack(const uint8_t *packed, uint64_t size, uint8_t *ret, uint64_t raw)
{
    (void)packed, (void)size, (void)ret, (void)raw;
    return false;
}

bool frame_pack(const uint8_t *raw, uint64_t size, struct text *to)
{
    (void)raw, (void)size, (void)to;
    return false;
}

#endif
