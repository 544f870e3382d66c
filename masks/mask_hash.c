/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from mask.c, which the library that only loads kernel files takes without xxhash. */
#include "masks/mask.h"
#include <xxhash.h>

uint64_t mask_hash(const struct mask *m)
{
    uint64_t hash = m->n + ((uint64_t)m->heads << 20) + ((uint64_t)m->layers << 40);
    for (uint32_t k = 0; k < m->layers * m->heads; k++)
        hash = XXH64(&m->pattern[m->at[k]]->hash, sizeof(uint64_t), hash);
    return hash;
}
