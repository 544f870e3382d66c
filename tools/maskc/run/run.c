/* SPDX-License-Identifier: Apache-2.0 */
/* maskc run: a kernel on tensors from .npy files. Everything is read and checked before anything is
   launched, and nothing is written before everything has worked. */
#include "tools/maskc/run/run.h"
#include "masks/base/memory.h"
#include "tools/maskc/command.h"
#include <stdlib.h>

static int launch(const struct options *o, const struct maskc_kernel *k,
                  const struct run_inputs *in, struct error *e)
{
    uint64_t *row = run_inputs_rows(in);
    struct problem_data *d = memory_new(1, sizeof *d);
    d->q = run_inputs_tensor(in, &in->query, row);
    d->k = run_inputs_tensor(in, &in->key, row);
    d->v = run_inputs_tensor(in, &in->value, row);
    d->d_o = o->grad ? run_inputs_tensor(in, &in->grad, row) : NULL;
    d->x = o->bias_array ? run_inputs_bias(in) : NULL;
    int code = kernel_run_problem(k, &in->p, d, o->grad != NULL, o->threads, e);
    if (!code)
        code = run_outputs_save(in, o->output, d, row, o->diagonals, e);
    problem_data_destroy(d);
    free(row);
    return code;
}

static int run(const struct options *o, struct error *e)
{
    struct run_inputs in = {0};
    struct maskc_kernel *k = NULL;
    if (!o->query || !o->key || !o->value || !o->output)
        return error_set(e, ERROR_INPUT, "run needs --query, --key, --value and -o DIR");
    if (o->sequence_lengths && o->offsets)
        return error_set(e, ERROR_INPUT, "run takes --lengths or --offsets, not both");
    int code = command_load(o->argument[0], o->device, &k, e);
    if (!code)
        code = run_inputs_open(o, k, &in, e);
    if (!code)
        code = launch(o, k, &in, e);
    run_inputs_finish(&in);
    maskc_kernel_destroy(k);
    return code;
}

int command_run(const struct options *o)
{
    struct error e = {0};
    return run(o, &e) ? command_fail(&e) : 0;
}
