/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert convert: reads and checks everything before it writes the new folder. */
#include "masks/base/folder.h"
#include "model/checkpoint/init.h"
#include "model/checkpoint/save.h"
#include "model/kernels/encoder_attention.h"
#include "model/mask/model_mask.h"
#include "tools/maskbert/command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void notes_print(const struct weights *w, const char *folder)
{
    for (uint32_t k = 0; k < w->n_notes; k++)
        fprintf(stderr, "maskbert: %s: %s\n", folder, w->note[k]);
}

static bool is_same_folder(const char *a, const char *b)
{
    char *x = realpath(a, NULL), *y = realpath(b, NULL);
    bool same = x && y && !strcmp(x, y);
    free(x);
    free(y);
    return same;
}

static int check_options(const struct options *o, struct error *e)
{
    struct encoder_transform ignored;
    if (!o->output)
        return error_set(e, ERROR_INPUT, "convert: -o DIR is expected");
    if (is_same_folder(o->argument, o->output))
        return error_set(e, ERROR_INPUT, "%s: a folder other than the model's is expected",
                         o->output);
    if (o->transform && !o->mask)
        return error_set(e, ERROR_INPUT,
                         "--transform is stored with a mask: --mask is expected");
    if (o->transform && encoder_transform_parse(o->transform, &ignored, e) < 0)
        return -1;
    return o->positions > 1 << 20
               ? error_set(e, ERROR_INPUT, "--positions %u: at most %d", o->positions, 1 << 20)
               : 0;
}

static int read_element(const struct options *o, const struct weights *w, enum element *ret,
                        struct error *e)
{
    *ret = weights_element(w);
    if (o->dtype && (!element_parse(o->dtype, ret) || *ret == ELEMENT_F64))
        return error_set(e, ERROR_INPUT, "--dtype %s: f32, bf16 or f16 is expected", o->dtype);
    return 0;
}

/* The model's own mask is copied, but not where the number of positions changes. */
static int write_mask(const struct options *o, const char *folder, const struct mask *m,
                      struct model_config *c, struct error *e)
{
    if (m)
        return model_mask_save(folder, m, o->transform, c, e);
    return c->mask ? model_copy_file(o->argument, folder, c->mask, e) : 0;
}

static int write_all(const struct options *o, struct model_config *c, struct weights *w,
                     enum element element, struct error *e)
{
    static const char *const replaced[] = {NULL};
    if (model_check_target(o->output, o->argument, replaced, e) < 0)
        return -1;
    struct folder f = {0};
    struct mask *m = o->mask ? model_mask(o->mask, c, e) : NULL;
    int r = o->mask && !m ? -1 : folder_begin(o->output, &f, e);
    if (r == 0)
        r = write_mask(o, f.aside, m, c, e);
    if (r == 0)
        r = model_copy_rest(o->argument, f.aside, o->positions, e);
    if (r == 0)
        r = model_save(f.aside, c, w, element, e);
    mask_destroy(m);
    return folder_end(&f, r, e);
}

static int convert(const struct options *o, struct model_config *c, struct weights *w,
                   struct error *e)
{
    enum element element;
    if (read_element(o, w, &element, e) < 0)
        return -1;
    if (o->positions && c->mask && !o->mask)
        return error_set(e, ERROR_INPUT, "%s has a mask: with --positions, --mask is expected",
                         o->argument);
    weights_initialise(w, c, c->initializer_range, o->seed);
    if (o->positions && o->positions != c->positions)
        model_resize_positions(c, w, o->positions);
    return write_all(o, c, w, element, e);
}

int command_convert(const struct options *o)
{
    struct error e = {0};
    struct model_config c = {0};
    struct weights w = {0};
    int r = check_options(o, &e);
    if (r == 0)
        r = config_read(o->argument, &c, &e);
    if (r == 0)
        r = weights_read(o->argument, &c, &w, &e);
    if (r == 0)
        r = convert(o, &c, &w, &e);
    if (r == 0)
        notes_print(&w, o->argument);
    weights_finish(&w);
    config_finish(&c);
    return r < 0 ? command_fail(&e) : 0;
}
