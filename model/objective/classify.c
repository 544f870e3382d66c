/* SPDX-License-Identifier: Apache-2.0 */
/* "classify": texts with a label each. The loss is the classifier's over the pooled first token, the metric accuracy.
   The data are a file with `label TAB text` on each line. Labels are numbered in the order of their bytes. */
#include "masks/base/file.h"
#include "masks/base/hash.h"
#include "masks/base/memory.h"
#include "model/base/order.h"
#include "model/data/labelled_text.h"
#include "model/data/text_check.h"
#include "model/objective/objective.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LABELS = 1 << 16, MOST_SAMPLES = 1 << 30, HEAD_BYTES = 4096 };

extern const struct objective objective_classify;

struct sample {
    uint64_t first;  /* of its token ids */
    uint32_t tokens; /* how many */
    uint32_t label;
};

struct classify_data {
    struct objective_data base;
    char **label; /* [base.labels], sorted */
    struct sample *sample;
    uint32_t *token_id; /* of all samples */
    size_t labels_capacity, capacity;
    uint64_t tokens_capacity;
};

struct classify_batch {
    struct objective_batch base;
    uint32_t *row, *label;
    uint32_t capacity;
};

/* ---- labels ---- */

static int compare(const char *name, const struct labelled_row *r)
{
    const int order = strncmp(name, r->label, r->label_size);
    return order ? order : name[r->label_size] != 0;
}

/* Where the row's label is in the sorted list, or where it would be. */
static uint32_t place_of(const struct classify_data *d, const struct labelled_row *r,
                         bool *ret_found)
{
    uint32_t low = 0, high = d->base.labels;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (compare(d->label[middle], r) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = low < d->base.labels && compare(d->label[low], r) == 0;
    return low;
}

static int add_label(struct classify_data *d, const struct labelled_text *from,
                     const struct labelled_row *r, struct error *e)
{
    bool found;
    const uint32_t at = place_of(d, r, &found);
    size_t count = d->base.labels;
    if (found)
        return 0;
    if (count == MOST_LABELS)
        return labelled_text_broken(from, 0, "more than 65536 different labels", e);
    char *name = memory_new((size_t)r->label_size + 1, 1);
    memcpy(name, r->label, r->label_size);
    (void)MEMORY_PUSH(d->label, count, d->labels_capacity);
    memmove(d->label + at + 1, d->label + at, (d->base.labels - at) * sizeof *d->label);
    d->label[at] = name;
    d->base.labels++;
    return 0;
}

/* Of the training data, or all that the file has. */
static int find_labels(struct classify_data *d, const struct objective_source *s,
                       const struct file *f, struct error *e)
{
    struct labelled_text r = labelled_text_begin(s->path, f);
    struct labelled_row row;
    int more = 0;
    if (s->like) {
        d->base.labels = s->like->labels;
        d->label = memory_new(d->base.labels, sizeof *d->label);
        for (uint32_t k = 0; k < d->base.labels; k++)
            d->label[k] = memory_text(s->like->label[k]);
        return 0;
    }
    while ((more = labelled_text_next(&r, &row, e)) > 0)
        if (add_label(d, &r, &row, e) < 0)
            return -1;
    if (more < 0)
        return -1;
    return d->base.labels < 2
               ? error_set(e, ERROR_INPUT, "%s: %u different labels; 2 or more are expected",
                           s->path, d->base.labels)
               : 0;
}

/* ---- samples ---- */

static void add_tokens(struct classify_data *d, const struct tokens *t)
{
    if (d->base.tokens + t->count > d->tokens_capacity) {
        d->tokens_capacity = 2 * (d->base.tokens + t->count);
        d->token_id = memory_resize(d->token_id, d->tokens_capacity, sizeof *d->token_id);
    }
    memcpy(d->token_id + d->base.tokens, t->token_ids, t->count * sizeof *d->token_id);
    d->base.tokens += t->count;
    d->base.length = t->count > d->base.length ? t->count : d->base.length;
    for (uint32_t k = 0; k < t->count; k++)
        if (t->token_ids[k] >= d->base.vocabulary)
            d->base.vocabulary = t->token_ids[k] + 1;
}

static int add_sample(struct classify_data *d, const struct objective_source *s,
                      const struct labelled_text *from, const struct labelled_row *r,
                      struct tokens *t, struct error *e)
{
    bool found;
    const uint32_t label = place_of(d, r, &found);
    size_t count = d->base.count;
    if (!found)
        return labelled_text_broken(from, 0, "a label that the training data do not have", e);
    if (count == MOST_SAMPLES)
        return labelled_text_broken(from, 0, "more than 2^30 rows", e);
    tokenizer_encode(s->tokenizer, (struct text_part){r->text, r->text_size},
                     (struct text_part){0}, s->longest, t);
    *MEMORY_PUSH(d->sample, count, d->capacity) =
        (struct sample){d->base.tokens, t->count, label};
    add_tokens(d, t);
    d->base.count++;
    return 0;
}

static int read_samples(struct classify_data *d, const struct objective_source *s,
                        const struct file *f, struct error *e)
{
    struct labelled_text r = labelled_text_begin(s->path, f);
    struct tokens t = {0};
    struct labelled_row row;
    int more;
    while ((more = labelled_text_next(&r, &row, e)) > 0)
        if (add_sample(d, s, &r, &row, &t, e) < 0) {
            more = -1;
            break;
        }
    tokens_finish(&t);
    if (more < 0)
        return -1;
    return d->base.count ? 0 : error_set(e, ERROR_INPUT, "%s: no rows", s->path);
}

static void set_sum(struct classify_data *d, const struct file *f)
{
    const XXH128_hash_t sum = XXH3_128bits(f->bytes, f->size);
    snprintf(d->base.sum, sizeof d->base.sum, "%016" PRIx64 "%016" PRIx64, sum.high64,
             sum.low64);
}

static void close_data(struct objective_data *base)
{
    struct classify_data *d = (struct classify_data *)base;
    if (!d)
        return;
    for (uint32_t k = 0; k < d->base.labels; k++)
        free(d->label[k]);
    free(d->label);
    free(d->sample);
    free(d->token_id);
    free(d);
}

static int read_file(struct classify_data *d, const struct objective_source *s,
                     const struct file *f, struct error *e)
{
    if (text_check_head(s->path, (const char *)f->bytes,
                        f->size < HEAD_BYTES ? f->size : HEAD_BYTES, NULL, e) < 0 ||
        find_labels(d, s, f, e) < 0 || read_samples(d, s, f, e) < 0)
        return -1;
    d->base.natural = &objective_classify;
    d->base.label = d->label;
    set_sum(d, f);
    return 0;
}

static struct objective_data *open_data(const struct objective_source *s, struct error *e)
{
    struct file f = {0};
    if (!s->tokenizer) {
        error_set(e, ERROR_INPUT, "%s: the model has no tokenizer for its texts", s->path);
        return NULL;
    }
    if (file_open(s->path, &f, e) < 0)
        return NULL;
    struct classify_data *d = memory_new(1, sizeof *d);
    int r = read_file(d, s, &f, e);
    file_close(&f);
    if (r < 0) {
        close_data(&d->base);
        return NULL;
    }
    return &d->base;
}

static int check_labels(const struct objective_data *d, const char *path,
                        const struct model_config *c, struct error *e)
{
    return d->labels == c->labels
               ? 0
               : error_set(e, ERROR_INPUT, "%s: %u labels, the model's classifier has %u", path,
                           d->labels, c->labels);
}

/* ---- batches ---- */

static struct objective_batch *new_batch(void)
{
    return memory_new(1, sizeof(struct classify_batch));
}

static void destroy_batch(struct objective_batch *base)
{
    struct classify_batch *b = (struct classify_batch *)base;
    if (!b)
        return;
    free(b->base.batch.list);
    free(b->base.batch.offsets);
    free(b->base.batch.sample);
    free(b->row);
    free(b->label);
    free(b);
}

static void reserve(struct classify_batch *b, uint32_t count)
{
    struct train_batch *t = &b->base.batch;
    if (count <= b->capacity)
        return;
    b->capacity = count;
    t->list = memory_resize(t->list, count, sizeof *t->list);
    t->offsets = memory_resize(t->offsets, (size_t)count + 1, sizeof *t->offsets);
    t->sample = memory_resize(t->sample, count, sizeof *t->sample);
    b->row = memory_resize(b->row, count, sizeof *b->row);
    b->label = memory_resize(b->label, count, sizeof *b->label);
}

static void make_batch(const struct objective_data *base, const struct batch_request *r,
                       struct objective_batch *ret)
{
    const struct classify_data *d = (const struct classify_data *)base;
    struct classify_batch *b = (struct classify_batch *)ret;
    struct train_batch *t = &ret->batch;
    reserve(b, r->count);
    t->sequences = r->count;
    t->tokens = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        const uint64_t place = r->first + k;
        const uint32_t epoch = r->epoch + (uint32_t)(place / base->count),
                       s = order_at(r->seed, epoch, base->count,
                                    (uint32_t)(place % base->count));
        const struct sample *from = &d->sample[s];
        t->sample[k] = s;
        t->offsets[k] = (int32_t)t->tokens;
        t->list[k] = (struct sequence){d->token_id + from->first, from->tokens, from->tokens};
        b->row[k] = t->tokens;
        b->label[k] = from->label;
        t->tokens += from->tokens;
    }
    t->offsets[r->count] = (int32_t)t->tokens;
    t->targets = 1;
    t->target[0] = (struct train_target){TARGET_POOLED, r->count, b->row, b->label};
}

