/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks by MPI, a plug-in: its own shared object, so that maskbert needs no MPI. It links masks/base/error.c and the
   system's MPI, nothing of the program. */
#pragma once
#include "model/comm/comm.h"
#include <mpi.h>
#include <stdbool.h>

/* Watches the other ranks from a thread of its own. Where one is lost, its process gone or silent for WATCH_SECONDS, the
   lowest of the rest prints a line that names it, and all of them end with exit code 1. */
enum { WATCH_SECONDS = 20 };
struct watch;
/* All ranks at once. Uses its own duplicate of the communicator. */
int watch_begin(MPI_Comm all, struct watch **ret, struct error *e);
/* After the last use of the ranks, which all of them have reached. */
void watch_end(struct watch *w);

int mpi_fail(struct error *e, const char *what, int code); /* -1 */
