/* SPDX-License-Identifier: Apache-2.0 */
/* Files as sources of a reader. */
#pragma once
#include "masks/base/file.h"
#include "model/data/tasks/rows.h"

struct loaded_source {
    struct task_source from;
    struct file file; /* zeroed where it was unpacked */
    uint8_t *unpacked;
};

/* A path that ends in .gz or .zst is unpacked. It must outlive the source. */
int source_load(const char *path, struct loaded_source *ret, struct error *e);
void source_unload(struct loaded_source *s); /* a zeroed one is fine */
