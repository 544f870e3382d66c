/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/run_ranks.h"
#include "masks/base/hash.h"
#include "masks/base/memory.h"
#include "model/backend/mirror.h"
#include "model/comm/nccl/nccl.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct comm *run_comm(const struct run *r)
{
    return r->options.comm ? r->options.comm : &comm_alone;
}

bool run_is_first(const struct run *r)
{
    return run_comm(r)->rank == 0;
}

int run_ranks_go_on(const struct run *r, bool *ret, struct error *e)
{
    const struct run_options *o = &r->options;
    struct stat s;
    uint64_t there =
        run_is_first(r) && o->goes_on && stat(o->run, &s) == 0 && S_ISDIR(s.st_mode);
    if (run_comm(r)->sum_u64(run_comm(r), &there, 1, e) < 0)
        return -1;
    *ret = there;
    return 0;
}

/* ---- options ---- */

static int compare(struct run *r, const char *first, struct error *e)
{
    json_t *json = json_loads(first, 0, NULL);
    const json_t *threads = json_object_get(json, "snap_threads");
    int result = run_options_same(json, r->json, e);
    if (r->options.learn.snap > 0 && json_is_integer(threads))
        r->options.learn.snap_threads = (uint32_t)json_integer_value(threads);
    json_decref(json);
    return result;
}

int run_ranks_compare(struct run *r, struct error *e)
{
    const struct comm *c = run_comm(r);
    if (c->size == 1)
        return 0;
    char *own = json_dumps(r->json, JSON_COMPACT | JSON_REAL_PRECISION(17));
    char *first = comm_share_text(c, own, e);
    int result = first ? compare(r, first, e) : -1;
    free(own);
    free(first);
    return comm_agree(c, result, e);
}

/* ---- parameters ---- */

static int hash_values(const struct train_state *s, uint64_t seed, uint64_t *ret,
                       struct error *e)
{
    float *own;
    const float *values = array_view(&s->device, s->value, s->value, s->count, &own, e);
    if (!values)
        return -1;
    *ret = XXH3_64bits_withSeed(values, s->count * sizeof *values, seed);
    free(own);
    return 0;
}

/* The hash of the parameters, and of alpha where a mask is learned. */
static int hash_all(const struct run *r, uint64_t *ret, struct error *e)
{
    const int result = hash_values(r->state, r->facts.step, ret, e);
    return result == 0 && r->learner ? hash_values(&r->learner->alpha, *ret, ret, e) : result;
}

/* Sets *ret to the first rank that has other parameters than rank 0; to 0: none has. */
static int find_other(const struct run *r, uint32_t *ret, struct error *e)
{
    const struct comm *c = run_comm(r);
    *ret = 0;
    if (c->size == 1)
        return 0;
    uint64_t *hash = memory_new(c->size, sizeof *hash);
    int result = comm_agree(c, hash_all(r, &hash[c->rank], e), e);
    if (result == 0)
        result = c->sum_u64(c, hash, c->size, e);
    for (uint32_t k = c->size; k-- > 1;)
        *ret = hash[k] != hash[0] ? k : *ret;
    free(hash);
    return result;
}

int run_ranks_check(const struct run *r, bool saves, struct error *e)
{
    uint32_t other;
    if (find_other(r, &other, e) < 0)
        return -1;
    if (!other)
        return 0;
    return saves ? error_set(e, ERROR_FALSE,
                             "rank %u: step %llu: other parameters than on rank 0; what was "
                             "saved before stays",
                             other, (unsigned long long)r->facts.step)
                 : error_set(e, ERROR_FALSE,
                             "rank %u: begins with other parameters than rank 0; RUN must lie "
                             "in a folder that all ranks share",
                             other);
}

/* ---- GPUs ---- */

/* The emulated device has a mock of NCCL in the tests only: the library reads a GPU's memory. */
static int check_device(const struct run *r, struct error *e)
{
    return strcmp(r->engine->device, "emulated") != 0 || getenv("MASKC_NCCL")
               ? 0
               : error_set(e, ERROR_UNAVAILABLE,
                           "--device emulated: NCCL needs GPUs; several ranks train there, or "
                           "on CPUs (--device cpu)");
}

int run_ranks_use_nccl(struct run *r, struct error *e)
{
    const struct comm *c = run_comm(r);
    if (!strcmp(r->engine->device, "cpu") || (c->size == 1 && !r->options.nccl_alone))
        return 0;
    if (check_device(r, e) < 0)
        return -1;
    r->nccl = comm_nccl(c, &r->state->device, &nccl_limits, e);
    if (!r->nccl)
        return -1;
    r->options.comm = r->trainer.comm = r->nccl;
    return 0;
}

/* ---- time ---- */

int run_ranks_time(struct run *r, bool *stop, struct error *e)
{
    const struct comm *c = run_comm(r);
    uint64_t asked = r->watch->stop();
    double elapsed = c->rank ? 0 : r->facts.elapsed;
    if (c->sum_u64(c, &asked, 1, e) < 0 || c->sum_f64(c, &elapsed, 1, e) < 0)
        return -1;
    *stop = asked;
    r->facts.elapsed = elapsed;
    return 0;
}
