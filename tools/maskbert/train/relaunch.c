/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskbert/train/relaunch.h"
#include "masks/base/hash.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "tools/maskbert/train/run_signals.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MEET_SECONDS = 20, PAUSE_MS = 100, MOST_COMMAND = 1 << 17 };

/* Message by which a waiting process identifies itself. */
struct hello {
    uint64_t rank, command; /* command: the hash of its command line */
};

/* ---- the command ---- */

struct command {
    char *text; /* arguments, a zero behind each */
    size_t size;
};

static int read_command(struct command *ret, struct error *e)
{
    FILE *f = fopen("/proc/self/cmdline", "r");
    ret->text = memory_new(MOST_COMMAND + 1, 1);
    ret->size = f ? fread(ret->text, 1, MOST_COMMAND, f) : 0;
    if (f)
        fclose(f);
    return ret->size && ret->size < MOST_COMMAND
               ? 0
               : error_set(e, ERROR_UNAVAILABLE, "/proc/self/cmdline: cannot be read");
}

/* Variables of a launcher's processes; users set those of MCA. */
static bool is_of_launcher(const char *variable)
{
    static const char *const prefix[] = {"PMIX_", "PMI_", "OMPI_COMM_WORLD_"};
    bool ret = false;
    for (size_t k = 0; k < sizeof prefix / sizeof *prefix; k++)
        ret = ret || strncmp(variable, prefix[k], strlen(prefix[k])) == 0;
    return ret && strncmp(variable, "PMIX_MCA_", strlen("PMIX_MCA_")) != 0;
}

/* mpirun would take itself for a process of the launcher around it. */
static void forget_launcher(void)
{
    for (size_t k = 0; environ[k];) {
        const size_t length = strcspn(environ[k], "=");
        char *name = is_of_launcher(environ[k]) ? strndup(environ[k], length) : NULL;
        k += !name || unsetenv(name) < 0;
        free(name);
    }
}

/* Variables of Open MPI say what other MPIs do unasked. */
static void set_environment(void)
{
    static const char *const gone[] = {"RANK",         "WORLD_SIZE",           "LOCAL_RANK",
                                       "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID",
                                       "SLURM_JOBID"};
    static const char *const set[] = {"OMPI_ALLOW_RUN_AS_ROOT",
                                      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                      "OMPI_MCA_rmaps_base_oversubscribe"};
    for (size_t k = 0; k < sizeof gone / sizeof *gone; k++)
        unsetenv(gone[k]);
    forget_launcher();
    for (size_t k = 0; k < sizeof set / sizeof *set; k++)
        setenv(set[k], "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
}

/* In the child: becomes mpirun. */
static void become_mpirun(const struct relaunch *r, const struct command *c)
{
    char program[4096], number[16], **argv = memory_new(c->size + 5, sizeof *argv);
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    uint32_t count = 0;
    sigset_t none;
    program[n > 0 ? n : 0] = 0;
    snprintf(number, sizeof number, "%u", r->size);
    argv[count++] = "mpirun";
    argv[count++] = "-n";
    argv[count++] = number;
    argv[count++] = program;
    for (size_t at = strlen(c->text) + 1; at < c->size; at += strlen(c->text + at) + 1)
        argv[count++] = c->text + at;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    set_environment();
    execvp("mpirun", argv);
    fprintf(stderr,
            "maskbert: %s started %u processes, and mpirun, which starts ranks, cannot "
            "be run: %s\n",
            r->launcher, r->size, strerror(errno));
    _exit(3);
}

/* ---- the meeting ---- */

static struct sockaddr_un address_of(const struct relaunch *r, socklen_t *ret_size)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const unsigned long long hash = XXH3_64bits(r->group, strlen(r->group));
    const int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "maskbert-%u-%016llx",
                           (unsigned)getuid(), hash);
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    return a;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int refuse(const struct relaunch *r, const char *what, struct error *e)
{
    return error_set(e, ERROR_UNAVAILABLE, "%s started %u processes: %s: %s", r->launcher,
                     r->size, what, strerror(errno));
}

/* One of the others: says hello, and waits for the exit code. */
static int wait_for_first(const struct relaunch *r, const struct hello *own, int *ret_code,
                          struct error *e)
{
    socklen_t size;
    const struct sockaddr_un a = address_of(r, &size);
    const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const double end = now() + MEET_SECONDS;
    uint8_t code = 1;
    while (connect(s, (const struct sockaddr *)&a, size) < 0) {
        if (now() > end || run_asked_to_stop()) {
            close(s);
            return refuse(r, "rank 0 does not answer", e);
        }
        usleep(PAUSE_MS * 1000);
    }
    struct pollfd p = {s, POLLIN, 0};
    const bool sent = write(s, own, sizeof *own) == (ssize_t)sizeof *own,
               told = sent && poll(&p, 1, -1) == 1 && read(s, &code, 1) == 1;
    close(s);
    *ret_code = code;
    return told ? 0 : error_set(e, ERROR_FALSE, "rank 0 is gone: its process has ended");
}

