/* SPDX-License-Identifier: Apache-2.0 */
/* A mask in a model's folder is planned for that model. config.json gives the head dim and the heads, run.json the dtype
   that the run was trained with. Options that were given win. */
#include "masks/base/file.h"
#include "masks/base/json_load.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "tools/maskc/options.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SIZE_MOST = 1 << 24 };

static bool is_mask_file(const char *name)
{
    return has_suffix(name, ".mask") || has_suffix(name, ".npy") ||
           has_suffix(name, ".safetensors");
}

/* "FOLDER/NAME" beside the file; caller frees. */
static char *path_beside(const char *file, const char *name)
{
    const char *slash = strrchr(file, '/');
    struct text path = {0};
    text_add(&path, "%.*s%s", slash ? (int)(slash + 1 - file) : 0, file, name);
    char *ret = memory_text(text_get(&path));
    text_finish(&path);
    return ret;
}

static bool names(const struct file *f, const char *key)
{
    return f->size && memmem(f->bytes, f->size, key, strlen(key));
}

/* The object in the file; *ret is null if there is no such file, or one that nowhere names the key. */
static int read_object(const char *path, const char *key, json_t **ret, struct error *e)
{
    struct file f;
    struct stat status;
    json_error_t why;
    *ret = NULL;
    if (stat(path, &status) || !S_ISREG(status.st_mode))
        return 0;
    if (file_open(path, &f, e) < 0)
        return -1;
    const bool named = names(&f, key);
    if (named)
        *ret = json_load_bytes((const char *)f.bytes, f.size, JSON_FROM_FILE, &why);
    file_close(&f);
    if (!named || json_is_object(*ret))
        return 0;
    json_decref(*ret);
    *ret = NULL;
    return error_set(e, ERROR_INPUT,
                     "%s: not a JSON object; --head-dim and --dtype go without it", path);
}

/* A size from 1 to SIZE_MOST; 0 where the key is missing, -1 for another value. */
static json_int_t size_of(const json_t *config, const char *key)
{
    const json_t *x = json_object_get(config, key);
    const json_int_t size = json_integer_value(x);
    if (!x || json_is_null(x))
        return 0;
    return size >= 1 && size <= SIZE_MOST ? size : -1;
}

/* Head dim that maskbert compiles for: a multiple of 8, at least 16. */
static uint32_t padded(json_int_t head_dim)
{
    return head_dim <= 16 ? 16 : (uint32_t)(head_dim + 7) / 8 * 8;
}

struct shape {
    uint32_t head_dim, heads; /* 0: the file has none */
};

static int read_shape(const json_t *config, const char *path, struct shape *ret,
                      struct error *e)
{
    const json_int_t hidden = size_of(config, "hidden_size"),
                     heads = size_of(config, "num_attention_heads"),
                     given = size_of(config, "head_dim");
    *ret = (struct shape){0, 0};
    if (!heads || (!hidden && !given))
        return 0; /* not a model's, or one whose sizes have other names */
    if (heads < 0 || given < 0 || (!given && (hidden < 1 || hidden % heads)))
        return error_set(e, ERROR_INPUT,
                         "%s: hidden_size and num_attention_heads give no head dim; --head-dim "
                         "and --dtype go without them",
                         path);
    *ret = (struct shape){padded(given ? given : hidden / heads), (uint32_t)heads};
    return 0;
}

static const char *dtype_named(const json_t *name)
{
    static const char *const names[][2] = {
        {"f32", "f32"},     {"bf16", "bf16"},     {"f16", "f16"},
        {"float32", "f32"}, {"bfloat16", "bf16"}, {"float16", "f16"},
    };
    for (size_t k = 0; json_is_string(name) && k < sizeof names / sizeof *names; k++)
        if (!strcmp(json_string_value(name), names[k][0]))
            return names[k][1];
    return NULL;
}

static void add_source(struct text *to, const char *path, bool used)
{
    if (used)
        text_add(to, "%s%s", to->length ? ", " : "", path);
}

/* "head dim 16, 2 heads, bf16 (from learned/config.json, learned/run.json)". */
static void note_taken(struct options *o, const struct shape *shape, bool dim, bool dtype,
                       const struct text *sources)
{
    struct text note = {0};
    if (dim)
        text_add(&note, "head dim %u, ", shape->head_dim);
    if (o->model_heads)
        text_add(&note, "%u head%s, ", shape->heads, shape->heads == 1 ? "" : "s");
    if (dtype)
        text_add(&note, "%s, ", o->dtype);
    free(o->model_note);
    o->model_note = NULL;
    if (note.length) {
        note.length -= 2;
        note.bytes[note.length] = 0;
        text_add(&note, " (from %s)", text_get(sources));
        o->model_note = memory_text(text_get(&note));
    }
    text_finish(&note);
}

static void take(struct options *o, const json_t *config, const json_t *run,
                 const struct shape *shape, const char *const path[2])
{
    const char *of_run = dtype_named(json_object_get(run, "dtype")),
               *of_model = dtype_named(json_object_get(config, "dtype"));
    of_model = of_model ? of_model : dtype_named(json_object_get(config, "torch_dtype"));
    const bool dim = shape->head_dim && !o->head_dim, heads = shape->heads && !o->heads;
    const bool dtype = shape->head_dim && !o->dtype && (of_run || of_model);
    struct text sources = {0};
    if (dim)
        o->head_dim = shape->head_dim;
    o->model_heads = heads ? shape->heads : 0;
    if (dtype)
        o->dtype = of_run ? of_run : of_model;
    add_source(&sources, path[0], dim || heads || (dtype && !of_run));
    add_source(&sources, path[1], dtype && of_run);
    note_taken(o, shape, dim, dtype, &sources);
    text_finish(&sources);
}

static int take_beside(struct options *o, bool heads, const char *const path[2],
                       struct error *e)
{
    json_t *config = NULL, *run = NULL;
    struct shape shape;
    int r = read_object(path[0], "\"num_attention_heads\"", &config, e);
    r = r < 0 ? r : read_shape(config, path[0], &shape, e);
    r = r < 0 || !shape.head_dim ? r : read_object(path[1], "\"dtype\"", &run, e);
    if (!heads)
        shape.heads = 0;
    if (r == 0)
        take(o, config, run, &shape, path);
    json_decref(config);
    json_decref(run);
    return r;
}

int options_take_model(struct options *o, const char *mask, bool heads, struct error *e)
{
    struct error why = {0};
    if (!mask || !is_mask_file(mask))
        return 0;
    char *const path[2] = {path_beside(mask, "config.json"), path_beside(mask, "run.json")};
    int r = take_beside(o, heads, (const char *const *)path, &why);
    if (r < 0 && o->head_dim && o->dtype)
        r = 0;
    else if (r < 0)
        *e = why;
    free(path[0]);
    free(path[1]);
    return r;
}
