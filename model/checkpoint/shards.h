/* SPDX-License-Identifier: Apache-2.0 */
/* The files that hold a model's tensors: model.safetensors, or those that model.safetensors.index.json names.
   They stay mapped. Tensors in them may be unaligned and of any dtype. */
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

/* Opens all files into an empty list. After a failure the list has those opened so far. */
int shards_open(struct shards *list, const char *folder, struct error *e);
/* Gives back the pages that were read; they return when read again. */
void shards_release(const struct shards *list);
void shards_finish(struct shards *list); /* a zeroed one is fine */