/* ---- numbers ---- */

static uint32_t step_metrics(const double mean[TARGETS_MOST], struct metric ret[METRICS_MOST])
{
    (void)mean, (void)ret;
    return 0; /* the loss is all */
}

static double accuracy(const struct batch_loss *l)
{
    const struct target_loss *t = &l->target[0];
    return t->count ? (double)t->right / (double)t->count : 0;
}

static uint32_t metrics(const struct batch_loss *l, struct metric ret[METRICS_MOST])
{
    ret[0] = (struct metric){"accuracy", accuracy(l)};
    return 1;
}

static void add_text(const struct batch_loss *l, struct text *to)
{
    double mean[TARGETS_MOST];
    const double loss = objective_loss(&objective_classify, l, mean);
    text_add(to, "loss %.4f, accuracy %.2f %% of the texts", loss, 100 * accuracy(l));
}

static void add_loss(double loss, const double mean[TARGETS_MOST], struct text *to)
{
    (void)mean;
    text_add(to, "loss %.4f", loss);
}

static void describe(const struct objective_data *d, struct text *to)
{
    text_add(to, "%u texts, %u labels", d->count, d->labels);
}

const struct objective objective_classify = {
    .name = "classify",
    .parts = PART_POOLER | PART_CLASSIFIER,
    .targets = 1,
    .weight = {1},
    .open = open_data,
    .close = close_data,
    .check = check_labels,
    .batch_new = new_batch,
    .batch_destroy = destroy_batch,
    .batch = make_batch,
    .step_metrics = step_metrics,
    .metrics = metrics,
    .text = add_text,
    .loss_text = add_loss,
    .describe = describe,
};
