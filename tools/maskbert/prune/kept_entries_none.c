/* SPDX-License-Identifier: Apache-2.0 */
/* In place of kept_entries.c where the build has no cairo. */
#include "tools/maskbert/prune/prune.h"

int prune_check_picture(const struct prune *p, struct error *e)
{
    if (!p->o->picture)
        return 0;
    return error_set(
        e, ERROR_UNAVAILABLE,
        "%s: this maskbert was built without cairo and draws no pictures; install cairo "
        "(Debian: libcairo2-dev) and build again",
        p->o->picture);
}

int prune_draw(const struct prune *p, struct error *e)
{
    return prune_check_picture(p, e);
}
