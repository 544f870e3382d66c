/* SPDX-License-Identifier: Apache-2.0 */
#include "model/engine/encoder.h"

const char *engine_phase_name(enum engine_phase p)
{
    static const char *const names[PHASE_COUNT] = {
        [PHASE_EMBEDDINGS] = "embeddings",     [PHASE_PROJECTION] = "query, key, value",
        [PHASE_ATTENTION] = "attention",       [PHASE_OUTPUT] = "attention output",
        [PHASE_FEED_FORWARD] = "feed forward", [PHASE_NORMS] = "LayerNorm",
    };
    return names[p];
}

const char *engine_target(const struct engine *g)
{
    const char *target = g->encoder->backend->target;
    return target ? target : g->device;
}
