/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "model/data/prepare.h"
#include "tools/maskbert/options.h"

/* Prints the statistics of the data to stdout: a table, with --stats a histogram and the entropy, with --json all of
   it. */
void prep_report(const struct options *o, const struct prepare_options *p,
                 const struct prepare_stats *s);
