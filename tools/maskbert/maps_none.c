/* SPDX-License-Identifier: Apache-2.0 */
/* In place of maps.c where the build has no cairo. */
#include "tools/maskbert/maps.h"

int maps_draw(const struct maps *m, const char *path, struct error *e)
{
    (void)m;
    return error_set(
        e, ERROR_UNAVAILABLE,
        "%s: this maskbert was built without cairo and draws no pictures; install cairo "
        "(Debian: libcairo2-dev) and build again",
        path);
}
