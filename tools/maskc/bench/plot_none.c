/* SPDX-License-Identifier: Apache-2.0 */
/* --plot where maskc was built without cairo. */
#include "tools/maskc/bench/bench.h"

int bench_plot(const struct bench_result *r, uint32_t count, const char *path, struct error *e)
{
    (void)r, (void)count;
    return error_set(
        e, ERROR_UNAVAILABLE,
        "%s: this maskc was built without cairo: install libcairo2-dev and build again", path);
}
