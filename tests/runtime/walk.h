/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a read artifact's tables as a kernel does, and ends the program where a step would leave a
   table or the mask. Written apart from the reader's checks, to judge them. */
#pragma once
#include "runtime/artifact/artifact.h"

void walk_artifact(const struct artifact *a);
