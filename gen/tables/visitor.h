/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver of the entries that decoded tables visit. */
#pragma once
#include "templates/abi.h"
#include <stdbool.h>
#include <stdint.h>

/* Where decoded entries go: keys begin .. end - 1 of row r of the item, or the bits of `word` from
   key col0 (a multiple of 32), or one key in each of the line's rows. Returns false to stop: outside the item, or visited before. */
struct visitor {
    bool (*range)(void *context, uint32_t r, uint32_t begin, uint32_t end);
    bool (*word)(void *context, uint32_t r, uint32_t col0, u32 word);
    bool (*line)(void *context, const struct abi_line *line);
    void *context;
};
