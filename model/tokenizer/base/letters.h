/* SPDX-License-Identifier: Apache-2.0 */
/* The classes \p{L}, \p{N} and \s of the regular expressions in the Rust library tokenizers 0.23.3 (Unicode 16), of
   which every code point was compared. */
#pragma once
#include <stdint.h>

enum letter_class { CLASS_OTHER, CLASS_LETTER, CLASS_NUMBER, CLASS_BLANK };

/* The class of each code point, an enum letter_class. Made once for the process; never freed. */
const uint8_t *letter_classes(void);
