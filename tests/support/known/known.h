/* SPDX-License-Identifier: Apache-2.0 */
/* Test cases that passed before. A case's key covers all that decides its result: the kernel file
   with its text, the compiler, the sources of the reference. A list of keys is kept next to the
   test. A case whose key is listed would have the same result and is skipped; every sixteenth case
   runs nonetheless. */
#pragma once
#include "runtime/base/cache.h"

enum { KNOWN_MOST = 1024, KNOWN_EVERY = 16 };

struct known {
    const char *name;        /* of the list, $MASKC_KNOWN/NAME.txt */
    bool update;             /* all cases run, and their keys are written */
    struct cache_key common; /* part of each key: what all cases have in common */
    uint32_t n_listed, n_asked, n_skipped;
    struct cache_key listed[KNOWN_MOST];
    struct cache_key asked[KNOWN_MOST]; /* to be written */
};

/* Reads the list. Every case runs where $MASKC_KNOWN is not set, where $MASKC_ALL_CASES is, with `update`, and without a list. */
void known_start(struct known *k, const char *name, struct cache_key common, bool update);
/* Whether this case, the next in the test's order, need not run. `key` is of what `common` has not. */
bool known_skips(struct known *k, struct cache_key key);
/* Call it last, with the result of the whole test; it returns that result. It prints how many cases did not run. With `update`, if no
   case failed, it writes the list, and returns 1 if it cannot. */
int known_finish(struct known *k, int failed);

/* Key of the contents of source files ($MASKC_SOURCE), as glob patterns from its top folder, ended by null. */
struct cache_key known_key_of_files(const char *const *patterns);
/* Combines two keys, in this order. */
struct cache_key known_key_join(struct cache_key a, struct cache_key b);
