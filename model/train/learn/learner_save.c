/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a learned mask in a run's folder. */
#include "model/checkpoint/json.h"
#include "model/mask/model_mask.h"
#include "model/train/learn/learner.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int write_config(const char *folder, const struct model_config *c, struct error *e)
{
    char *text = config_write(c, c->dtype);
    int r = json_write_line(folder, "config.json", text, e);
    free(text);
    return r;
}

/* A mask is stated in one form or the other; what config.json no longer names goes. */
static void remove_other(const char *folder, const char *name)
{
    char *path = path_join(folder, strcmp(name, "mask.npy") ? "mask.npy" : "mask.mask");
    unlink(path);
    free(path);
}

static int save_mask(const struct mask *m, const char *folder, struct error *e)
{
    struct model_config c = {0};
    int r = config_read(folder, &c, e);
    if (r == 0)
        r = model_mask_save(folder, m, "softmax", &c, e);
    if (r == 0)
        r = write_config(folder, &c, e);
    if (r == 0)
        remove_other(folder, json_string_value(
                                 json_object_get(json_object_get(c.json, "maskc"), "mask")));
    config_finish(&c);
    return r;
}

int learner_save(const struct learner *l, const char *folder, struct error *e)
{
    const float *alpha = learner_alpha(l, e);
    if (!alpha)
        return -1;
    char *path = path_join(folder, "alpha.safetensors");
    int r = alpha_write(path, &l->shape, alpha, e);
    free(path);
    if (r < 0)
        return -1;
    if (l->fixed)
        return save_mask(l->fixed, folder, e);
    struct mask *m = alpha_mask(&l->shape, alpha);
    r = save_mask(m, folder, e);
    mask_destroy(m);
    return r;
}

int learner_read_fixed(struct learner *l, const char *folder, struct error *e)
{
    struct model_config c = {0};
    bool changed;
    if (config_read(folder, &c, e) < 0)
        return -1;
    l->fixed = model_mask_stored(folder, &c, &changed, e);
    config_finish(&c);
    return l->fixed ? 0 : -1;
}
