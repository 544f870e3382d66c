/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks by MPI, out of the plug-in of model/comm/mpi/. */
#pragma once
#include "model/comm/comm.h"

/* Loads the plug-in from the first of the files that is there, and joins the other ranks. Null with *e set. */
const struct comm *comm_mpi(const char *const *files, uint32_t count, struct error *e);
