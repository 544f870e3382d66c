/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks by MPI, out of the plug-in of model/comm/mpi/. */
#pragma once
#include "model/comm/comm.h"
#include <stdbool.h>

/* Loads the plug-in from the first of the files that is there, and joins the other ranks. *ret_found: one is there. Null
   with *e set. */
const struct comm *comm_mpi(const char *const *files, uint32_t count, bool *ret_found,
                            struct error *e);
