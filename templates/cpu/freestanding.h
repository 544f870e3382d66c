/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a compiler may call by itself: kernels link with no C library. */
#ifndef MASKC_CPU_FREESTANDING_H
#define MASKC_CPU_FREESTANDING_H

__attribute__((visibility("hidden"))) void *memcpy(void *to, const void *from,
                                                   unsigned long bytes);
__attribute__((visibility("hidden"))) void *memset(void *to, int byte, unsigned long bytes);

void *memcpy(void *to, const void *from, unsigned long bytes)
{
    void *ret = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return ret;
}

void *memset(void *to, int byte, unsigned long bytes)
{
    void *ret = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
    return ret;
}

#endif
