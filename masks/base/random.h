/* SPDX-License-Identifier: Apache-2.0 */
/* The draws behind the random primitives: integers from Philox4x32-10, the same on every machine. masks/README.md
   defines key and counter. */
#pragma once
#include <stdint.h>

/* Salmon et al. 2011, Philox4x32 with 10 rounds. */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret[4]);

enum random_stream { STREAM_CELLS = 1, STREAM_KEYS = 2, STREAM_GLOBALS = 3 };

/* A sequence of 64-bit draws for one (seed, stream, row, part). Draw k is words 2 (k mod 2) (low
   half) and 2 (k mod 2) + 1 (high half) of Philox with counter (k div 2, row, part, stream) and key
   (low half of seed, high half of seed). */
struct draws {
    uint32_t key[2], counter[4], word[4];
    uint64_t next; /* k */
};

struct draws draws_begin(uint64_t seed, enum random_stream stream, uint32_t row, uint32_t part);
uint64_t draws_next(struct draws *d);
uint32_t draws_below(struct draws *d, uint32_t n); /* floor(draw * n / 2^64) */

/* Gaps between hits of probability p, 0 < p <= 1/2. survive[k] is (1 - p)^(2^k) in units of 2^-64, each the
   square of the one before, rounded down. */
enum { GAPS_STEPS = 21 };
struct gaps {
    uint64_t survive[GAPS_STEPS];
    uint32_t steps; /* survive[steps ..] is zero */
    int64_t
        part; /* keys that share a sequence of draws: the least power of two with 64 expected hits */
};
struct gaps gaps_new(double p);

/* The greatest g < 2^21 with draw < (1 - p)^g; powers are multiplied from the highest down and rounded down. */
uint32_t gaps_draw(const struct gaps *g, struct draws *d);

/* The first k distinct values below n of the sequence, sorted, in ret[k]; for k <= n / 2, so that
   few draws repeat. */
void draws_distinct(struct draws *d, uint32_t k, uint32_t n, uint32_t *ret);
