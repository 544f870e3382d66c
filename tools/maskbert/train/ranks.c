/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/train/ranks.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "model/comm/plugin.h"
#include "model/comm/tcp/address.h"
#include "model/comm/tcp/tcp.h"
#include "tools/maskbert/command.h"
#include "tools/maskbert/session.h"
#include "tools/maskbert/train/pretrain_report.h"
#include "tools/maskbert/train/relaunch.h"
#include "tools/maskbert/train/run_signals.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables of a launcher. Slurm sets its own for the steps of a job: one process is a plain command inside sbatch. */
struct launcher {
    const char *name, *size, *rank;
    bool needs_rank;  /* without a rank it is none of ours */
    bool is_mpi;      /* its processes are MPI's */
    bool of_one;      /* one process is a rank, too */
    const char *mark; /* another variable that it always sets, or null */
};

/* torchrun first: its processes inherit the variables of an srun or mpirun that started torchrun on each machine. */
static const struct launcher launchers[] = {
    {"torchrun", "WORLD_SIZE", "RANK", true, false, true, "TORCHELASTIC_RUN_ID"},
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", false, true, true, NULL},
    {"mpirun", "PMI_SIZE", "PMI_RANK", false, true, true, NULL},
    {"mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", false, true, true, NULL},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", true, false, false, NULL},
    {"torchrun", "WORLD_SIZE", "RANK", false, false, true, NULL},
};

static uint32_t number(const char *variable)
{
    const char *text = getenv(variable);
    const long value = text ? strtol(text, NULL, 10) : 0;
    return value > 0 && value < 1 << 20 ? (uint32_t)value : 0;
}

/* Null: the process was started alone. */
static const struct launcher *launcher_of(const struct options *o)
{
    for (size_t k = 0; k < sizeof launchers / sizeof *launchers && o->ranks != 1; k++) {
        const struct launcher *l = &launchers[k];
        if (number(l->size) > !l->of_one && (!l->needs_rank || getenv(l->rank)) &&
            (!l->mark || getenv(l->mark)))
            return l;
    }
    return NULL;
}

/* ---- the plug-in ---- */

static char *beside_program(const char *file)
{
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    struct text path = {0};
    if (n <= 0)
        return NULL;
    program[n] = 0;
    *strrchr(program, '/') = 0;
    text_add(&path, "%s/%s", program, file);
    return text_take(&path);
}

/* Where the plug-in may be. */
struct places {
    char *file[2];
};

static struct places places_find(void)
{
    return (struct places){{beside_program("maskbert-mpi.so"),
                            beside_program(MASKBERT_PLUGINS "/maskbert-mpi.so")}};
}

static bool places_have(const struct places *p)
{
    return (p->file[0] && access(p->file[0], R_OK) == 0) ||
           (p->file[1] && access(p->file[1], R_OK) == 0);
}

static void places_finish(struct places *p)
{
    free(p->file[0]);
    free(p->file[1]);
}

/* Checks that MPI and the launcher's variables agree on the processes. */
static int check(const struct launcher *l, const struct comm *c, uint32_t size, struct error *e)
{
    return c->size == size
               ? 0
               : error_set(e, ERROR_UNAVAILABLE,
                           "%s started %u processes, and MPI sees %u: start them with its own "
                           "mpirun -n %u, or srun --mpi=pmix",
                           l->name, size, c->size, size);
}

/* An MPI that its launcher did not start would find one process, or end it. Variables of a launcher around torchrun are those of
   another process. */
static bool is_started_by_mpi(const struct launcher *l)
{
    static const char *const variables[] = {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_FD",
                                            "PMI_PORT"};
    for (size_t k = 0; k < sizeof variables / sizeof *variables && !l->mark; k++)
        if (getenv(variables[k]))
            return true;
    return l->is_mpi && getenv("OMPI_COMM_WORLD_LOCAL_RANK");
}

