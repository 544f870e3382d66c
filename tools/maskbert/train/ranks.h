/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that a launcher started, as ranks of a run. */
#pragma once
#include "model/train/run/run.h"
#include "tools/maskbert/options.h"

struct ranks {
    const struct comm *comm;
    bool launched;   /* by a launcher of ranks, even of one */
    bool nccl_alone; /* one rank that has a rendezvous: NCCL is to sum nevertheless */
    char device[16]; /* "cuda:N", this rank's own; "": as the command gives it */
    bool ended;      /* mpirun has run the command, and ended with this code */
    int code;
};

/* mpirun's, srun's or torchrun's variables say how many there are; --ranks 1 ignores them. Joins the others by MPI; where the launcher is
   not MPI's, ranks on CPUs have mpirun started in its place (relaunch.h), and ranks on GPUs meet by TCP. */
int ranks_begin(const struct options *o, struct ranks *ret, struct error *e);
/* Sets the fields of a run that ranks decide. */
void ranks_set(const struct ranks *r, struct run_options *o);
/* Prints the error where this is the first rank; returns its exit code. */
int ranks_fail(const struct ranks *r, const struct error *e);
/* Messages of a run for people: only on the first rank. */
const struct run_watch *ranks_watch(const struct ranks *r);
bool ranks_first(const struct ranks *r);
void ranks_finish(const struct ranks *r);
