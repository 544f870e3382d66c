/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the CUDA families. */
#pragma once
#include "gen/family/family.h"
#include "templates/cuda/common/sizes.h"

struct phase cuda_phase(const char *entry, enum abi_over over, uint32_t threads,
                        uint32_t shared_bytes);

/* The blocks of a family whose blocks work on one item each. */
struct cuda_blocks {
    uint32_t threads;
    uint32_t forward_bytes, backward_bytes, bias_bytes; /* of shared memory */
    bool splits;                                        /* items may be split */
    uint32_t waves;                                     /* of struct phase */
};

/* The phases of such a family. */
void cuda_launch(const struct cuda_blocks *b, const struct kernel_request *r,
                 enum family_pass pass, struct launch_record *ret);

/* Adapts the rates of a measured machine to kernels with fewer warps on a processor; `warps` is the measured number over
   theirs. On an H100, D = 128 has half of the warps of D = 64 forward, two thirds backward. An entry of a dense mask costs
   2.2 and 2.0 times as much there, one of longformer(64,2) 2.4 and 2.3 times. */
void cuda_slow_down(struct machine *m, enum machine_pass pass, double warps);

/* Last in the backward pass: dK and dV of query heads that share a key head are added up. */
void cuda_add_key_heads(uint32_t threads, const struct kernel_request *r,
                        struct launch_record *ret);

/* Workspace of sparsegen: a score for each column and row of a row block. */
void cuda_add_scratch(const struct kernel_request *r, struct launch_record *ret);

/* Blocks with so many bytes of shared memory that a processor holds, 1 at least. A processor has a KiB more than a block may ask
   for, and takes a KiB for each. */
uint32_t cuda_blocks_that_fit(const struct target *t, uint32_t shared_bytes);

/* Shared memory of every simt entry: three tiles of 32 rows and 32 sums (templates/cuda/simt/layout.h). */
uint32_t simt_shared_bytes(uint32_t head_dim);

/* The numbers that all CUDA templates read. The emitter adds more to their enum. */
void cuda_numbers(const struct target *t, const struct kernel_config *c, struct text *out);
