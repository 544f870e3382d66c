/* SPDX-License-Identifier: Apache-2.0 */
/* In place of map_grid.c where the build has no cairo. */
#include "tools/maskbert/attention/map_grid.h"

int map_grid_draw(const struct map_grid *m, const char *path, struct error *e)
{
    (void)m;
    return error_set(
        e, ERROR_UNAVAILABLE,
        "%s: this maskbert was built without cairo and draws no pictures; install cairo "
        "(Debian: libcairo2-dev) and build again",
        path);
}
