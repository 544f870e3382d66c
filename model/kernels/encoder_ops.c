/* SPDX-License-Identifier: Apache-2.0 */
#include "model/kernels/encoder_ops.h"
#include "gen/emit/emit.h"
#include "gen/target.h"
#include "masks/base/memory.h"
#include "runtime/base/cache.h"
#include "runtime/compile/compile.h"
#include <string.h>

const char *const encoder_op_entries[ENCODER_OPS] = {
    [ENCODER_OP_EMBED] = "rows_embed",   [ENCODER_OP_NORM] = "rows_norm",
    [ENCODER_OP_FINISH] = "rows_finish", [ENCODER_OP_GATHER] = "rows_gather",
    [ENCODER_OP_MEAN] = "rows_mean",     [ENCODER_OP_ADD] = "rows_add",
    [ENCODER_OP_GLU] = "rows_glu",       [ENCODER_OP_ROTATE] = "rows_rotate",
};

static struct source *source_of(const struct encoder_ops_shape *s)
{
    const struct encoder_ops_features f = {(enum abi_dtype)s->dtype, s->hidden, s->trains};
    return encoder_ops_source(&f);
}

static int compile_for(const struct source *s, int ordinal, struct binary *ret, struct error *e)
{
    const char *name = machine_cuda_target(ordinal);
    const struct target *t = name ? target_find(name, e) : NULL;
    if (!t)
        return error_set(e, ERROR_UNAVAILABLE, "no target suits this GPU");
    struct cache *cache = cache_open(NULL);
    int r = compile_source(s, t, cache, ret, e);
    cache_close(cache);
    return r;
}

uint8_t *encoder_ops_image(const struct encoder_ops_shape *s, int ordinal, struct error *e)
{
    struct source *source = source_of(s);
    struct binary code = {0};
    int r = compile_for(source, ordinal, &code, e);
    source_destroy(source);
    if (r < 0)
        return NULL;
    /* They are one unit. */
    uint8_t *image = memory_new(code.image[0].size + 1, 1);
    memcpy(image, code.image[0].bytes, code.image[0].size);
    binary_finish(&code);
    return image;
}

char *encoder_ops_text(const struct encoder_ops_shape *s)
{
    struct source *source = source_of(s);
    struct text flat = {0};
    source_flatten(source, &flat);
    source_destroy(source);
    return text_take(&flat);
}
