/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a model that an engine's caller asks for. */
#pragma once
#include "model/engine/engine.h"

/* Where heads share their first half it comes with each of them. */
void parts_share(struct engine *g);
/* A head that is asked for has to be in the files: one with random weights would answer nonsense. A classifier or span of an unknown
   class may read other rows than those of the classes that are known. */
int parts_check(const char *folder, const struct engine *g, struct error *e);
