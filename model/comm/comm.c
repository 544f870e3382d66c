/* SPDX-License-Identifier: Apache-2.0 */
#include "model/comm/comm.h"
#include <inttypes.h>
#include <stddef.h>

int comm_agree(const struct comm *c, int result, struct error *e)
{
    /* How many failed, and the sum of their ranks: with one failure its rank. */
    uint64_t failed[] = {result < 0, result < 0 ? c->rank : 0};
    if (c->size == 1)
        return result;
    if (c->sum_u64(c, failed, 2, result < 0 ? NULL : e) < 0 || result < 0)
        return -1;
    if (!failed[0])
        return 0;
    return failed[0] == 1 ? error_set(e, ERROR_FALSE, "rank %" PRIu64 " failed", failed[1])
                          : error_set(e, ERROR_FALSE, "%" PRIu64 " ranks failed", failed[0]);
}
