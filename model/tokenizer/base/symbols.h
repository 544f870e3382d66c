/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of a piece, each with its bytes of the piece. */
#pragma once
#include <stdint.h>

struct symbol {
    uint32_t token_id, begin, end;
};

/* Zeroed: empty. Memory is kept from call to call. */
struct symbols {
    struct symbol *list;
    uint32_t count, capacity;
};
