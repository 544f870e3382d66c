/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache of compiled code: content-keyed files, written aside and renamed, so that
   processes may share it; an entry carries its key and a checksum and is rebuilt when they are
   wrong; the oldest entries go when the size limit is passed. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct cache;

/* `directory` null: $XDG_CACHE_HOME/maskc, else ~/.cache/maskc; "": no cache (a valid, empty one).
   $MASKC_CACHE_LIMIT is the size limit in bytes (512 MiB by default). A folder that cannot be made
   or written is not an error: it then is a cache that never hits; neither is one that every user
   may write to, which is not trusted with code. */
struct cache *cache_open(const char *directory);
void cache_close(struct cache *c);

struct cache_key {
    uint64_t low, high; /* XXH3-128 of everything that decides the result */
};
struct cache_key cache_key(const void *bytes, uint64_t size);

/* One thread of a process makes an entry: others that begin the same wait until it has ended, and find it. Every
   begin has its end; no lock is held in between. */
void cache_begin(struct cache *c, struct cache_key key);
void cache_end(struct cache *c, struct cache_key key);

bool cache_get(struct cache *c, struct cache_key key, uint8_t **ret, uint64_t *ret_size);
/* The entry that was used last of those whose key has the same higher half. */
bool cache_get_any(struct cache *c, struct cache_key key, uint8_t **ret, uint64_t *ret_size);
void cache_put(struct cache *c, struct cache_key key, const void *bytes, uint64_t size);

struct cache_entry {
    char name[40];
    uint64_t size;
    int64_t used;    /* last use, seconds since the epoch */
    int64_t used_ns; /* and their fraction */
};
const char *cache_directory(const struct cache *c);
struct cache_entry *cache_list(struct cache *c,
                               uint32_t *ret_count); /* newest first; caller frees */
uint32_t cache_clear(struct cache *c);               /* entries removed */
