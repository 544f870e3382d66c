/* SPDX-License-Identifier: Apache-2.0 */
/* Open the shards, give every tensor its place in the list of parameters, then check: nothing missing,
   no other shape, nothing that is not finite. See weights.h. */
#include "model/weights.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/safetensors.h"
#include "model/json.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct shard {
    char *path;
    struct file file;
    uint8_t
        *aligned; /* a copy, where the file's own header is not a multiple of 8 bytes long */
    struct safetensors tensors;
};

static void add_note(struct weights *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_note(struct weights *w, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    *MEMORY_PUSH(w->note, w->n_notes, w->notes_room) = memory_text(line);
}

void weights_finish(struct weights *w)
{
    for (uint32_t k = 0; k < w->n_tensors; k++)
        free(w->tensor[k].own);
    for (uint32_t k = 0; k < w->n_notes; k++)
        free(w->note[k]);
    for (uint32_t k = 0; k < w->n_shards; k++) {
        safetensors_finish(&w->shard[k].tensors);
        file_close(&w->shard[k].file);
        free(w->shard[k].aligned);
        free(w->shard[k].path);
    }
    free(w->tensor);
    free(w->note);
    free(w->shard);
    *w = (struct weights){0};
}

void weights_release(const struct weights *w)
{
    for (uint32_t k = 0; k < w->n_shards; k++) {
        const struct file *f = &w->shard[k].file;
        if (f->mapping) /* private and never written to: nothing is lost */
            madvise(f->mapping, f->size, MADV_DONTNEED);
    }
}

/* Some writers do not pad the header; the reader wants aligned data, so the header is padded here. */
static const uint8_t *align_header(struct shard *s, uint64_t *size)
{
    const uint8_t *bytes = s->file.bytes;
    uint64_t length = 0, pad;
    *size = s->file.size;
    for (int k = 8; *size >= 8 && k-- > 0;)
        length = length << 8 | bytes[k];
    pad = (8 - length % 8) % 8;
    if (!pad || length > *size - 8)
        return bytes;
    s->aligned = memory_aligned(*size + pad, 1);
    for (int k = 0; k < 8; k++)
        s->aligned[k] = (uint8_t)((length + pad) >> 8 * k);
    memcpy(s->aligned + 8, bytes + 8, length);
    memset(s->aligned + 8 + length, ' ', pad);
    memcpy(s->aligned + 8 + length + pad, bytes + 8 + length, *size - 8 - length);
    *size += pad;
    return s->aligned;
}

static int open_shard(struct weights *w, const char *folder, const char *name, struct error *e)
{
    struct shard *s = MEMORY_PUSH(w->shard, w->n_shards, w->shards_room);
    uint64_t size;
    *s = (struct shard){.path = path_join(folder, name)};
    if (file_open(s->path, &s->file, e) < 0)
        return -1;
    const uint8_t *bytes = align_header(s, &size);
    return safetensors_parse(bytes, size, s->path, &s->tensors, e);
}

static bool is_open(const struct weights *w, const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    bool found = false;
    for (uint32_t k = 0; k < w->n_shards && !found; k++)
        found = !strcmp(w->shard[k].path, path);
    free(path);
    return found;
}

static int open_index(struct weights *w, const char *folder, struct error *e)
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
        if (r == 0 && !is_open(w, folder, name))
            r = open_shard(w, folder, name, e);
    }
    json_decref(index);
    return r;
}

static int open_all(struct weights *w, const char *folder, struct error *e)
{
    if (path_exists(folder, "model.safetensors"))
        return open_shard(w, folder, "model.safetensors", e);
    if (path_exists(folder, "model.safetensors.index.json"))
        return open_index(w, folder, e);
    if (path_exists(folder, "pytorch_model.bin") ||
        path_exists(folder, "pytorch_model.bin.index.json"))
        return error_set(e, ERROR_INPUT,
                         "%s: pytorch_model.bin is pickle, which can run anything and is never "
                         "read: python3 -c \"from transformers import AutoModel; m = "
                         "AutoModel.from_pretrained('%s'); m.save_pretrained('%s', "
                         "safe_serialization=True)\" makes model.safetensors of it",
                         folder, folder, folder);
    return error_set(e, ERROR_INPUT, "%s: no model.safetensors", folder);
}

/* Which parts the files have a tensor of, by the names alone. */
static uint32_t parts_of(const struct weights *w)
{
    static const struct {
        const char *prefix;
        uint32_t part;
    } prefixes[] = {
        {"embeddings.", PART_ENCODER},      {"encoder.", PART_ENCODER},
        {"pooler.", PART_POOLER},           {"cls.predictions.", PART_MLM},
        {"cls.seq_relationship", PART_NSP}, {"classifier.", PART_CLASSIFIER},
        {"qa_outputs.", PART_SPAN},
    };
    uint32_t parts = 0;
    char name[PARAMETER_NAME_BYTES];
    for (uint32_t s = 0; s < w->n_shards; s++)
        for (uint32_t k = 0; k < w->shard[s].tensors.n_tensors; k++) {
            parameter_name(w->shard[s].tensors.tensor[k].name, name);
            for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
                if (!strncmp(name, prefixes[p].prefix, strlen(prefixes[p].prefix)))
                    parts |= prefixes[p].part;
        }
    return parts;
}

