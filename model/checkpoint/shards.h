/* SPDX-License-Identifier: Apache-2.0 */
/* The files that hold a model's tensors: model.safetensors, or those that model.safetensors.index.json
   names. They stay mapped; tensors lie in them unaligned, in whatever dtypes their writers know. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/file.h"
#include "masks/safetensors.h"

struct shard {
    char *path;
    struct file file;
    struct safetensors tensors; /* into the file */
};

struct shards {
    struct shard *shard;
    uint32_t count, capacity;
};

/* Opens all into an empty list; what was opened before a failure stays in it, too. */
int shards_open(struct shards *list, const char *folder, struct error *e);
/* Lets go of the pages that were read: they come back when they are read again. */
void shards_release(const struct shards *list);
void shards_finish(struct shards *list); /* a zeroed one is fine */
