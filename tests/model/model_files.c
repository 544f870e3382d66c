/* SPDX-License-Identifier: Apache-2.0 */
/* See model_files.h. */
#include "tests/model/model_files.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/safetensors.h"
#include "model/checkpoint/json.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

char model_folder[] = "/tmp/maskbert-model-XXXXXX";

int model_begin(void **state)
{
    (void)state;
    return mkdtemp(model_folder) ? 0 : -1;
}

int model_end(void **state)
{
    (void)state;
    char line[100];
    snprintf(line, sizeof line, "rm -r %s", model_folder);
    return system(line);
}

void model_write(const char *name, const void *bytes, size_t size)
{
    struct error e = {0};
    char *path = path_join(model_folder, name);
    if (file_write(path, bytes, size, &e) < 0)
        fail_msg("%s", e.text);
    free(path);
}

void model_write_or_remove(const char *name, const char *text)
{
    char *path = path_join(model_folder, name);
    remove(path);
    free(path);
    if (text)
        model_write(name, text, strlen(text));
}

static const char config[] =
    "{\"architectures\": [\"%s\"], \"model_type\": \"bert\", \"vocab_size\": 13, "
    "\"hidden_size\": 8, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 12, \"max_position_embeddings\": 6, \"kept\": [1, 2.5]%s}";

struct model_config model_make_config(const char *architecture, const char *more)
{
    struct text text = {0};
    struct model_config c = {0};
    struct error e = {0};
    text_add(&text, config, architecture, more); /* NOLINT: a constant format */
    json_t *json = json_parse(text_get(&text), text.length, "config", &e);
    if (!json || config_parse(json, &c, &e) < 0)
        fail_msg("%s", e.text);
    json_decref(json);
    text_finish(&text);
    return c;
}

static void rename_tensor(const struct change *c, char name[PARAMETER_NAME_BYTES])
{
    char *at = c->from ? strstr(name, c->from) : NULL, rest[PARAMETER_NAME_BYTES];
    if (!at)
        return;
    snprintf(rest, sizeof rest, "%s", at + strlen(c->from));
    snprintf(at, (size_t)(PARAMETER_NAME_BYTES - (at - name)), "%s%.60s", c->to, rest);
}

void model_write_weights(const struct model_config *c, const struct weights *w,
                         const struct change *change, const char *file, int which)
{
    struct safetensors out = {0};
    void **made = memory_new(w->n_tensors, sizeof *made);
    uint64_t size;
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct tensor *t = &w->tensor[k];
        const struct parameter *p = &t->parameter;
        bool hit = !change->name || !strcmp(change->name, p->name);
        enum element element = ELEMENT_F32;
        char name[PARAMETER_NAME_BYTES];
        if ((hit && change->left_out) || (which >= 0 && (int)(k & 1) != which))
            continue;
        parameter_file_name(p, c, name);
        if (hit)
            rename_tensor(change, name);
        if (hit && change->dtype)
            element_parse(change->dtype, &element);
        uint64_t shape[2] = {hit && change->rows ? change->rows : p->shape[0], p->shape[1]};
        float *values = memory_new(p->count + 1024, sizeof *values);
        made[k] = memory_new(p->count + 1024, sizeof(double));
        tensor_to_f32(t, 0, p->count, values);
        if (hit && change->nan)
            values[p->count - 1] = NAN;
        elements_from_f32(element, values, p->count + 512, made[k]);
        free(values);
        safetensors_add(&out, name, element_name(element), p->rank, shape, made[k]);
    }
    uint8_t *bytes = safetensors_write(&out, &size);
    model_write(file, bytes, size);
    free(bytes);
    for (uint32_t k = 0; k < w->n_tensors; k++)
        free(made[k]);
    free(made);
    safetensors_finish(&out);
}

void must_be_equal(const struct weights *a, const struct weights *b, double tolerance)
{
    for (uint32_t k = 0; k < a->n_tensors; k++) {
        const struct tensor *x = &a->tensor[k], *y = weights_find(b, x->parameter.name);
        float p, q;
        assert_non_null(y);
        for (uint64_t i = 0; i < x->parameter.count && y->data; i++) {
            tensor_to_f32(x, i, 1, &p);
            tensor_to_f32(y, i, 1, &q);
            if (!(fabs((double)p - (double)q) <= tolerance * fabs((double)p)))
                fail_msg("%s: %g and %g", x->parameter.name, (double)p, (double)q);
        }
    }
}
