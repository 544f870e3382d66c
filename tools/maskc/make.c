/* SPDX-License-Identifier: Apache-2.0 */
/* maskc make: a mask into a file, as text where it can be stated exactly or as dense bytes. */
#include "masks/analysis/state.h"
#include "masks/base/file.h"
#include "masks/write.h"
#include "tools/maskc/command.h"
#include <stddef.h>

static int write_state(const struct mask *m, const char *path, struct error *e)
{
    struct text text = {0};
    int r = mask_state(m, &text, e);
    if (r == 0)
        r = file_write(path, text_get(&text), text.length, e);
    text_finish(&text);
    return r;
}

static const struct {
    const char *suffix;
    int (*write)(const struct mask *m, const char *path, struct error *e);
} writers[] = {
    {".mask", write_state},
    {".npy", mask_write_npy},
    {".safetensors", mask_write_safetensors},
};

int command_write_mask(const struct mask *m, const char *path, struct error *e)
{
    for (size_t k = 0; k < sizeof writers / sizeof *writers; k++)
        if (has_suffix(path, writers[k].suffix))
            return writers[k].write(m, path, e);
    return error_set(e, ERROR_INPUT, "%s: .mask, .npy or .safetensors is expected", path);
}

int command_make(const struct options *o)
{
    struct error e = {0};
    if (!o->output) {
        error_set(&e, ERROR_INPUT,
                  "make: -o FILE.mask, FILE.npy or FILE.safetensors is expected");
        return command_fail(&e);
    }
    struct mask *m = options_mask(o, o->argument[0], o->length[0], 0, &e);
    int r = m ? command_write_mask(m, o->output, &e) : -1;
    mask_destroy(m);
    return r < 0 ? command_fail(&e) : 0;
}
