/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that cannot fail quietly: sizes are checked before they are multiplied, and a
   machine out of memory ends the program with one line. Sizes that come from a file or a user
   are checked against a limit by the caller first, so that bad input never gets here. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *memory_new(size_t count, size_t size); /* zeroed; count 0 gives a valid pointer */
void *memory_resize(void *old, size_t count, size_t size); /* grown part is not zeroed */
void *memory_copy(const void *from, size_t bytes);
char *memory_text(const char *text); /* strdup; null stays null */

/* 64-byte aligned and zeroed, for tensors; free() it. */
void *memory_aligned(size_t count, size_t size);
/* Allocates *bytes, rounded up to whole 2 MiB pages, on such pages if the system has them. Not zeroed. Release with
   free(). */
void *memory_large(size_t *bytes);
uint64_t memory_large_bytes(uint64_t bytes); /* the same, rounded up */

double memory_physical(void); /* bytes of this machine; 0 where the system does not say */

/* *ret = a * b; false (and *ret untouched) where that does not fit. */
bool size_multiply(size_t a, size_t b, size_t *ret);

/* Adds an element to a growing array and gives its address: `ptr`, `count`, `capacity` are the usual three. */
#define MEMORY_PUSH(ptr, count, capacity)                                              \
    ((ptr) = (count) < (capacity)                                                      \
                 ? (ptr)                                                               \
                 : memory_resize((ptr), (capacity) = (capacity) ? 2 * (capacity) : 16, \
                                 sizeof *(ptr)),                                       \
     &(ptr)[(count)++])
