/* SPDX-License-Identifier: Apache-2.0 */
/* Importances from seeds, as attention of trained heads looks: a fall with distance, a preferred distance, first and
   last token, noise. */
#pragma once
#include "gen/snap/snap.h"

struct importance made_importance(uint32_t layers, uint32_t heads, uint32_t n, uint64_t seed);
/* A request for that share of dense's forward time on a row of the table of machines. */
struct snap_request made_request(const char *machine, double share);

/* What snap finds; a failure fails the test. Finished by snap_result_finish(). */
struct snap_result made_solution(const struct importance *p, const struct snap_request *r);
