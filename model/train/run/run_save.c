/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_save.h"
#include "masks/base/memory.h"
#include "model/backend/mirror.h"
#include "model/base/whole_file.h"
#include "model/checkpoint/json.h"
#include "model/train/run/run_ranks.h"
#include "model/train/step/shards.h"
#include <stdlib.h>

int run_log_event(struct run *r, const char *name, struct error *e)
{
    const struct log_field fields[] = {{"step", (double)r->facts.step},
                                       {"tokens", (double)r->facts.tokens},
                                       {"elapsed_s", r->facts.elapsed}};
    return run_log_write(&r->log, "event", name, fields, sizeof fields / sizeof *fields, e);
}

/* Values of a tensor on the host: of one that is trained out of the state's array. *ret_own as of array_view(). */
static const void *values_of(const struct train_state *s, const struct tensor *t,
                             float **ret_own, struct error *e)
{
    *ret_own = NULL;
    return t->on_device
               ? array_view(&s->device, s->value, t->data, t->parameter.count, ret_own, e)
               : t->data;
}

/* own: [tensors], zeroed */
static int add_tensors(const struct run *r, struct safetensors *out, float **own,
                       struct error *e)
{
    const struct weights *w = &r->engine->weights;
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct tensor *t = &w->tensor[k];
        const void *values = values_of(r->state, t, &own[k], e);
        char name[PARAMETER_NAME_BYTES];
        if (!values)
            return -1;
        parameter_file_name(&t->parameter, &r->engine->config, name);
        safetensors_add(out, name, "F32", t->parameter.rank, t->parameter.shape, values);
    }
    return 0;
}

static int write_file(const struct run *r, const struct safetensors *out, struct error *e)
{
    struct whole_file file;
    char *path = path_join(r->folder.path, "model.safetensors");
    whole_file_begin(&file, path);
    safetensors_stream(out, whole_file_write, &file);
    free(path);
    return whole_file_end(&file, e);
}

/* All tensors of the model in f32: those that are trained are the state's, others were written so when the run began. */
int run_save_model(const struct run *r, struct error *e)
{
    const uint32_t count = r->engine->weights.n_tensors;
    struct safetensors out = {0};
    float **own = memory_new(count, sizeof *own);
    safetensors_add_metadata(&out, "format", "pt"); /* transformers asks for it */
    int result = add_tensors(r, &out, own, e);
    if (result == 0)
        result = write_file(r, &out, e);
    for (uint32_t k = 0; k < count; k++)
        free(own[k]);
    free(own);
    safetensors_finish(&out);
    if (result < 0 || (r->learner && learner_save(r->learner, r->folder.path, e) < 0))
        return -1;
    return folder_sync(r->folder.path, e);
}

static int not_finite(struct run *r, struct error *e)
{
    struct error ignored = {0};
    run_log_event(r, "nan", &ignored);
    return error_set(e, ERROR_FALSE,
                     "step %llu: a parameter is not finite; what was saved before stays",
                     (unsigned long long)r->facts.step);
}

static int check_finite(struct run *r, const struct train_state *s, struct error *e)
{
    bool finite;
    if (s->device.does->array_is_finite(s->device.state, s->value, s->count, &finite, e) < 0)
        return -1;
    return finite ? 0 : not_finite(r, e);
}

bool run_model_is_newest(const struct run *r)
{
    return !r->options.task || r->facts.best_step == r->facts.step;
}

/* Writes the files of the first rank. */
static int write_all(struct run *r, const struct snapshot_of *of, struct error *e)
{
    if (snapshot_write(r->folder.path, &r->facts, of, e) < 0 ||
        (run_model_is_newest(r) && run_save_model(r, e) < 0))
        return -1;
    snapshot_prune(r->folder.path, r->options.keep);
    return run_log_event(r, "save", e);
}

int run_save(struct run *r, struct error *e)
{
    const struct comm *comm = run_comm(r);
    struct snapshot_of of = {r->state, r->learner ? &r->learner->alpha : NULL, r->engine};
    struct train_state collected = {0};
    int result = check_finite(r, of.state, e);
    if (result == 0 && of.alpha)
        result = check_finite(r, of.alpha, e);
    if (comm_agree(comm, result, e) < 0 || run_ranks_check(r, true, e) < 0)
        return -1;
    if (r->watch->tell)
        r->watch->tell("saving");
    if (r->state->moments.count < r->state->count) {
        result =
            shards_collect(comm, r->state, trainer_needs_pieces(&r->options), &collected, e);
        of.state = &collected;
    }
    if (result == 0)
        result = comm_agree(comm, comm->rank ? 0 : write_all(r, &of, e), e);
    shards_drop(&collected);
    if (result < 0)
        return -1;
    r->saved = r->facts.step;
    return 0;
}
