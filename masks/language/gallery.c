/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the gallery. tests/masks/gallery_test.c holds them against the embedded files. */
#include "masks/load.h"
#include <stddef.h>

static const char *const names[] = {
    "star",    "logsparse",     "strided",     "fixed",       "longformer",
    "bigbird", "fairseq-fixed", "blockbert-2", "blockbert-3", "dam-s-example",
    "dense",   "causal",        NULL,
};

const char *const *mask_gallery_names(void)
{
    return names;
}
