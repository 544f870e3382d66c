/* SPDX-License-Identifier: Apache-2.0 */
/* The module Dense of a sentence-transformers folder: a line of config.json, then its tensors. What is accepted runs, and
   gives numbers. */
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/sentence_dense.h"
#include "tests/fuzz/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void run(const struct sentence_dense *d)
{
    float *x = memory_new(d->in, sizeof *x), *y = memory_new(d->out, sizeof *y);
    sentence_dense_run(d, x, y);
    for (uint32_t k = 0; k < d->out; k++)
        if (isnan(y[k]))
            abort();
    free(x);
    free(y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error e = {0};
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    if (!end)
        return 0;
    const size_t line = (size_t)(end - data);
    json_t *json = json_parse((const char *)data, line, "FUZZ", &e);
    struct sentence_dense *d =
        json ? sentence_dense_parse(json, end + 1, size - line - 1, "FUZZ", &e) : NULL;
    if (d)
        run(d);
    else
        check_refusal(&e);
    sentence_dense_destroy(d);
    json_decref(json);
    return 0;
}
