/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/artifact/artifact.h"
#include <string.h>

static bool is_identifier(uint8_t c)
{
    return c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z');
}

bool image_names(const struct code_image *i, const char *name)
{
    const size_t length = strlen(name);
    const uint8_t *end = i->bytes + i->size, *at = i->bytes;
    while ((at = memmem(at, (size_t)(end - at), name, length))) {
        const bool begins = at == i->bytes || !is_identifier(at[-1]);
        if (begins && (at + length == end || !is_identifier(at[length])))
            return true;
        at++;
    }
    return false;
}
