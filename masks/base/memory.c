/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void out_of_memory(size_t count, size_t size)
{
    fprintf(stderr, "maskc: out of memory: %zu x %zu bytes\n", count, size);
    abort();
}

bool size_multiply(size_t a, size_t b, size_t *ret)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *ret = product;
    return true;
}

void *memory_new(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p)
        out_of_memory(count, size);
    return p;
}

void *memory_resize(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (!size_multiply(count ? count : 1, size, &bytes))
        out_of_memory(count, size);
    void *p = realloc(old, bytes);
    if (!p)
        out_of_memory(count, size);
    return p;
}

void *memory_copy(const void *from, size_t bytes)
{
    void *p = memory_new(bytes, 1);
    if (bytes)
        memcpy(p, from, bytes);
    return p;
}

char *memory_text(const char *text)
{
    return text ? memory_copy(text, strlen(text) + 1) : NULL;
}

void *memory_aligned(size_t count, size_t size)
{
    enum { ALIGN = 64 };
    size_t bytes;
    if (!size_multiply(count ? count : 1, size, &bytes) || bytes > SIZE_MAX - ALIGN)
        out_of_memory(count, size);
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    void *p = aligned_alloc(ALIGN, bytes);
    if (!p)
        out_of_memory(count, size);
    return memset(p, 0, bytes);
}

enum { LARGE_PAGE = 2 << 20 };

uint64_t memory_large_bytes(uint64_t bytes)
{
    return (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
}

void *memory_large(size_t *bytes)
{
    if (*bytes > SIZE_MAX - LARGE_PAGE)
        out_of_memory(*bytes, 1);
    *bytes = memory_large_bytes(*bytes);
    void *p = aligned_alloc(LARGE_PAGE, *bytes);
    if (!p)
        out_of_memory(*bytes, 1);
    madvise(p, *bytes, MADV_HUGEPAGE); /* a hint: what becomes of it does not matter */
    return p;
}

double memory_physical(void)
{
    double pages = (double)sysconf(_SC_PHYS_PAGES), bytes = (double)sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? pages * bytes : 0;
}