/* The classifier's rows where config.json says nothing about labels. */
static void take_labels(const struct weights *w, struct model_config *c)
{
    char name[PARAMETER_NAME_BYTES];
    for (uint32_t s = 0; !c->labels_given && s < w->n_shards; s++)
        for (uint32_t k = 0; k < w->shard[s].tensors.n_tensors; k++) {
            const struct safetensor *t = &w->shard[s].tensors.tensor[k];
            parameter_name(t->name, name);
            if (!strcmp(name, "classifier.bias") && t->rank == 1 && t->shape[0] <= 1 << 20 &&
                t->shape[0])
                c->labels = (uint32_t)t->shape[0];
        }
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct tensor *const *)a)->parameter.name,
                  (*(struct tensor *const *)b)->parameter.name);
}

static struct tensor **sorted_tensors(const struct weights *w)
{
    struct tensor **sorted = memory_new(w->n_tensors, sizeof *sorted);
    for (uint32_t k = 0; k < w->n_tensors; k++)
        sorted[k] = &w->tensor[k];
    qsort(sorted, w->n_tensors, sizeof *sorted, by_name);
    return sorted;
}

static struct tensor *find_sorted(struct tensor **sorted, uint32_t count, const char *name)
{
    struct tensor key, *at = &key, **found;
    snprintf(key.parameter.name, sizeof key.parameter.name, "%s", name);
    found = bsearch(&at, sorted, count, sizeof *sorted, by_name);
    return found ? *found : NULL;
}

struct tensor *weights_find(const struct weights *w, const char *name)
{
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (!strcmp(w->tensor[k].parameter.name, name))
            return &w->tensor[k];
    return NULL;
}

/* Vocabularies are padded to multiples of up to 128 rows; the rows beyond are left out. */
static bool shape_fits(const struct parameter *p, const struct safetensor *t)
{
    if (p->rank != t->rank)
        return false;
    for (uint32_t k = 0; k < p->rank; k++) {
        uint64_t most = k == 0 && p->by_word ? (p->shape[0] + 127) / 128 * 128 : p->shape[k];
        if (t->shape[k] < p->shape[k] || t->shape[k] > most)
            return false;
    }
    return true;
}

static const char *shape_text(uint32_t rank, const uint64_t *shape, struct text *room)
{
    text_add(room, "[");
    for (uint32_t k = 0; k < rank; k++)
        text_add(room, "%s%" PRIu64, k ? ", " : "", shape[k]);
    text_add(room, "]");
    return text_get(room);
}

static int wrong_shape(const struct parameter *p, const struct safetensor *t, const char *path,
                       struct error *e)
{
    struct text is = {0}, should = {0};
    error_set(e, ERROR_INPUT, "%s: tensor '%.100s' is %s, config.json says %s", path, t->name,
              shape_text(t->rank, t->shape, &is), shape_text(p->rank, p->shape, &should));
    text_finish(&is);
    text_finish(&should);
    return -1;
}

static bool same_bytes(const struct tensor *a, const struct safetensor *t)
{
    return !strcmp(element_name(a->element), t->dtype) &&
           !memcmp(a->data, t->data, a->parameter.count * element_bytes(a->element));
}

/* Tied weights may be in the file twice; what differs is said, and the first one stays. */
static void check_tied(struct weights *w, struct tensor **sorted, const char *name,
                       const struct safetensor *t)
{
    if (strcmp(name, "cls.predictions.decoder.weight"))
        return;
    const struct tensor *words =
        find_sorted(sorted, w->n_tensors, "embeddings.word_embeddings.weight");
    bool same =
        words && words->data && shape_fits(&words->parameter, t) && same_bytes(words, t);
    if (words && words->data && !same)
        add_note(w,
                 "%s differs from the word embeddings; tie_word_embeddings is on, so it is "
                 "left out",
                 t->name);
}

