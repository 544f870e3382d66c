/* SPDX-License-Identifier: Apache-2.0 */
/* A run for an objective by name, for objective_test.py and tests/style/toys: objective_run NAME MODEL DATA RUN STEPS.
   Evaluates over the same data every tenth step. */
#include "model/train/run/run.h"
#include <stdio.h>
#include <stdlib.h>

static bool stop(void)
{
    return false;
}

static void say(const char *line)
{
    puts(line);
}

int main(int argc, char **argv)
{
    static const struct run_watch watch = {.stop = stop, .say = say};
    struct error e = {0};
    struct run_result result;
    if (argc != 6)
        return 2;
    const struct run_options o = {
        .model = argv[2],
        .data = argv[3],
        .run = argv[4],
        .steps = strtoull(argv[5], NULL, 10),
        .batch = 16,
        .accumulate = 1,
        .optimizer = {OPTIMIZER_ADAMW, 0.9, 0.999, 1e-8, 0.01, 1, true},
        .rate = 3e-3,
        .decay = SCHEDULE_CONSTANT,
        .hidden_dropout = 0.1,
        .objective = objective_find(argv[1]),
        .dtype = ELEMENT_F32,
        .seed = 1,
        .threads = 2,
        .eval_every = 10,
        .keep = 1};
    if (!o.objective) {
        fprintf(stderr, "%s: no such objective\n", argv[1]);
        return 2;
    }
    if (run_train(&o, &watch, &result, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return (int)e.kind;
    }
    return 0;
}
