/* SPDX-License-Identifier: Apache-2.0 */
/* Work of ranks by NCCL, whose results are checked on every rank. */
#pragma once
#include "model/comm/comm.h"

int sum_arrays(const struct comm *c, struct error *e);  /* of several sizes, in two halves */
int sum_twice(const struct comm *c, struct error *e);   /* 200 numbers */
int sum_numbers(const struct comm *c, struct error *e); /* four ranks' numbers of the host */
int move_arrays(const struct comm *c, struct error *e);
int sum_and_move(const struct comm *c, struct error *e); /* 200 numbers, then arrays */
