/* SPDX-License-Identifier: Apache-2.0 */
/* Bank conflicts. The lanes of a warp run one after the other here, so what they ask of shared
   memory is kept until they meet; then the k-th accesses of its lanes at one place of the text are
   taken as one request, and the wavefronts that the banks need for it are counted. */
#pragma once
#include "block.h"

enum {
    BANKS = 32,
    MAX_TIMES = 640
}; /* times: that a lane comes by a place before the warp meets */

/* One place of the text, one warp. */
struct recent {
    uint32_t most;             /* times that some lane came by */
    uint16_t times[WARP];      /* of each lane */
    uint32_t lanes[MAX_TIMES]; /* of [t], bit l: lane l came > t times */
    uint32_t offset[MAX_TIMES][WARP];
};

struct lately {
    struct recent at[EMULATION_MAX_SITES];
};

static void lately_init(struct lately *l)
{
    for (uint32_t k = 0; k < EMULATION_MAX_SITES; k++) {
        l->at[k].most = 0;
        memset(l->at[k].times, 0, sizeof l->at[k].times);
        memset(l->at[k].lanes, 0, sizeof l->at[k].lanes);
    }
}

static bool is_site(const struct emulation_site *s, uint32_t bytes,
                    enum emulation_access access, struct place at)
{
    return s->line == at.line && s->bytes == bytes && s->access == access &&
           !strncmp(s->function, at.function, sizeof s->function - 1);
}

/* Null where there are too many. */
static struct emulation_site *find_site(struct emulation_banks *b, uint32_t bytes,
                                        enum emulation_access access, struct place at)
{
    for (uint32_t k = 0; k < b->count; k++)
        if (is_site(&b->site[k], bytes, access, at))
            return &b->site[k];
    if (b->count == EMULATION_MAX_SITES)
        return NULL;
    struct emulation_site *s = &b->site[b->count++];
    memset(s, 0, sizeof *s);
    strncpy(s->function, at.function, sizeof s->function - 1);
    s->line = at.line;
    s->bytes = bytes;
    s->access = access;
    return s;
}

static __attribute__((noinline)) void note_access(uint32_t offset, uint32_t bytes,
                                                  enum emulation_access access, struct place at)
{
    struct block *b = the_block;
    struct emulation_banks *banks = b->launch->banks;
    struct emulation_site *site = find_site(banks, bytes, access, at);
    uint32_t lane = b->face.current % WARP;
    struct recent *r = site ? &b->lately[b->face.current / WARP].at[site - banks->site] : NULL;
    if (!r || r->times[lane] == MAX_TIMES) {
        banks->missed++;
        return;
    }
    uint32_t time = r->times[lane]++;
    r->lanes[time] |= 1u << lane;
    r->offset[time][lane] = offset;
    r->most = r->times[lane] > r->most ? r->times[lane] : r->most;
}

/* Turns for the lanes begin .. end - 1 of a request: different words of a bank wait for each
   other, the same word is read once. */
static uint32_t count_wavefronts(const struct recent *r, uint32_t time, uint32_t bytes,
                                 uint32_t begin, uint32_t end)
{
    uint32_t words[BANKS][WARP], count[BANKS] = {0}, most = 0;
    for (uint32_t lane = begin; lane < end; lane++) {
        uint32_t word = r->offset[time][lane] / 4;
        for (uint32_t k = 0; k < bytes / 4 && r->lanes[time] >> lane & 1; k++, word++) {
            uint32_t bank = word % BANKS, at = 0;
            while (at < count[bank] && words[bank][at] != word)
                at++;
            if (at == count[bank])
                words[bank][count[bank]++] = word;
            most = count[bank] > most ? count[bank] : most;
        }
    }
    return most;
}

static void count_request(struct emulation_site *s, const struct recent *r, uint32_t time)
{
    const uint32_t together = WARP * 4 / s->bytes; /* lanes served at once */
    s->requests++;
    for (uint32_t lane = 0; lane < WARP; lane += together) {
        uint32_t wavefronts = count_wavefronts(r, time, s->bytes, lane, lane + together);
        s->wavefronts += wavefronts;
        s->least += wavefronts > 0;
    }
}

/* The warp has met: what its lanes asked for since they last did. */
static void count_warp(struct block *b, uint32_t warp)
{
    struct emulation_banks *banks = b->launch->banks;
    for (uint32_t k = 0; b->lately && k < banks->count; k++) {
        struct recent *r = &b->lately[warp].at[k];
        if (!r->most)
            continue;
        for (uint32_t time = 0; time < r->most; time++) {
            count_request(&banks->site[k], r, time);
            r->lanes[time] = 0;
        }
        r->most = 0;
        memset(r->times, 0, sizeof r->times);
    }
}
