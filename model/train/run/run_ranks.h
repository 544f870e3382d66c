/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement of the ranks of a run. Rank 0 writes; the others read its files, so RUN and DATA must be in folders that
   all see. With one rank nothing is compared. */
#pragma once
#include "model/train/run/run_setup.h"

const struct comm *run_comm(const struct run *r);
/* The rank that writes. */
bool run_is_first(const struct run *r);

/* Sets *ret if there is a run to continue, as rank 0 sees it. */
int run_ranks_go_on(const struct run *r, bool *ret, struct error *e);
/* Compares r->json with rank 0's. All ranks use rank 0's `snap_threads`. */
int run_ranks_compare(struct run *r, struct error *e);
/* Fails if a rank has another step or other parameters than rank 0: at the start of a run, or before it saves (`saves`). With
   --zero, too, since only moments are divided among ranks. */
int run_ranks_check(const struct run *r, bool saves, struct error *e);
/* On GPUs, NCCL sums the ranks' arrays from here on. */
int run_ranks_use_nccl(struct run *r, struct error *e);
/* The run's time as rank 0 has it; *stop: any rank was asked to stop. */
int run_ranks_time(struct run *r, bool *stop, struct error *e);
