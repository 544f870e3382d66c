/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what a MASK argument is, hands it to its reader, and applies the common options. */
#include "masks/input/load.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/graph/graph.h"
#include "masks/graph/order.h"
#include "masks/language/gallery.h"
#include "masks/language/language.h"
#include "masks/readers/duo.h"
#include "masks/readers/readers.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum suffix {
    SUFFIX_NONE,
    SUFFIX_MASK,
    SUFFIX_NPY,
    SUFFIX_NPZ,
    SUFFIX_SAFETENSORS,
    SUFFIX_TSV,
    SUFFIX_MKB
};

static const struct {
    const char *text;
    enum suffix suffix;
} suffixes[] = {
    {".mask", SUFFIX_MASK}, {".npy", SUFFIX_NPY},
    {".npz", SUFFIX_NPZ},   {".safetensors", SUFFIX_SAFETENSORS},
    {".tsv", SUFFIX_TSV},   {".mkb", SUFFIX_MKB},
};

static enum suffix find_suffix(const char *name)
{
    size_t length = strlen(name);
    for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
        size_t tail = strlen(suffixes[k].text);
        if (length > tail && !strcmp(name + length - tail, suffixes[k].text))
            return suffixes[k].suffix;
    }
    return SUFFIX_NONE;
}

/* Options of arrays, of which DuoAttention's values accept two. */
static int check_options(const struct mask_request *r, enum suffix suffix, struct error *e)
{
    bool array = suffix == SUFFIX_NPY || suffix == SUFFIX_SAFETENSORS;
    bool chosen = array || suffix == SUFFIX_TSV;
    const char *wrong = array                         ? NULL
                        : r->has_threshold && !chosen ? "--threshold"
                        : r->has_keep && !chosen      ? "--keep"
                        : r->dam                      ? "--dam"
                        : r->tensor                   ? "--tensor"
                                                      : NULL;
    if (wrong)
        return error_set(e, ERROR_INPUT, "%s: %s is for .npy and .safetensors files", r->name,
                         wrong);
    if (r->border && !r->dam)
        return error_set(e, ERROR_INPUT, "%s: --border goes with --dam", r->name);
    if (r->n > PATTERN_MAX_N)
        return error_set(e, ERROR_INPUT, "-n %u is out of range, 1..%d is expected", r->n,
                         PATTERN_MAX_N);
    return mask_check_heads(1, r->heads, e);
}

static struct mask *read_text_file(const struct mask_request *r, struct error *e)
{
    struct file f;
    if (file_open(r->name, &f, e) < 0)
        return NULL;
    const char *slash = strrchr(r->name, '/');
    char *folder = memory_text(r->name);
    folder[slash ? slash + 1 - r->name : 0] = 0;
    struct language_input in = {.name = r->name,
                                .text = (const char *)f.bytes,
                                .length = f.size,
                                .folder = folder,
                                .n = r->n,
                                .source = r->name};
    struct mask *m = language_read(&in, e);
    free(folder);
    file_close(&f);
    return m;
}

static struct mask *read_array(const struct mask_request *r, struct error *e)
{
    struct array_file a;
    if (array_open(r->name, r->tensor, &a, e) < 0)
        return NULL;
    struct mask *m = r->dam ? dam_read(&a, r, e) : dense_read(&a, r, e);
    array_close(&a);
    return m;
}

/* The error for the name of a folder, or of a file with another suffix. */
static void refuse_file(const char *name, struct error *e)
{
    struct stat s;
    if (!stat(name, &s) && S_ISDIR(s.st_mode))
        error_set(e, ERROR_INPUT,
                  "%s: is a directory, a file is expected, such as %s/mask.mask", name, name);
    else
        error_set(e, ERROR_INPUT,
                  "%s: a mask file ends in .mask, .npy, .npz, .safetensors, .tsv or .mkb",
                  name);
}

static struct mask *read_expression(const struct mask_request *r, struct error *e)
{
    const struct gallery_file *g = gallery_find(r->name);
    char *call = gallery_call(r->name);
    const char *text = g ? g->text : call ? call : r->name;
    struct language_input in = {.name = g ? g->name : "MASK",
                                .text = text,
                                .length = strlen(text),
                                .folder = "",
                                .n = r->n,
                                .expression = !g,
                                .source = r->name};
    struct mask *m = language_read(&in, e);
    free(call);
    if (!m && !g && !access(r->name, F_OK))
        refuse_file(r->name, e);
    return m;
}

static struct mask *read_named(const struct mask_request *r, mask_mkb_reader read_mkb,
                               struct error *e)
{
    switch (find_suffix(r->name)) {
    case SUFFIX_MASK:
        return read_text_file(r, e);
    case SUFFIX_NPY:
    case SUFFIX_SAFETENSORS:
        return read_array(r, e);
    case SUFFIX_NPZ:
        return sparse_read(r->name, e);
    case SUFFIX_TSV:
        return duo_read(r, e);
    case SUFFIX_MKB:
        if (read_mkb)
            return read_mkb(r->name, e);
        error_set(e, ERROR_INPUT, "%s: a kernel file is not expected here", r->name);
        return NULL;
    default:
        return read_expression(r, e);
    }
}

/* Puts `next` in the place of *m; null stays null. */
static void replace(struct mask **m, struct mask *next)
{
    mask_destroy(*m);
    *m = next;
}

static struct mask *reorder(const struct mask *m, const struct mask_request *r, struct error *e)
{
    uint32_t *order = NULL;
    if (r->order && order_read(r->order, m->n, &order, e))
        return NULL;
    if (!order && (r->n_tokens != m->n || !order_is_permutation(r->tokens, m->n))) {
        error_set(e, ERROR_INPUT, "order: a permutation of the mask's %u tokens is expected",
                  m->n);
        return NULL;
    }
    struct mask *ret = mask_permute(m, order ? order : r->tokens, e);
    free(order);
    return ret;
}

static struct mask *take_layer(const struct mask *m, const struct mask_request *r,
                               struct error *e)
{
    if (r->layer < m->layers)
        return mask_layer(m, (uint32_t)r->layer, e);
    error_set(e, ERROR_INPUT, "%s: --layer %lld is out of range, 0..%u is expected", r->name,
              (long long)r->layer, m->layers - 1);
    return NULL;
}

struct mask *mask_shape(struct mask *m, const struct mask_request *r, struct error *e)
{
    const bool crops = m && r->n && r->n != m->n, ordered = r->order || r->tokens;
    /* The same mask either way. In a good order the steps give fewer runs. */
    const bool early = ordered && r->has_hops && !crops;
    if (m && r->layer >= 0)
        replace(&m, take_layer(m, r, e));
    if (m && early)
        replace(&m, reorder(m, r, e));
    if (m && r->has_hops)
        replace(&m, mask_hops(m, r->hops, e));
    if (m && crops)
        replace(&m, mask_crop(m, r->n, e));
    if (m && ordered && !early)
        replace(&m, reorder(m, r, e));
    if (m && r->heads && r->heads != m->heads)
        replace(&m, mask_repeat_heads(m, r->heads, e));
    return m;
}

struct mask *mask_load(const struct mask_request *r, mask_mkb_reader read_mkb, struct error *e)
{
    if (check_options(r, find_suffix(r->name), e) < 0)
        return NULL;
    return mask_shape(read_named(r, read_mkb, e), r, e);
}
