/* SPDX-License-Identifier: Apache-2.0 */
/* In place of curves.c where the build has no cairo. */
#include "tools/maskbert/plot/curves.h"

int curves_draw(const struct curves *c, const char *path, struct error *e)
{
    (void)c;
    return error_set(
        e, ERROR_UNAVAILABLE,
        "%s: this maskbert was built without cairo and draws no pictures; install cairo "
        "(Debian: libcairo2-dev) and build again",
        path);
}
