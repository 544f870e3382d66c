/* SPDX-License-Identifier: Apache-2.0 */
/* In place of picture.c where the build has no cairo. */
#include "tools/maskbert/importance/importance.h"

int importance_draw(const struct importance *p, const struct mean_importance *m,
                    const char *path, struct error *e)
{
    (void)p, (void)m;
    return error_set(
        e, ERROR_UNAVAILABLE,
        "%s: this maskbert was built without cairo and draws no pictures; install cairo "
        "(Debian: libcairo2-dev) and build again",
        path);
}
