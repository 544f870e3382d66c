/* SPDX-License-Identifier: Apache-2.0 */
/* Each tensor of the files to its place in the list of parameters, by name; see match.h. */
#include "model/checkpoint/match.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/arch/arch.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A vocabulary may be padded to a multiple of up to 128 rows; the rows beyond are ignored. */
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

static const char *shape_text(uint32_t rank, const uint64_t *shape, struct text *buffer)
{
    text_add(buffer, "[");
    for (uint32_t k = 0; k < rank; k++)
        text_add(buffer, "%s%" PRIu64, k ? ", " : "", shape[k]);
    text_add(buffer, "]");
    return text_get(buffer);
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

static bool is_decoder(const struct weights *w, const char *name)
{
    const struct parameter_row *r = arch_parameter(w->arch, PARAMETER_MLM_DECODER);
    return r && !strcmp(name, r->name);
}

/* Where a file has the head's bias twice a model adds the decoder's, and the head's lies unused, also if the weights are tied
   (as in transformers 5). */
static bool is_decoder_bias(const struct weights *w, const char *name)
{
    const char *own = w->arch->decoder_bias;
    const size_t length = strlen(name), end = own ? strlen(own) : 0;
    return end && length >= end && !strcmp(name + length - end, own);
}

/* A parameter that the file has for the second time. Returns 1 if this tensor replaces the first one, 0 if not. */
static int take_again(struct weights *w, const struct tensor *to, const char *path,
                      const struct safetensor *t, struct error *e)
{
    const bool same = same_bytes(to, t);
    if (to->parameter.id == PARAMETER_MLM_BIAS && w->arch->decoder_bias) {
        if (w->tied && !same)
            weights_note(w, "%s differs from the bias of its head and is used",
                         w->arch->decoder_bias);
        return is_decoder_bias(w, t->name);
    }
    return same ? 1
                : error_set(e, ERROR_INPUT,
                            "%s: tensor '%.100s' is there twice, and not the same", path,
                            t->name);
}

const struct safetensor *weights_find_in_files(const struct weights *w, const char *name)
{
    char own[PARAMETER_NAME_BYTES];
    for (uint32_t s = 0; s < w->files.count; s++)
        for (uint32_t k = 0; k < w->files.shard[s].tensors.n_tensors; k++) {
            const struct safetensor *t = &w->files.shard[s].tensors.tensor[k];
            if (parameter_name(w->arch, t->name, own) && !strcmp(own, name))
                return t;
        }
    return NULL;
}

bool weights_can_read(const struct weights *w, const struct parameter *p)
{
    enum element element;
    const struct safetensor *t = weights_find_in_files(w, p->name);
    return t && shape_fits(p, t) && element_parse(t->dtype, &element);
}

/* The tensor of the files for the architecture's parameter; null: there is none. */
static const struct safetensor *find_in_files(const struct weights *w, enum parameter_id id)
{
    const struct parameter_row *row = arch_parameter(w->arch, id);
    return row ? weights_find_in_files(w, row->name) : NULL;
}

/* If the weights are tied, a file may have the decoder alone: it is then the table of words, too (as in transformers 5). */
static bool is_table_of_words(const struct weights *w, const char *name)
{
    return w->tied && is_decoder(w, name) && !find_in_files(w, PARAMETER_WORDS);
}

static int take(struct weights *w, struct tensor **sorted, uint32_t left_out,
                const struct shard *shard, const struct safetensor *t, struct error *e)
{
    const char *path = shard->path;
    char name[PARAMETER_NAME_BYTES];
    if (!parameter_name(w->arch, t->name, name))
        return 0;
    struct tensor *to = is_table_of_words(w, name) ? weights_get(w, PARAMETER_WORDS, 0)
                                                   : find_sorted(sorted, w->n_tensors, name);
    if (!to) {
        if (!is_decoder(w, name) && !(parameter_parts(w->arch, name) & left_out))
            weights_note(w, "tensor '%.200s' is not one of %s's and is left out", t->name,
                         w->arch->title);
        return 0;
    }
    enum element element;
    if (!element_parse(t->dtype, &element))
        return error_set(e, ERROR_INPUT,
                         "%s: tensor '%.100s' is %s, a floating type is expected", path,
                         t->name, t->dtype);
    if (!shape_fits(&to->parameter, t))
        return wrong_shape(&to->parameter, t, path, e);
    const int taken = to->data ? take_again(w, to, path, t, e) : 1;
    if (taken <= 0)
        return taken;
    to->element = element;
    to->data = t->data;
    if (t->shape[0] != to->parameter.shape[0])
        weights_note(w, "'%.200s': %" PRIu64 " rows, of which vocab_size are taken", t->name,
                     t->shape[0]);
    return 0;
}

int weights_match(struct weights *w, uint32_t left_out, struct error *e)
{
    const struct shards *files = &w->files;
    struct tensor **sorted = sorted_tensors(w);
    int r = 0;
    for (uint32_t s = 0; s < files->count && r == 0; s++)
        for (uint32_t k = 0; k < files->shard[s].tensors.n_tensors && r == 0; k++)
            r = take(w, sorted, left_out, &files->shard[s], &files->shard[s].tensors.tensor[k],
                     e);
    free(sorted);
    return r;
}

/* True if both are of one type and have the same values in the rows of the parameter. */
static bool same_rows(const struct parameter *p, const struct safetensor *a,
                      const struct safetensor *b)
{
    enum element element;
    return shape_fits(p, a) && shape_fits(p, b) && !strcmp(a->dtype, b->dtype) &&
           element_parse(a->dtype, &element) &&
           !memcmp(a->data, b->data, p->shape[0] * p->shape[1] * element_bytes(element));
}

void weights_untie(struct weights *w, struct model_config *c)
{
    const struct safetensor *decoder = find_in_files(w, PARAMETER_MLM_DECODER),
                            *words = find_in_files(w, PARAMETER_WORDS);
    const struct parameter table = {
        .rank = 2, .by_word = true, .shape = {c->vocabulary, c->hidden}};
    if (!c->tied || !decoder || !words || same_rows(&table, decoder, words))
        return;
    if (shape_fits(&table, decoder)) {
        c->tied = false;
        json_object_set_new(c->json, "tie_word_embeddings", json_false());
    }
    weights_note(w, "%s differs from the word embeddings; tie_word_embeddings is on, %s",
                 decoder->name,
                 c->tied ? "so it is left out" : "but it is used, as in transformers 5");
}
