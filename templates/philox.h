/* SPDX-License-Identifier: Apache-2.0 */
/* The random numbers of dropout: Philox4x32-10 (Salmon et al. 2011), one call for the 8 entries
   rows {g, g + 8} x columns {2t, 2t + 1, 2t + 8, 2t + 9} of an aligned 16 x 16 tile, so that a draw
   depends on (seed, sample, h, i, j) alone. Shared by all templates; needs abi.h before it. DEVICE
   qualifies functions (the CUDA templates define it). */
#ifndef MASKC_PHILOX_H
#define MASKC_PHILOX_H
#ifndef DEVICE
#define DEVICE static inline
#endif
#ifndef NO_UNROLL
#define NO_UNROLL
#endif
#ifndef PHILOX_UNROLL
#define PHILOX_UNROLL
#endif

/* Salmon's constants: the multipliers, and what a round adds to the key. */
#define PHILOX_EVEN 0xD2511F53u
#define PHILOX_ODD  0xCD9E8D57u
#define PHILOX_KEY0 0x9E3779B9u
#define PHILOX_KEY1 0xBB67AE85u

struct philox {
    u32 x, y, z, w;
};

DEVICE struct philox philox_round(struct philox c, u32 key0, u32 key1)
{
    u64 even = (u64)PHILOX_EVEN * c.x;
    u64 odd = (u64)PHILOX_ODD * c.z;
    struct philox r;
    r.x = (u32)(odd >> 32) ^ c.y ^ key0;
    r.y = (u32)odd;
    r.z = (u32)(even >> 32) ^ c.w ^ key1;
    r.w = (u32)even;
    return r;
}

DEVICE struct philox philox_4x32(struct philox counter, u64 seed)
{
    u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
    PHILOX_UNROLL
    for (int round = 0; round < 10; round++) {
        counter = philox_round(counter, key0, key1);
        key0 += PHILOX_KEY0;
        key1 += PHILOX_KEY1;
    }
    return counter;
}

/* The same in few instructions, for draws of single entries. */
DEVICE struct philox philox_4x32_short(struct philox counter, u64 seed)
{
    u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
    NO_UNROLL
    for (int round = 0; round < 10; round++) {
        counter = philox_round(counter, key0, key1);
        key0 += PHILOX_KEY0;
        key1 += PHILOX_KEY1;
    }
    return counter;
}

/* Number of sequence b in draws. */
DEVICE u32 dropout_sample(const struct abi_args *a, u32 b)
{
    return a->samples ? a->samples[b] : b;
}

/* Parts of the draw of entry (query i, key j): dropout_counter() gives the counter of its call,
   dropout_word() the index of its word, dropout_half() its half of that word. */
DEVICE struct philox dropout_counter(u32 sample, u32 h, u32 i, u32 j)
{
    struct philox c;
    c.x = i / 16 * 8 + i % 8;
    c.y = j / 16 * 4 + j % 8 / 2;
    c.z = sample;
    c.w = h;
    return c;
}

DEVICE u32 dropout_word(u32 j)
{
    return 2 * (j & 1) + ((j >> 3) & 1);
}

/* A word chosen without an array: indexing registers would put them in memory. */
DEVICE u32 philox_word(struct philox r, u32 word)
{
    u32 low = word & 1 ? r.y : r.x, high = word & 1 ? r.w : r.z;
    return word & 2 ? high : low;
}

DEVICE u32 dropout_half(u32 word, u32 i)
{
    return i & 8 ? word >> 16 : word & 0xffff;
}

/* The 16-bit draw of one entry; it is dropped iff the draw is below keep_below. */
DEVICE u32 dropout_draw(u64 seed, u32 sample, u32 h, u32 i, u32 j)
{
    struct philox r = philox_4x32_short(dropout_counter(sample, h, i, j), seed);
    return dropout_half(philox_word(r, dropout_word(j)), i);
}

#endif
