/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_save.h"
#include "model/base/whole_file.h"
#include "model/checkpoint/json.h"
#include <stdlib.h>

int run_log_event(struct run *r, const char *name, struct error *e)
{
    const struct log_field fields[] = {{"step", (double)r->facts.step},
                                       {"tokens", (double)r->facts.tokens},
                                       {"elapsed_s", r->facts.elapsed}};
    return run_log_write(&r->log, "event", name, fields, sizeof fields / sizeof *fields, e);
}

/* All tensors of the model in f32: those that are trained lie in the state, others were written so when the run began. */
int run_save_model(const struct run *r, struct error *e)
{
    const struct weights *w = &r->engine->weights;
    struct safetensors out = {0};
    struct whole_file file;
    char *path = path_join(r->folder.path, "model.safetensors");
    safetensors_add_metadata(&out, "format", "pt"); /* transformers asks for it */
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct tensor *t = &w->tensor[k];
        char name[PARAMETER_NAME_BYTES];
        parameter_file_name(&t->parameter, &r->engine->config, name);
        safetensors_add(&out, name, "F32", t->parameter.rank, t->parameter.shape, t->data);
    }
    whole_file_begin(&file, path);
    safetensors_stream(&out, whole_file_write, &file);
    int result = whole_file_end(&file, e);
    safetensors_finish(&out);
    free(path);
    if (result < 0 || (r->learner && learner_save(r->learner, r->folder.path, e) < 0))
        return -1;
    return folder_sync(r->folder.path, e);
}

static bool is_finite(const struct train_state *s)
{
    return elements_not_finite(ELEMENT_F32, s->value, s->count) == s->count;
}

int run_save(struct run *r, struct error *e)
{
    const struct snapshot_of of = {r->state, r->learner ? &r->learner->alpha : NULL, r->engine};
    if (!is_finite(of.state) || (of.alpha && !is_finite(of.alpha))) {
        struct error ignored = {0};
        run_log_event(r, "nan", &ignored);
        return error_set(e, ERROR_FALSE,
                         "step %llu: a parameter is not finite; what was saved before stays",
                         (unsigned long long)r->facts.step);
    }
    if (r->watch->tell)
        r->watch->tell("saving");
    if (snapshot_write(r->folder.path, &r->facts, &of, e) < 0 || run_save_model(r, e) < 0)
        return -1;
    r->saved = r->facts.step;
    snapshot_prune(r->folder.path, r->options.keep);
    return run_log_event(r, "save", e);
}
