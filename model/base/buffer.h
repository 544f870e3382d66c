/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that grows. */
#pragma once
#include <stdint.h>

/* Makes *data at least so large. Contents are lost when it grows. 64-byte aligned; what is large lies on
   large pages, as products walk through rows a page or more apart. free() it. */
uint64_t buffer_bytes(uint64_t wanted); /* that it takes for so many */
void buffer_grow(void **data, uint64_t *bytes, uint64_t wanted);
