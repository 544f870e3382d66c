/* SPDX-License-Identifier: Apache-2.0 */
/* maskbert pretrain: options to a run. */
#include "masks/base/text.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include "tools/maskbert/train/pretrain_options.h"
#include "tools/maskbert/train/pretrain_report.h"
#include "tools/maskbert/train/ranks.h"
#include "tools/maskbert/train/run_signals.h"
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void print(const struct options *o, const char *run, const struct run_result *r)
{
    if (!o->json)
        return;
    struct metric metric[METRICS_MOST];
    json_t *json = json_pack("{s:s, s:I, s:I, s:o}", "run", run, "step", (json_int_t)r->step,
                             "tokens", (json_int_t)r->tokens, "loss", real_or_null(r->loss));
    const uint32_t metrics = r->objective->step_metrics(r->mean, metric);
    for (uint32_t k = 0; k < metrics; k++)
        json_object_set_new(json, metric[k].name, real_or_null(metric[k].value));
    json_object_set_new(json, "elapsed_s", json_real(r->elapsed));
    if (r->device_bytes) {
        json_object_set_new(json, "launches", json_integer((json_int_t)r->launches));
        json_object_set_new(json, "device_bytes", json_integer((json_int_t)r->device_bytes));
    }
    json_object_set_new(json, "interrupted", json_boolean(r->interrupted));
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(json);
}

/* One run: 0, or the exit code. */
static int train(const struct options *o, const struct ranks *ranks,
                 const struct run_options *r)
{
    struct error e = {0};
    struct run_result result;
    if (run_train(r, ranks_watch(ranks), &result, &e) < 0)
        return ranks_fail(ranks, &e);
    if (ranks_first(ranks)) {
        print(o, r->run, &result);
        pretrain_summary(r, &result);
    }
    return result.interrupted ? EXIT_INTERRUPTED : 0;
}

/* Trains RUN-1 to RUN-N until one fails; with --resume finished ones return at once. */
static int repeat(const struct options *o, const struct ranks *ranks, struct run_options r)
{
    int code = 0;
    for (r.repeat = 1; r.repeat <= o->repeats && code == 0; r.repeat++) {
        struct text name = {0};
        text_add(&name, "%s-%u", o->output, r.repeat);
        r.run = text_get(&name);
        code = train(o, ranks, &r);
        text_finish(&name);
    }
    return code;
}

int command_pretrain(const struct options *o)
{
    struct error e = {0};
    struct run_options r;
    struct ranks ranks;
    int code;
    run_hold_signals();
    int result = ranks_begin(o, &ranks, &e);
    if (result == 0 && ranks.ended)
        return ranks.code;
    if (result == 0)
        result = comm_agree(ranks.comm, pretrain_options(o, &r, &e), &e);
    if (result < 0)
        code = ranks_fail(&ranks, &e);
    else {
        ranks_set(&ranks, &r);
        code = o->repeats ? repeat(o, &ranks, r) : train(o, &ranks, &r);
    }
    ranks_finish(&ranks);
    return code;
}