/* The first one: a connection for each of the others. */
struct meeting {
    const struct relaunch *of;
    int listener;
    struct pollfd *other; /* [size], by rank; other[0] is not used */
};

static int greet(struct meeting *m, uint64_t command, struct error *e)
{
    struct hello h;
    const int s = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
    if (s < 0 || read(s, &h, sizeof h) != (ssize_t)sizeof h || h.rank >= m->of->size ||
        !h.rank || m->other[h.rank].fd >= 0)
        return error_set(e, ERROR_UNAVAILABLE,
                         "%s: a process connected that is not one of its ranks",
                         m->of->launcher);
    m->other[h.rank] = (struct pollfd){s, POLLIN, 0};
    return h.command == command
               ? 0
               : error_set(e, ERROR_FALSE, "rank %u: another command line than on rank 0",
                           (unsigned)h.rank);
}

static int meet(struct meeting *m, uint64_t command, struct error *e)
{
    socklen_t size;
    const struct sockaddr_un a = address_of(m->of, &size);
    const double end = now() + MEET_SECONDS;
    m->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(m->listener, (const struct sockaddr *)&a, size) < 0 ||
        listen(m->listener, (int)m->of->size) < 0)
        return refuse(m->of, "no place to meet", e);
    for (uint32_t k = 1; k < m->of->size;) {
        struct pollfd p = {m->listener, POLLIN, 0};
        const int there = poll(&p, 1, PAUSE_MS);
        if (there > 0 && greet(m, command, e) < 0)
            return -1;
        k += there > 0;
        if (now() > end || run_asked_to_stop())
            return error_set(e, ERROR_FALSE, "%s: only %u of %u ranks are there",
                             m->of->launcher, k, m->of->size);
    }
    return 0;
}

/* The first of the others that is gone; 0: none is. */
static uint32_t find_gone(struct meeting *m)
{
    const int n = poll(m->other + 1, m->of->size - 1, PAUSE_MS);
    for (uint32_t k = 1; n > 0 && k < m->of->size; k++)
        if (m->other[k].revents)
            return k;
    return 0;
}

/* Until mpirun ends; a signal, or the loss of a process, ends it. */
static int wait_for_mpirun(struct meeting *m, pid_t child, int *ret_code, struct error *e)
{
    uint32_t gone = 0;
    bool told = false;
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        gone = gone ? gone : find_gone(m);
        if (!told && (gone || run_asked_to_stop())) {
            kill(child, SIGTERM);
            told = true;
        }
        if (told)
            usleep(PAUSE_MS * 1000);
    }
    *ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    return gone ? error_set(e, ERROR_FALSE, "rank %u is gone: its process has ended", gone) : 0;
}

static int lead(struct meeting *m, const struct command *c, uint64_t hash, int *ret_code,
                struct error *e)
{
    if (meet(m, hash, e) < 0)
        return -1;
    const pid_t child = fork();
    if (child == 0)
        become_mpirun(m->of, c);
    if (child < 0)
        return refuse(m->of, "no child process", e);
    return wait_for_mpirun(m, child, ret_code, e);
}

static int lead_all(const struct relaunch *r, const struct command *c, uint64_t hash,
                    int *ret_code, struct error *e)
{
    struct meeting m = {r, -1, memory_new(r->size, sizeof *m.other)};
    for (uint32_t k = 0; k < r->size; k++)
        m.other[k].fd = -1;
    const int result = lead(&m, c, hash, ret_code, e);
    const uint8_t code = (uint8_t)(result < 0 ? 1 : *ret_code);
    for (uint32_t k = 1; k < r->size; k++)
        if (m.other[k].fd >= 0) {
            if (write(m.other[k].fd, &code, 1) < 0)
                errno = 0; /* it has ended and needs no exit code */
            close(m.other[k].fd);
        }
    close(m.listener);
    free(m.other);
    return result;
}

int relaunch(const struct relaunch *r, int *ret_code, struct error *e)
{
    struct command c;
    int result = read_command(&c, e);
    if (result == 0) {
        const uint64_t hash = XXH3_64bits(c.text, c.size);
        result = r->rank ? wait_for_first(r, &(struct hello){r->rank, hash}, ret_code, e)
                         : lead_all(r, &c, hash, ret_code, e);
    }
    free(c.text);
    return result;
}
