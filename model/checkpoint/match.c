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

/* Tied weights may be in the file twice. Where they differ a note says so, and the first one counts. */
static void check_tied(struct weights *w, const char *name, const struct safetensor *t)
{
    if (!is_decoder(w, name))
        return;
    const struct tensor *words = weights_get(w, PARAMETER_WORDS, 0);
    bool same =
        words && words->data && shape_fits(&words->parameter, t) && same_bytes(words, t);
    if (words && words->data && !same)
        weights_note(w,
                     "%s differs from the word embeddings; tie_word_embeddings is on, so it is "
                     "left out",
                     t->name);
}

/* Weights that are not tied: a model adds the decoder's bias, and the head's lies unused in its file. */
static bool is_decoder_bias(const struct weights *w, const char *name)
{
    const char *own = w->arch->decoder_bias;
    const size_t length = strlen(name), end = own ? strlen(own) : 0;
    return end && length >= end && !strcmp(name + length - end, own);
}

static bool is_of_decoder(const struct weights *w, const struct tensor *t)
{
    return !w->tied && w->arch->decoder_bias && t->parameter.id == PARAMETER_MLM_BIAS;
}

static int take(struct weights *w, struct tensor **sorted, const struct safetensor *t,
                const char *path, struct error *e)
{
    char name[PARAMETER_NAME_BYTES];
    if (!parameter_name(w->arch, t->name, name))
        return 0;
    struct tensor *to = find_sorted(sorted, w->n_tensors, name);
    if (!to) {
        if (!is_decoder(w, name))
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
    if (to->data && is_of_decoder(w, to) && !is_decoder_bias(w, t->name))
        return 0;
    if (to->data && !is_of_decoder(w, to) && !same_bytes(to, t))
        return error_set(e, ERROR_INPUT, "%s: tensor '%.100s' is there twice, and not the same",
                         path, t->name);
    to->element = element;
    to->data = t->data;
    if (t->shape[0] != to->parameter.shape[0])
        weights_note(w, "'%.200s': %" PRIu64 " rows, of which vocab_size are taken", t->name,
                     t->shape[0]);
    return 0;
}

int weights_match(struct weights *w, struct error *e)
{
    const struct shards *files = &w->files;
    struct tensor **sorted = sorted_tensors(w);
    int r = 0;
    for (uint32_t s = 0; s < files->count && r == 0; s++)
        for (uint32_t k = 0; k < files->shard[s].tensors.n_tensors && r == 0; k++)
            r = take(w, sorted, &files->shard[s].tensors.tensor[k], files->shard[s].path, e);
    for (uint32_t s = 0; s < files->count && r == 0; s++)
        for (uint32_t k = 0; k < files->shard[s].tensors.n_tensors; k++) {
            char name[PARAMETER_NAME_BYTES];
            parameter_name(w->arch, files->shard[s].tensors.tensor[k].name, name);
            if (!find_sorted(sorted, w->n_tensors, name))
                check_tied(w, name, &files->shard[s].tensors.tensor[k]);
        }
    free(sorted);
    return r;
}
