/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to nvdisasm's text of an entry. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mutation {
    MUTATE_BARRIER,    /* BAR.SYNC becomes NOP */
    MUTATE_COPY_WAIT,  /* DEPBAR becomes NOP */
    MUTATE_SCOREBOARD, /* the control code waits for none */
    MUTATE_GUARD,      /* @P0 becomes @!P0, or the other way around */
    MUTATE_REGISTER,   /* one of the instruction's registers becomes the next one */
    /* of sm_90a */
    MUTATE_FENCE,     /* FENCE.VIEW or WARPGROUP.ARRIVE becomes NOP */
    MUTATE_ARRIVAL,   /* SYNCS.ARRIVE becomes NOP */
    MUTATE_PHASE,     /* SYNCS.PHASECHK always finds its phase ended */
    MUTATE_BULK,      /* a bulk copy, its commit or an initialisation becomes NOP */
    MUTATE_TRANSPOSE, /* a second operand of HGMMA is no longer transposed */
};

struct line {
    const char *at;   /* the instruction in the file's text, behind its address */
    const char *code; /* the 16 hexadecimal digits of its control code */
    uint32_t length;  /* of the instruction, up to its ; */
    bool ran;
    bool needed; /* its wait for a scoreboard, or the barrier that it is */
};

struct listing {
    char entry[48];
    uint32_t file, count;
    struct line *line;
};

/* The entry's instructions, which point into `text`; false: the text has no such entry. */
bool listing_find(struct listing *ret, const char *text, const char *entry);
void listing_finish(struct listing *l);

/* Whether such a change can be made to it. */
bool mutate_can(const struct line *l, enum mutation kind);

/* The whole text with the change, freed by the caller; `which` chooses among registers. `name` says what was
   done. */
char *mutate(const char *text, const struct line *l, enum mutation kind, uint32_t which,
             char *name, size_t capacity);
