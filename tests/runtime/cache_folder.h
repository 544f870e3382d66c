/* SPDX-License-Identifier: Apache-2.0 */
/* A cache in a folder of its own, and contents to put there that are known by a number. */
#pragma once
#include "runtime/base/cache.h"

/* A new one, empty. */
char *cache_folder_new(void);
/* With all that is in it; frees the path. */
void cache_folder_remove(char *path);
/* To be freed. */
char *cache_folder_path(const char *folder, const char *name);

/* Content k: recognisable, of its own length. */
struct cache_key cache_content_key(uint32_t k);
void cache_content_put(struct cache *c, uint32_t k);
/* True for a hit, which must be the right bytes. */
bool cache_content_hit(struct cache *c, uint32_t k);
/* Number of entries. */
uint32_t cache_content_count(struct cache *c);
