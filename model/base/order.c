/* SPDX-License-Identifier: Apache-2.0 */
#include "model/base/order.h"

enum { ROUNDS = 6 };

static uint32_t half_bits(uint32_t count)
{
    uint32_t bits = 1;
    while (bits < 16 && (uint64_t)1 << 2 * bits < count)
        bits++;
    return bits;
}

uint32_t order_at(uint64_t seed, uint32_t epoch, uint32_t count, uint32_t k)
{
    uint32_t bits = half_bits(count), low = (uint32_t)((1ull << bits) - 1);
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    do {
        uint32_t left = k >> bits, right = k & low;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            uint32_t word[4], next;
            philox((const uint32_t[4]){right, round, epoch, STREAM_ORDER}, key, word);
            next = left ^ (word[0] & low);
            left = right;
            right = next;
        }
        k = left << bits | right;
    } while (k >= count);
    return k;
}
