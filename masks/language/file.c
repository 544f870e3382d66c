/* SPDX-License-Identifier: Apache-2.0 */
/* file("x.npy"): a dense mask beside the text, cropped to the length. A name with a slash is
   refused, so that a mask text never reaches out of its folder. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/language/primitive.h"
#include "masks/readers/readers.h"
#include <stdlib.h>
#include <string.h>

enum { FILE_NAME, FILE_THRESHOLD, FILE_HEAD };

static struct pattern *read_pattern(const struct call *c, const char *path, struct error *e)
{
    struct mask_request r = {MASK_REQUEST_DEFAULTS, .name = path,
                             .has_threshold = c->given[FILE_THRESHOLD] != NULL,
                             .threshold = c->real[FILE_THRESHOLD]};
    struct array_file a;
    if (array_open(path, NULL, &a, e) < 0)
        return NULL;
    struct pattern *p =
        dense_read_head(&a, &r, c->given[FILE_HEAD] ? c->whole[FILE_HEAD] : -1, e);
    array_close(&a);
    return p;
}

int prepare_file(struct call *c, const struct prepare_context *x, struct error *e)
{
    const struct argument *name = c->given[FILE_NAME];
    const char *suffix = strrchr(name->string, '.');
    if (strchr(name->string, '/'))
        return script_error(
            x->script, name->at, e,
            "file: the name of a .npy file beside this text is expected, no path");
    if (!suffix || strcmp(suffix, ".npy"))
        return script_error(x->script, name->at, e,
                            "file: the name of a .npy file is expected; other files are a MASK "
                            "only by themselves");
    struct text path = {0};
    text_add(&path, "%s%s", x->folder ? x->folder : "", name->string);
    struct error inner = {0};
    c->file = read_pattern(c, text_get(&path), &inner);
    text_finish(&path);
    if (!c->file)
        return script_error(x->script, name->at, e, "file: %s", inner.text);
    if (c->file->n < c->n)
        return script_error(x->script, name->at, e,
                            "file: its length is %u, at least the mask's length %u is expected",
                            c->file->n, c->n);
    return 0;
}
