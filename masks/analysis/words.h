/* SPDX-License-Identifier: Apache-2.0 */
/* Words that state a whole pattern: documents, a sink with a window, neighbourhoods in grids. */
#pragma once
#include "masks/analysis/phrase.h"

/* Adds the one term that is the pattern; false, and nothing is added, where no word is. */
bool words_say(struct phrase *p, const struct pattern *pattern);
