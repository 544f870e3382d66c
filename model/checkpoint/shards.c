/* SPDX-License-Identifier: Apache-2.0 */
/* Which files hold a model's tensors, opened and mapped. See shards.h. */
#include "model/checkpoint/shards.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/checkpoint/json.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int open_shard(struct shards *list, const char *folder, const char *name,
                      struct error *e)
{
    struct shard *s = MEMORY_PUSH(list->shard, list->count, list->capacity);
    *s = (struct shard){.path = path_join(folder, name)};
    if (file_open(s->path, &s->file, e) < 0)
        return -1;
    return safetensors_parse_any(s->file.bytes, s->file.size, s->path, &s->tensors, e);
}

static bool is_open(const struct shards *list, const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    bool found = false;
    for (uint32_t k = 0; k < list->count && !found; k++)
        found = !strcmp(list->shard[k].path, path);
    free(path);
    return found;
}

static int open_index(struct shards *list, const char *folder, struct error *e)
{
    const char *tensor;
    json_t *file, *index = json_read(folder, "model.safetensors.index.json", e);
    json_t *map = json_object_get(index, "weight_map");
    int r = index ? 0 : -1;
    if (r == 0 && !json_object_size(map))
        r = error_set(e, ERROR_INPUT, "%s/model.safetensors.index.json: no weight_map", folder);
    json_object_foreach(map, tensor, file)
    {
        const char *name = json_string_value(file);
        if (r == 0 && (!name || strchr(name, '/')))
            r = error_set(e, ERROR_INPUT,
                          "%s/model.safetensors.index.json: '%.80s': a file beside it is "
                          "expected",
                          folder, tensor);
        if (r == 0 && !is_open(list, folder, name))
            r = open_shard(list, folder, name, e);
    }
    json_decref(index);
    return r;
}

static int refuse_pickle(const char *folder, struct error *e)
{
    struct text word = {0};
    text_add_word(&word, folder);
    error_set(e, ERROR_INPUT,
              "%s: pytorch_model.bin is pickle, which can run anything and is never read; this "
              "makes model.safetensors of it: python3 -c \"import glob, sys, torch; from "
              "safetensors.torch import save_file; d = sys.argv[1]; w = {}; "
              "[w.update(torch.load(f, weights_only=True)) for f in "
              "glob.glob(glob.escape(d) + '/pytorch_model*.bin')]; save_file({k: "
              "v.clone().contiguous() for k, v in w.items()}, d + '/model.safetensors')\" %s",
              folder, text_get(&word));
    text_finish(&word);
    return -1;
}

int shards_open(struct shards *list, const char *folder, struct error *e)
{
    if (path_exists(folder, "model.safetensors"))
        return open_shard(list, folder, "model.safetensors", e);
    if (path_exists(folder, "model.safetensors.index.json"))
        return open_index(list, folder, e);
    if (path_exists(folder, "pytorch_model.bin") ||
        path_exists(folder, "pytorch_model.bin.index.json"))
        return refuse_pickle(folder, e);
    return error_set(e, ERROR_INPUT, "%s: no model.safetensors", folder);
}

void shards_release(const struct shards *list)
{
    for (uint32_t k = 0; k < list->count; k++) {
        const struct file *f = &list->shard[k].file;
        if (f->mapping) /* a private mapping that was never written to: nothing can be lost */
            madvise(f->mapping, f->size, MADV_DONTNEED);
    }
}

void shards_finish(struct shards *list)
{
    for (uint32_t k = 0; k < list->count; k++) {
        safetensors_finish(&list->shard[k].tensors);
        file_close(&list->shard[k].file);
        free(list->shard[k].path);
    }
    free(list->shard);
    *list = (struct shards){0};
}
