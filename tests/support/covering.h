/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the covering tests of all devices: the factors that a launch has whatever it runs on, rows of
   values as masks, features and problems, and the tests' options. */
#pragma once
#include "tests/support/pairs.h"
#include "tools/reference/check.h"

/* Two values each but where it is said; a test adds factors of its own from OWN on. */
enum covering_factor {
    KERNEL, /* the test's: a family, or a target */
    TRANSFORM,
    BIAS, /* 3: enum abi_bias */
    DROPOUT,
    PASS,   /* 1: forward alone */
    BATCH,  /* 4: whole, ragged, packed, packed ragged */
    LAYERS, /* the second has the masks of two heads swapped */
    LAYOUT, /* 3 */
    CROP,   /* to three quarters of the mask */
    SCALE,  /* 1: below zero */
    DIM,    /* the test's */
    MASK,   /* the test's: of head 0 */
    OWN
};

struct covering {
    struct pairs pairs; /* covering_start fills all but what is the test's */
    uint64_t seed;
    uint32_t part, parts; /* of the full product; 0 parts: the covering array */
    bool list;            /* each row is to be named */
    bool orders;          /* CUDA: each row in two orders of threads, not every third */
    bool few;             /* CPUs: an array of each value, not of each pair */
    bool update;          /* CUDA: the list of rows that ran right is to be written */
};

/* --seed S, --list, --orders, --few, --update, --full [K/N]. 0, or 2 with the usage of `name` printed. */
int covering_options(struct covering *c, const char *name, int argc, char **argv);
/* `factors` with two values each, or the numbers above. */
void covering_start(struct covering *c, uint32_t factors);
/* `run`s each row of this part of the full product that is allowed, every `parts`-th of all; there must be one. */
void covering_full(struct covering *c, void *context,
                   void (*run)(void *context, const struct pairs_row *r));

/* Heads 0 and 1 from expressions, the other way around on a second layer. */
struct mask *covering_mask(const struct pairs_row *r, const char *first, const char *second,
                           uint32_t n);
/* One layer, whose heads alternate between two expressions. */
struct mask *covering_heads(const char *first, const char *second, uint32_t heads, uint32_t n);
struct kernel_request covering_request(const struct pairs_row *r, enum abi_dtype dtype,
                                       uint32_t head_dim);
enum { COVERING_BATCH = 32 };
/* A batch of two. Very short sequences are more: what 16 bits may lose is held to what the plain way loses, and over a
   few entries alone chance would decide that. `lengths` are filled, and used where the batch is ragged or packed. */
struct problem covering_problem(const struct pairs_row *r, const struct mask *m,
                                const struct kernel_request *f,
                                int32_t lengths[COVERING_BATCH]);
/* Writes the row's settings, after the kernel's name and the masks' names and length. */
void covering_name(const struct pairs_row *r, const struct kernel_request *f,
                   const char *kernel, const char *masks, char *ret, size_t storage);
