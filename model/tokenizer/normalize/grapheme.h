/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* The end of the extended grapheme cluster at bytes[at], at < size. */
uint32_t grapheme_end(const char *bytes, uint32_t at, uint32_t size);
