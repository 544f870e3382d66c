/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* True for letters, marks, digits, connectors and joiners: \w of the regular expressions in the Rust library
   tokenizers 0.23.3. Every code point was compared with it. */
bool unicode_is_word(uint32_t point);
