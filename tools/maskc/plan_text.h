/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a plan for a terminal, as `plan` and `info` print it. */
#pragma once
#include "masks/base/text.h"
#include "tools/maskc/options.h"
#include <jansson.h>

/* Appends the plan, given as the text and the JSON that a plan prints, folded to the terminal's width. A plan of many
   distinct masks is summarised: groups of heads whose masks are visited by the same lowerings. --head H selects the masks of
   one head, --wide prints the text as it is. -1 with *e set if there is no such head. */
int plan_text(const char *text, const json_t *plan, const struct options *o, struct text *out,
              struct error *e);