/* Names that the processes of one launch have in common. MASTER_ADDR is not: each machine may have its own name for rank 0.
   Nor are Slurm's where torchrun was started by one srun for each machine. */
static char *group_of(const struct launcher *l)
{
    static const char *const variables[] = {"MASTER_PORT", "TORCHELASTIC_RUN_ID",
                                            "SLURM_JOB_ID", "SLURM_STEP_ID"};
    const size_t of_torchrun = 2, all = sizeof variables / sizeof *variables;
    struct text t = {0};
    for (size_t k = 0; k < (l->mark ? of_torchrun : all); k++) {
        const char *value = getenv(variables[k]);
        text_add(&t, "%s;", value ? value : "");
    }
    return text_take(&t);
}

/* True if all processes are on this machine, as far as the launcher's variables tell. */
static bool is_local(uint32_t size)
{
    const uint32_t local = number("LOCAL_WORLD_SIZE"), nodes = number("SLURM_STEP_NUM_NODES");
    return local ? local == size : nodes <= 1;
}

static int start_again(const struct launcher *l, uint32_t size, struct ranks *ret,
                       struct error *e)
{
    if (!is_local(size))
        return error_set(e, ERROR_INPUT,
                         "%s started %u processes on several machines without MPI: "
                         "mpirun -n %u --host .. maskbert .. or srun --mpi=pmix starts ranks",
                         l->name, size, size);
    char *group = group_of(l);
    const struct relaunch r = {l->name, number(l->rank), size, group};
    ret->ended = true;
    const int result = relaunch(&r, &ret->code, e);
    free(group);
    return result;
}

/* ---- GPUs ---- */

static bool is_on_gpu(const struct options *o)
{
    return o->device && strcmp(o->device, "cpu") != 0;
}

/* The variable with this rank's number among those of its machine, or null. */
static const char *local_variable(void)
{
    static const char *const variables[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                            "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                            "SLURM_LOCALID"};
    for (size_t k = 0; k < sizeof variables / sizeof *variables; k++)
        if (getenv(variables[k]))
            return variables[k];
    return NULL;
}

/* Each rank of a machine has a GPU of its own, unless its launcher shows it only one. */
static void choose_gpu(const struct options *o, struct ranks *ret)
{
    const char *variable = local_variable();
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!o->device || strcmp(o->device, "cuda") != 0 || (visible && !strchr(visible, ',')))
        return;
    if (variable)
        snprintf(ret->device, sizeof ret->device, "cuda:%u", number(variable));
}

enum { STORE_OFFSET = 1, MEET_SECONDS = 300 };

/* The port next to MASTER_PORT where torchrun's own store has that one. Null with *e set. */
static char *place_of(const struct launcher *l, const struct options *o, struct error *e)
{
    const char *host = getenv("MASTER_ADDR"), *store = getenv("TORCHELASTIC_USE_AGENT_STORE");
    const uint32_t port = number("MASTER_PORT");
    struct text t = {0};
    if (o->rendezvous)
        return memory_text(o->rendezvous);
    if (!host || !port) {
        error_set(
            e, ERROR_INPUT,
            "%s started ranks on GPUs: --rendezvous FILE, in a folder that all see, or "
            "tcp://HOST:PORT of rank 0 says where they meet (or MASTER_ADDR and MASTER_PORT)",
            l->name);
        return NULL;
    }
    text_add(&t, strchr(host, ':') ? "tcp://[%s]:%u" : "tcp://%s:%u", host,
             port + (store && !strcmp(store, "True") ? STORE_OFFSET : 0));
    return text_take(&t);
}

