/* SPDX-License-Identifier: Apache-2.0 */
/* The classes \p{L}, \p{N} and \s as in the regular expressions of the Rust library tokenizers 0.23.3 (Unicode 16).
   Every code point was compared with that library. */
#pragma once
#include <stdint.h>

enum letter_class { CLASS_OTHER, CLASS_LETTER, CLASS_NUMBER, CLASS_BLANK };

/* The class of each code point, an enum letter_class. Made once for the process; never freed. */
const uint8_t *letter_classes(void);
