/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ranks/nccl_processes.h"
#include "masks/base/memory.h"
#include "model/comm/nccl/nccl.h"
#include "model/comm/tcp/tcp.h"
#include "tests/support/test.h"
#include "tests/train/ranks/fake_nccl.h"
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/nccl-test-XXXXXX";
char processes_meet[64];
struct outcome_of_rank *processes_outcome;
static struct fake_nccl *fake; /* of the mock that this process has loaded */

/* ---- a device whose memory is the host's ---- */

static int arrays, entered, enters, delayed_at;
bool processes_busy;

static float *array_new(struct backend_state *s, uint64_t count, struct error *e)
{
    (void)s, (void)e;
    arrays++;
    return memory_new(count, sizeof(float));
}

static void array_destroy(struct backend_state *s, float *array)
{
    (void)s;
    arrays -= array != NULL;
    free(array);
}

static int drain_beside(struct backend_state *s, float *to, float *from, uint64_t count,
                        struct error *e)
{
    (void)s, (void)e;
    for (uint64_t k = 0; k < count; k++) {
        to[k] += from[k];
        from[k] = 0;
    }
    return 0;
}

static int enter(struct backend_state *s, void **ret_stream, struct error *e)
{
    (void)s, (void)e;
    entered++;
    if (++enters == delayed_at)
        usleep(600000);
    if (ret_stream)
        *ret_stream = NULL;
    return 0;
}

static void leave(struct backend_state *s)
{
    (void)s;
    entered--;
}

static int is_idle(struct backend_state *s, bool *ret, struct error *e)
{
    (void)s, (void)e;
    *ret = !processes_busy;
    return 0;
}

static const struct training_backend host_memory = {.array_new = array_new,
                                                    .array_destroy = array_destroy,
                                                    .drain_beside = drain_beside,
                                                    .enter = enter,
                                                    .leave = leave,
                                                    .is_idle = is_idle};

/* ---- processes ---- */

static int run_nccl(const struct subject *s, const struct comm *host, struct error *e)
{
    const struct training_device device = {&host_memory, NULL};
    const struct nccl_limits limits = {s->begin > 0 ? s->begin : s->seconds, s->seconds,
                                       s->slowest > 0 ? s->slowest : (double)INFINITY};
    const struct comm *c = comm_nccl(host, &device, &limits, e);
    if (!c)
        return -1;
    int r = s->run(c, e);
    comm_nccl_close(c, r < 0);
    return r;
}

static void run_rank(const struct subject *s, uint32_t rank)
{
    struct outcome_of_rank *o = &processes_outcome[rank];
    const struct tcp_meeting m = {rank, s->ranks, processes_meet, "nccl_test", 20};
    if (rank == s->odd) {
        delayed_at = s->delayed_at;
        fake->fail_at = s->fail_at;
        fake->state_fails = s->state_fails;
        fake->hangs = s->hangs;
        snprintf(fake->only, sizeof fake->only, "%s", s->only ? s->only : "");
    }
    const struct comm *host = comm_tcp(&m, &o->error);
    o->result = host ? run_nccl(s, host, &o->error) : -1;
    if (host)
        host->close(host);
    o->calls = fake->calls;
    o->kept = fake->communicators || fake->groups || fake->misuses || arrays || entered;
    memcpy(o->failed, fake->failed, sizeof o->failed);
}

double processes_run(const struct subject *s)
{
    struct timespec begin, end;
    pid_t child[MOST_RANKS];
    memset(processes_outcome, 0, MOST_RANKS * sizeof *processes_outcome);
    fflush(NULL);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint32_t k = 0; k < s->ranks; k++) {
        child[k] = fork();
        if (child[k] == 0) {
            run_rank(s, k);
            exit(0);
        }
    }
    for (uint32_t k = 0; k < s->ranks; k++) {
        int status;
        assert_int_equal(waitpid(child[k], &status, 0), child[k]);
        assert_int_equal(status, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

int processes_begin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    fake = library ? (struct fake_nccl *)dlsym(library, "fake_nccl") : NULL;
    processes_outcome = mmap(NULL, MOST_RANKS * sizeof *processes_outcome,
                             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!fake || processes_outcome == MAP_FAILED || !mkdtemp(folder))
        return -1;
    snprintf(processes_meet, sizeof processes_meet, "%s/ranks", folder);
    setenv("FAKE_NCCL_FOLDER", folder, 1);
    return setenv("MASKC_NCCL", path, 1);
}

void processes_end(void)
{
    char path[256];
    DIR *d = opendir(folder);
    for (struct dirent *f; d && (f = readdir(d));) {
        snprintf(path, sizeof path, "%s/%.128s", folder, f->d_name);
        if (f->d_name[0] != '.')
            unlink(path);
    }
    closedir(d);
    rmdir(folder);
}
