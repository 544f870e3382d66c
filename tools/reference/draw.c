/* SPDX-License-Identifier: Apache-2.0 */
/* The dropout draw as the contract states it, written apart from the templates so that it can check
   them: Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). */
#include "tools/reference/check.h"

void reference_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    for (uint32_t round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * c[0], b = (uint64_t)0xCD9E8D57 * c[2];
        uint32_t k0 = key[0] + round * 0x9E3779B9u, k1 = key[1] + round * 0xBB67AE85u;
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};
        for (int w = 0; w < 4; w++)
            c[w] = next[w];
    }
    for (int w = 0; w < 4; w++)
        ret[w] = c[w];
}

uint32_t reference_draw(uint64_t seed, uint32_t sample, uint32_t h, uint32_t i, uint32_t j)
{
    uint32_t counter[4] = {i / 16 * 8 + i % 8, j / 16 * 4 + j % 8 / 2, sample, h};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t word[4];
    reference_philox(counter, key, word);
    uint32_t w = word[2 * (j & 1) + (j >> 3 & 1)];
    return i >> 3 & 1 ? w >> 16 : w & 0xffff;
}
