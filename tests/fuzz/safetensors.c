/* SPDX-License-Identifier: Apache-2.0 */
/* The container: what is read lies inside the file, and what is written of it is read again. */
#include "masks/safetensors.h"
#include "tests/fuzz/check.h"
#include <stdlib.h>
#include <string.h>

static void hold(int promise)
{
    if (!promise)
        abort();
}

static struct safetensors copy(const struct safetensors *s)
{
    struct safetensors c = {0};
    for (uint32_t k = 0; k < s->n_metadata; k++)
        safetensors_add_metadata(&c, s->metadata[k].key, s->metadata[k].value);
    for (uint32_t k = 0; k < s->n_tensors; k++) {
        const struct safetensor *t = &s->tensor[k];
        safetensors_add(&c, t->name, t->dtype, t->rank, t->shape, t->data);
    }
    return c;
}

static void check_written(const struct safetensors *s)
{
    uint64_t size;
    struct safetensors out = copy(s), again;
    struct error e = {0};
    uint8_t *bytes = safetensors_write(&out, &size);
    hold(safetensors_parse(bytes, size, "AGAIN", &again, &e) == 0);
    hold(again.n_tensors == s->n_tensors && again.n_metadata == s->n_metadata);
    for (uint32_t k = 0; k < s->n_tensors; k++) {
        const struct safetensor *a = &s->tensor[k], *b = safetensors_find(&again, a->name);
        hold(b && a->size == b->size && (!a->size || !memcmp(a->data, b->data, a->size)));
    }
    safetensors_finish(&again);
    safetensors_finish(&out);
    free(bytes);
}

static void check_places(const struct safetensors *s, const uint8_t *data, size_t size)
{
    for (uint32_t k = 0; k < s->n_tensors; k++)
        hold(s->tensor[k].data >= data && s->tensor[k].size <= size &&
             (uint64_t)(s->tensor[k].data - data) <= size - s->tensor[k].size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors s;
    struct error e = {0};
    if (safetensors_parse_any(data, size, "FUZZ", &s, &e) < 0) {
        check_refusal(&e);
        hold(safetensors_parse(data, size, "FUZZ", &s, &e) < 0);
        return 0;
    }
    check_places(&s, data, size);
    safetensors_finish(&s);
    if (safetensors_parse(data, size, "FUZZ", &s, &e) < 0) {
        check_refusal(&e);
        return 0;
    }
    check_places(&s, data, size);
    check_written(&s);
    safetensors_finish(&s);
    return 0;
}
