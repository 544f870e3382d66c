/* SPDX-License-Identifier: Apache-2.0 */
/* Capital sigma, the only letter whose lower case depends on its neighbours. The result is that of Python's str.lower(),
   which Google's tokenizer uses. */
#pragma once
#include <stdint.h>

enum { SIGMA_CAPITAL = 0x3a3, SIGMA_SMALL = 0x3c3, SIGMA_FINAL = 0x3c2 };

/* The lower case of the sigma at `at` in text[from, to). It is the final one if a cased letter precedes it in its word and
   none follows it; case-ignorable points do not count. `flags` as in struct unicode, or null: plain str.lower(), by
   the Unicode properties of the points alone. */
uint32_t sigma_lower(const char *text, uint32_t from, uint32_t to, uint32_t at,
                     const uint8_t *flags);
