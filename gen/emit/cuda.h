/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA targets add to emission: their launch record. And the emitted files as one text. */
#pragma once
#include "gen/emit/emit.h"

/* Dynamic shared memory of every entry: three tiles of 32 rows and 32 sums
   (templates/cuda/simt/layout.h). */
uint32_t cuda_shared_bytes(uint32_t head_dim);

/* The lines of plan.h for the short-sequence kernels; none where they take no pass. */
void cuda_add_resident(const struct target *t, const struct kernel_config *c, struct text *out);

/* The lines of plan.h for the streaming kernels of the half dtypes. */
void cuda_add_tiled(const struct target *t, const struct kernel_config *c, struct text *out);

/* The files that hold the entries of both passes, a kernel each; those that take longest to compile come
   first. */
uint32_t cuda_entry_files(const struct target *t, const struct kernel_config *c,
                          const char *ret[SOURCE_MAX_UNITS]);

void cuda_launch(const struct target *t, const struct kernel_config *c,
                 struct launch_record *ret);

/* files[0] with every #include "FILE" replaced by that file, the first time, and by nothing
   after; appended to out. Names that the source has no file for stay as they are. */
void source_flatten(const struct source *s, struct text *out);
