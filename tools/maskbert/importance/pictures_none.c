/* SPDX-License-Identifier: Apache-2.0 */
/* In place of overview.c and film.c where the build has no cairo. */
#include "tools/maskbert/importance/film.h"
#include "tools/maskbert/importance/importance.h"

static int cannot(const char *path, struct error *e)
{
    return error_set(
        e, ERROR_UNAVAILABLE,
        "%s: this maskbert was built without cairo and draws no pictures; install cairo "
        "(Debian: libcairo2-dev) and build again",
        path);
}

int film_draw(const struct mask_history *h, const char *path, struct error *e)
{
    (void)h;
    return cannot(path, e);
}

int importance_draw(const struct importance *p, const struct mean_importance *m,
                    const char *path, struct error *e)
{
    (void)p, (void)m;
    return cannot(path, e);
}
