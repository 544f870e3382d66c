/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of units that NVRTC compiled before, by text, target and compiler (known.txt): equal text has equal figures. A
   32nd of the units is compiled again; if one of these differs, the compiler is another one and no stored figure is used. */
#pragma once
#include "runtime/compile/compile.h"

struct budget_known;

/* Never null; a file that is not there knows nothing. A line that is no figure ends the program. */
struct budget_known *budget_known_open(const char *path);
void budget_known_destroy(struct budget_known *k);

/* Unit `unit` of the source, from 0 on. */
struct cache_key budget_known_key(const struct source *s, uint32_t unit,
                                  const struct target *t);

/* The unit's kernels; no image. False: it is to be compiled. */
bool budget_known_take(const struct budget_known *k, struct cache_key key, struct binary *ret);
/* Compares a compiled unit with its known figures and records it. Safe to call from several threads. */
void budget_known_give(struct budget_known *k, struct cache_key key, const struct binary *made);

bool budget_known_is_wrong(
    const struct budget_known *k); /* something given was known otherwise */
uint32_t budget_known_news(const struct budget_known *k); /* units given that were not known */
/* Replaces the file with the recorded units. */
int budget_known_write(const struct budget_known *k, const char *path, struct error *e);
