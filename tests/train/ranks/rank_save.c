/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from thread_ranks.c, which has the runs of a mask. */
#include "model/train/run/run_save.h"
#include "tests/train/ranks/thread_ranks.h"

void *rank_save(void *of)
{
    static const struct run_watch silent = {0};
    struct rank *rank = of;
    struct run r = {.options.comm = &rank->comm,
                    .watch = &silent,
                    .state = rank->trainer.state,
                    .learner = rank->trainer.learner,
                    .engine = rank->trainer.engine,
                    .facts.step = 7};
    rank->result = run_save(&r, &rank->error);
    return NULL;
}
