/* SPDX-License-Identifier: Apache-2.0 */
/* One XXH3-128 over the whole kernel file, its own 32 digits taken as zeros. It guards against
   damage, not against malice: whoever can write the file can also write the digits. */
#include "masks/base/hash.h"
#include "runtime/artifact/tables.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char zeros[] = "00000000000000000000000000000000";
static const char key[] = "\"checksum\"";

static const uint8_t *skip_spaces(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p == ' ')
        p++;
    return p;
}

/* Inside a JSON string a quote is written with a backslash before it, so the key with both of its
   quotes can only be the key itself. */
uint8_t *checksum_find(const uint8_t *bytes, uint64_t size)
{
    uint64_t header = 0;
    if (size >= 8)
        memcpy(&header, bytes, 8);
    if (header == 0 || header > size - 8)
        return NULL;
    const uint8_t *end = bytes + 8 + header;
    const uint8_t *p = memmem(bytes + 8, header, key, sizeof key - 1);
    if (!p)
        return NULL;
    p = skip_spaces(p + sizeof key - 1, end);
    if (p == end || *p != ':')
        return NULL;
    p = skip_spaces(p + 1, end);
    if (end - p < CHECKSUM_DIGITS + 2 || *p != '"' || p[CHECKSUM_DIGITS + 1] != '"')
        return NULL;
    for (int i = 1; i <= CHECKSUM_DIGITS; i++)
        if (!isxdigit(p[i]))
            return NULL;
    return (uint8_t *)p + 1;
}

void checksum_compute(const uint8_t *bytes, uint64_t size, const uint8_t *digits,
                      char ret[CHECKSUM_DIGITS + 1])
{
    const uint8_t *after = digits + CHECKSUM_DIGITS;
    XXH3_state_t *state = XXH3_createState();
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, bytes, (size_t)(digits - bytes));
    XXH3_128bits_update(state, zeros, CHECKSUM_DIGITS);
    XXH3_128bits_update(state, after, (size_t)(bytes + size - after));
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    XXH3_freeState(state);
    for (int i = 0; i < CHECKSUM_DIGITS / 2; i++)
        snprintf(ret + 2 * i, 3, "%02x", canonical.digest[i]);
}
