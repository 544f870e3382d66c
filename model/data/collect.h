/* SPDX-License-Identifier: Apache-2.0 */
/* The half of prep that ends in .tokens files: text, token ids, documents, shards. */
#pragma once
#include "model/data/prepare.h"

/* Writes the .tokens of both parts into `folder`, and fills *ret but what is about samples. `base` has what all
   headers share. */
int data_collect(const struct prepare_options *o, const char *folder,
                 const struct shard_header *base, struct prepare_stats *ret, struct error *e);
