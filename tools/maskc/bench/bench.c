/* SPDX-License-Identifier: Apache-2.0 */
/* maskc bench: our kernel and our own dense kernel of the same shape, and where ours has a bias or drops out the same one
   without: the arguments, and a result for each mask, length, dtype and pass. */
#include "masks/base/memory.h"
#include "runtime/base/cache.h"
#include "tools/common/figure.h"
#include "tools/maskc/bench/contest.h"
#include "tools/maskc/bench/measure_plans.h"
#include "tools/maskc/command.h"
#include "tools/maskc/progress.h"
#include <stdlib.h>
#include <string.h>

/* Refuses options that only a mask has. */
static int check_file_options(const struct options *o, const char *path, struct error *e)
{
    if (o->n_lengths || o->dtype || o->target)
        return error_set(
            e, ERROR_INPUT,
            "%s: a kernel file has its own length, dtype and targets: no -n, --dtype, --target",
            path);
    if (o->measure_plans || o->heads || o->head_dim || o->transform || o->bias || o->machine ||
        o->family || o->kv_heads || o->kv_length || o->tensor || o->dam || o->border ||
        o->has_threshold || o->has_keep || o->has_hops || o->order || o->align)
        return error_set(e, ERROR_INPUT,
                         "%s: a kernel file is compiled: no options of the mask or the kernel",
                         path);
    return 0;
}

static int bench_file(struct bench *b, const char *path, struct error *e)
{
    struct maskc_kernel *k;
    if (check_file_options(b->o, path, e) || command_load(path, b->o->device, &k, e))
        return -1;
    if (!command_check_layer(b->o, k->artifact, path, e))
        return bench_kernel(b, k, path, e);
    maskc_kernel_destroy(k);
    return -1;
}

static const char *default_target(const struct options *o)
{
    if (o->device && !strncmp(o->device, "cuda", 4))
        return o->device; /* as a target: that GPU's own */
    return o->device && !strcmp(o->device, "emulated") ? "sm_80" : "cpu";
}

/* The plans of the mask beside each other; *ret is the fastest. */
static int race(const struct bench *b, struct compile_request *r, const struct mask *m,
                const char *name, struct plan_choice *ret, struct error *e)
{
    const struct options *o = b->o;
    const struct machine *machine =
        machine_choose(r->machine, r->calibration, r->targets[0], &r->request, e);
    r->request.length = m->n;
    const struct plan_race race = {.name = name,
                                   .compiler = &b->compiler,
                                   .mask = m,
                                   .target = r->targets[0],
                                   .request = &r->request,
                                   .machine = machine,
                                   .family = r->plan.family,
                                   .plans = o->measure_plans,
                                   .problem = bench_problem(o, m, &r->request, 0)};
    return machine && !problem_fits(&race.problem, e) ? measure_plans(&race, ret, e) : -1;
}

static int bench_mask(struct bench *b, const char *name, uint32_t n, const char *dtype,
                      struct error *e)
{
    const struct target *target[ARTIFACT_MAX_TARGETS];
    struct compile_request r;
    struct options o = *b->o;
    struct maskc_kernel *k;
    o.dtype = dtype;
    o.forward_only = o.forward_only || !b->backward;
    o.with_dropout = o.dropout > 0;
    if (command_one_target(&o, default_target(&o), target, &r, e))
        return -1;
    struct mask *m = options_kernel_mask(&o, name, n, 12, &r.request, e);
    struct plan_choice choice = {0};
    struct bench_compiler best = b->compiler;
    best.plan = r.plan;
    int code = m ? 0 : -1;
    if (!code && o.measure_plans) {
        code = race(b, &r, m, name, &choice, e);
        best.plan.forward = choice.forward;
        best.plan.transposed = choice.transposed;
    }
    code = code || bench_compile(&best, m, target[0], &r.request, &k, e) ? -1 : 0;
    mask_destroy(m);
    return code ? -1 : bench_kernel(b, k, name, e);
}

/* Every length with every dtype; a mask without -n has its own. */
static int bench_all(struct bench *b, const char *name, struct error *e)
{
    char *list = memory_text(b->o->dtype ? b->o->dtype : "f32,bf16"), *rest = list;
    int code = 0;
    for (char *dtype; !code && (dtype = strsep(&rest, ","));)
        for (uint32_t k = 0; !code && k < (b->o->n_lengths ? b->o->n_lengths : 1); k++)
            code = bench_mask(b, name, b->o->length[k], dtype, e);
    free(list);
    return code;
}

static int bench_argument(struct bench *b, const char *name, struct error *e)
{
    const struct options *given = b->o;
    struct options own = *given;
    if (has_suffix(name, ".mkb"))
        return bench_file(b, name, e);
    if (options_take_model(&own, name, true, e) < 0)
        return -1;
    if (own.model_note)
        command_note(own.model_note);
    b->o = b->compiler.o = &own;
    const int code = bench_all(b, name, e);
    b->o = b->compiler.o = given;
    free(own.model_note);
    return code;
}

static int read_passes(struct bench *b, struct error *e)
{
    char *list = memory_text(b->o->pass ? b->o->pass : "forward,backward"), *rest = list;
    int code = 0;
    for (char *word; (word = strsep(&rest, ","));)
        if (!strcmp(word, "forward"))
            b->forward = true;
        else if (!strcmp(word, "backward"))
            b->backward = true;
        else
            code =
                error_set(e, ERROR_INPUT, "--pass: '%s' is neither forward nor backward", word);
    b->backward = b->backward && !b->o->forward_only;
    free(list);
    if (!code && !b->forward && !b->backward)
        code = error_set(e, ERROR_INPUT, "--pass backward and --forward-only leave nothing");
    return code;
}

static int bench(const struct options *o, struct error *e)
{
    struct bench b = {.o = o, .compiler.o = o};
    const struct figure figure = {"times", o->plot, o->columns};
    if (!(o->dropout >= 0 && o->dropout < 1))
        return error_set(e, ERROR_INPUT, "--dropout %g: 0 <= P < 1 is expected", o->dropout);
    if (options_check_seconds(o, e) || options_check_clock(o, e) || read_passes(&b, e) ||
        (o->plot && figure_ready(&figure, e)))
        return -1;
    b.compiler.cache = cache_open(NULL);
    int code = 0;
    for (uint32_t k = 0; k < o->n_arguments && !code; k++)
        code = bench_argument(&b, o->argument[k], e);
    progress_clear();
    if (!code && o->plot)
        code = figure_draw(&figure, bench_json(b.device, b.threads, b.result, b.n_results), e);
    if (!code && o->json)
        command_print_json(bench_json(b.device, b.threads, b.result, b.n_results));
    else if (!code)
        bench_print_table(b.device, b.threads, b.result, b.n_results, o->wide);
    if (!code && !o->json && !options_own_clock(o))
        bench_say_busy(b.threads, b.result, b.n_results);
    free(b.result);
    cache_close(b.compiler.cache);
    return code;
}

int command_bench(const struct options *o)
{
    struct error e = {0};
    return bench(o, &e) ? command_fail(&e) : 0;
}