static int meet(const struct launcher *l, const struct options *o, uint32_t size,
                struct ranks *ret, struct error *e)
{
    const char *local = local_variable();
    char *where = place_of(l, o, e), *group = group_of(l);
    const struct tcp_meeting m = {.rank = number(l->rank),
                                  .size = size,
                                  .where = where,
                                  .group = group,
                                  .seconds = MEET_SECONDS,
                                  .speaks = local && !number(local),
                                  .spreads = !is_local(size)};
    const struct comm *c = where && tcp_address_check(where, e) == 0 ? comm_tcp(&m, e) : NULL;
    free(where);
    free(group);
    if (c)
        ret->comm = c;
    return c ? 0 : -1;
}

static int join_by(const struct launcher *l, const struct places *p, uint32_t size,
                   struct ranks *ret, struct error *e)
{
    if (!places_have(p))
        return error_set(
            e, ERROR_UNAVAILABLE,
            "%s started %u processes, and this maskbert was built without MPI: "
            "build it where MPI is installed (libopenmpi-dev); --ranks 1 trains in "
            "one process",
            l->name, size);
    if (!is_started_by_mpi(l))
        return l->is_mpi ? error_set(e, ERROR_INPUT,
                                     "%s=%u, but mpirun did not start this process; --ranks 1 "
                                     "ignores the variable",
                                     l->size, size)
                         : start_again(l, size, ret, e);
    const struct comm *c = comm_mpi((const char *const *)p->file, 2, e);
    if (!c)
        return -1;
    ret->comm = c;
    return check(l, c, size, e);
}

static int join(const struct launcher *l, const struct options *o, struct ranks *ret,
                struct error *e)
{
    const uint32_t size = number(l->size);
    if (size == 1)
        return 0;
    struct places p = places_find();
    const bool by_mpi = places_have(&p) && is_started_by_mpi(l) && !o->rendezvous;
    choose_gpu(o, ret);
    const int result =
        is_on_gpu(o) && !by_mpi ? meet(l, o, size, ret, e) : join_by(l, &p, size, ret, e);
    places_finish(&p);
    return result;
}

static int check_rendezvous(const struct options *o, struct error *e)
{
    return !o->rendezvous || is_on_gpu(o)
               ? 0
               : error_set(e, ERROR_INPUT,
                           "--rendezvous: ranks on CPUs meet by MPI; it is for --device cuda");
}

static int check_ranks(const struct options *o, uint32_t size, struct error *e)
{
    return o->ranks <= 1 || o->ranks == size
               ? 0
               : error_set(e, ERROR_INPUT,
                           "--ranks %u: there are %u; `mpirun -n %u maskbert ..` starts them",
                           o->ranks, size, o->ranks);
}

int ranks_begin(const struct options *o, struct ranks *ret, struct error *e)
{
    const struct launcher *l = launcher_of(o);
    *ret = (struct ranks){.comm = &comm_alone, .launched = l != NULL};
    if (check_rendezvous(o, e) < 0 || (l && join(l, o, ret, e) < 0))
        return -1;
    ret->nccl_alone = o->rendezvous && !ret->ended && ret->comm->size == 1;
    return ret->ended ? 0 : comm_agree(ret->comm, check_ranks(o, ret->comm->size, e), e);
}

void ranks_set(const struct ranks *r, struct run_options *o)
{
    o->comm = r->comm;
    o->launched = r->launched;
    o->nccl_alone = r->nccl_alone;
    o->device = r->device[0] ? r->device : o->device;
}

/* ---- what people see ---- */

bool ranks_first(const struct ranks *r)
{
    return r->comm->rank == 0;
}

int ranks_fail(const struct ranks *r, const struct error *e)
{
    return ranks_first(r) ? command_fail(e) : (int)e->kind;
}

const struct run_watch *ranks_watch(const struct ranks *r)
{
    static const struct run_watch speaks = {run_asked_to_stop, pretrain_progress, session_tell,
                                            pretrain_say},
                                  silent = {.stop = run_asked_to_stop};
    return ranks_first(r) ? &speaks : &silent;
}

void ranks_finish(const struct ranks *r)
{
    if (r->comm && r->comm->close)
        r->comm->close(r->comm);
}