static int take(struct weights *w, struct tensor **sorted, const struct safetensor *t,
                const char *path, struct error *e)
{
    char name[PARAMETER_NAME_BYTES];
    if (!parameter_name(t->name, name))
        return 0;
    struct tensor *to = find_sorted(sorted, w->n_tensors, name);
    if (!to) {
        if (strcmp(name, "cls.predictions.decoder.weight"))
            add_note(w, "tensor '%.200s' is not one of BERT's and is left out", t->name);
        return 0;
    }
    enum element element;
    if (!element_parse(t->dtype, &element))
        return error_set(e, ERROR_INPUT,
                         "%s: tensor '%.100s' is %s, a floating type is expected", path,
                         t->name, t->dtype);
    if (!shape_fits(&to->parameter, t))
        return wrong_shape(&to->parameter, t, path, e);
    if (to->data && !same_bytes(to, t))
        return error_set(e, ERROR_INPUT, "%s: tensor '%.100s' is there twice, and not the same",
                         path, t->name);
    to->element = element;
    to->data = t->data;
    if (t->shape[0] != to->parameter.shape[0])
        add_note(w, "'%.200s': %" PRIu64 " rows, of which vocab_size are taken", t->name,
                 t->shape[0]);
    return 0;
}

static int take_all(struct weights *w, struct error *e)
{
    struct tensor **sorted = sorted_tensors(w);
    int r = 0;
    for (uint32_t s = 0; s < w->n_shards && r == 0; s++)
        for (uint32_t k = 0; k < w->shard[s].tensors.n_tensors && r == 0; k++)
            r = take(w, sorted, &w->shard[s].tensors.tensor[k], w->shard[s].path, e);
    for (uint32_t s = 0; s < w->n_shards && r == 0; s++)
        for (uint32_t k = 0; k < w->shard[s].tensors.n_tensors; k++) {
            char name[PARAMETER_NAME_BYTES];
            parameter_name(w->shard[s].tensors.tensor[k].name, name);
            if (!find_sorted(sorted, w->n_tensors, name))
                check_tied(w, sorted, name, &w->shard[s].tensors.tensor[k]);
        }
    free(sorted);
    return r;
}

/* A part is there as a whole or, but for the encoder, not at all. */
static int check_missing(struct weights *w, uint32_t there, const char *folder, struct error *e)
{
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct tensor *t = &w->tensor[k];
        bool whole = t->parameter.part == PART_ENCODER || there & t->parameter.part;
        if (!t->data && whole)
            return error_set(e, ERROR_INPUT, "%s: tensor '%s' is missing", folder,
                             t->parameter.name);
    }
    w->new_parts = w->parts & ~there;
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (w->tensor[k].parameter.part & w->new_parts)
            add_note(w, "'%s' is not in the file: newly initialised",
                     w->tensor[k].parameter.name);
    return 0;
}

static int check_finite(const struct weights *w, const char *folder, struct error *e)
{
    int64_t bad = -1;
#pragma omp parallel for schedule(dynamic, 1) reduction(max : bad)
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct tensor *t = &w->tensor[k];
        if (t->data &&
            elements_not_finite(t->element, t->data, t->parameter.count) < t->parameter.count)
            bad = bad > (int64_t)k ? bad : (int64_t)k;
    }
    if (bad < 0)
        return 0;
    const struct tensor *t = &w->tensor[bad];
    return error_set(e, ERROR_INPUT, "%s: tensor '%s' is not finite at element %" PRIu64,
                     folder, t->parameter.name,
                     elements_not_finite(t->element, t->data, t->parameter.count));
}

void weights_begin(const struct model_config *c, uint32_t parts, struct weights *ret)
{
    struct parameter *list = parameters_list(c, parts, &ret->n_tensors);
    ret->parts = parts;
    ret->tensor = memory_new(ret->n_tensors, sizeof *ret->tensor);
    for (uint32_t k = 0; k < ret->n_tensors; k++)
        ret->tensor[k].parameter = list[k];
    free(list);
}

int weights_read(const char *folder, struct model_config *c, struct weights *ret,
                 struct error *e)
{
    struct weights w = {0};
    int r = open_all(&w, folder, e);
    if (r == 0) {
        uint32_t there = parts_of(&w);
        take_labels(&w, c);
        weights_begin(c, there | config_parts(c) | PART_ENCODER, &w);
        r = take_all(&w, e);
        if (r == 0)
            r = check_missing(&w, there, folder, e);
        if (r == 0)
            r = check_finite(&w, folder, e);
    }
    if (r < 0)
        weights_finish(&w);
    else
        *ret = w;
    return r;
}

void tensor_to_f32(const struct tensor *t, uint64_t first, uint64_t count, float *ret)
{
    const uint8_t *bytes = t->data;
    elements_to_f32(t->element, bytes + first * element_bytes(t->element), count, ret);
}

enum element weights_element(const struct weights *w)
{
    uint64_t count[ELEMENT_COUNT] = {0};
    int best = ELEMENT_F32;
    for (uint32_t k = 0; k < w->n_tensors; k++)
        if (w->tensor[k].data)
            count[w->tensor[k].element] += w->tensor[k].parameter.count;
    for (int k = 0; k < ELEMENT_COUNT; k++)
        best = count[k] > count[best] ? k : best;
    return (enum element)best;
}
