/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a launcher that starts processes without MPI, as torchrun does. The first one has mpirun start the same command
   for as many ranks, the others wait for its end: all have one fate and one exit code. Processes of one machine only. */
#pragma once
#include "masks/base/error.h"
#include <stdint.h>

struct relaunch {
    const char *launcher;
    uint32_t rank, size;
    const char *group; /* a text that these processes share, and no others of this machine */
};

/* *ret_code: the exit code of mpirun. -1: it was not started, or one of the processes is gone. */
int relaunch(const struct relaunch *r, int *ret_code, struct error *e);
