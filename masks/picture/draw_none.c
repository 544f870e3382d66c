/* SPDX-License-Identifier: Apache-2.0 */
/* In place of draw.c where the build has no cairo. */
#include "masks/picture/picture.h"

int mask_draw(const struct mask *m, const char *path, struct error *e)
{
    (void)m;
    return error_set(
        e, ERROR_UNAVAILABLE,
        "%s: this maskc was built without cairo and draws no pictures; install cairo "
        "(Debian: libcairo2-dev) and build again",
        path);
}
