/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011) and
   the dropout draw made of it, shared by the C and the CUDA templates. One call serves the eight
   entries {g, g + 8} x {2t, 2t + 1, 2t + 8, 2t + 9} of an aligned 16 x 16 tile, so that kernels of
   either orientation need few calls. templates/README.md holds test vectors. */
#ifndef MASKC_PHILOX_H
#define MASKC_PHILOX_H

#ifndef DEV
#define DEV static inline
#endif

struct philox {
    u32 word[4];
};

enum { PHILOX_ROUNDS = 10 };
#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u
#define PHILOX_W1 0xBB67AE85u

DEV struct philox philox_4x32(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1)
{
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        u64 p0 = (u64)PHILOX_M0 * c0, p1 = (u64)PHILOX_M1 * c2;
        c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
        c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c1 = (u32)p1;
        c3 = (u32)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    struct philox ret = {{c0, c1, c2, c3}};
    return ret;
}

/* The call that serves entry (i, j), and the entry's place in what it returns. */
DEV u32 dropout_counter0(u32 i)
{
    return i / 16 * 8 + i % 8;
}

DEV u32 dropout_counter1(u32 j)
{
    return j / 16 * 4 + j % 8 / 2;
}

DEV u32 dropout_pick(struct philox x, u32 i, u32 j)
{
    u32 word = x.word[2 * (j & 1) + ((j >> 3) & 1)];
    return (i >> 3) & 1 ? word >> 16 : word & 0xffff;
}

/* 16 bits for query i, key j of sequence b, head h: the entry is dropped iff draw < keep_below. */
DEV u32 dropout_draw(u64 seed, u32 b, u32 h, u32 i, u32 j)
{
    return dropout_pick(philox_4x32(dropout_counter0(i), dropout_counter1(j), b, h, (u32)seed,
                                    (u32)(seed >> 32)),
                        i, j);
}

#endif
