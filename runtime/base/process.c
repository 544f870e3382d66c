/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn with both outputs in one pipe. The pipe is read to its end before the child is
   waited for, so that a child that prints much cannot get stuck. */
#include "runtime/base/process.h"
#include "masks/base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { OUTPUT_LIMIT = 65536 };

static void interrupts(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

void interrupts_hold(sigset_t *old)
{
    sigset_t set;
    interrupts(&set);
    pthread_sigmask(SIG_BLOCK, &set, old);
}

void interrupts_release(const sigset_t *old)
{
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

bool interrupts_wait(const sigset_t *old)
{
    static const int each[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t pending;
    sigpending(&pending);
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (sigismember(&pending, each[k]) == 1 && !sigismember(old, each[k]))
            return true;
    return false;
}

/* The child is not to inherit what this thread holds back, nor that SIGCHLD is ignored: it could not wait for children of its own. */
static void release_in_child(posix_spawnattr_t *attributes)
{
    sigset_t set, mask, defaults;
    interrupts(&set);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int signal = 1; signal < NSIG; signal++)
        if (sigismember(&set, signal) == 1)
            sigdelset(&mask, signal);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(attributes, &mask);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGCHLD);
    posix_spawnattr_setsigdefault(attributes, &defaults);
}

/* Ours, with another TMPDIR; caller frees both. */
static char **environment_in(const char *folder, struct text *variable)
{
    size_t count = 0, n = 0;
    while (environ[count])
        count++;
    char **ret = memory_new(count + 2, sizeof *ret);
    for (size_t k = 0; k < count; k++)
        if (strncmp(environ[k], "TMPDIR=", 7) != 0)
            ret[n++] = environ[k];
    text_add(variable, "TMPDIR=%s", folder);
    ret[n] = (char *)(uintptr_t)text_get(variable);
    return ret;
}

/* Environment variable of a child. */
struct setting {
    const char *folder; /* its TMPDIR, or null: ours */
    int input;          /* its standard input, or -1: nothing */
    int third;          /* its file 3, or -1: nothing */
};

static void redirect(const struct setting *s, int output, posix_spawn_file_actions_t *to)
{
    posix_spawn_file_actions_init(to);
    if (s->input < 0)
        posix_spawn_file_actions_addopen(to, 0, "/dev/null", O_RDONLY, 0);
    else
        posix_spawn_file_actions_adddup2(to, s->input, 0);
    posix_spawn_file_actions_adddup2(to, output, 1);
    posix_spawn_file_actions_adddup2(to, output, 2);
    if (s->third >= 0)
        posix_spawn_file_actions_adddup2(to, s->third, 3);
}

static int start(const struct setting *s, const char *const *argument, int output, pid_t *ret)
{
    struct text variable = {0};
    char **environment = s->folder ? environment_in(s->folder, &variable) : environ;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    release_in_child(&attributes);
    redirect(s, output, &actions);
    int code = posix_spawnp(ret, argument[0], &actions, &attributes, (char *const *)argument,
                            environment);
    if (s->folder)
        free(environment);
    text_finish(&variable);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static void read_all(int from, struct text *to)
{
    char buffer[4096];
    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        if (to->length < OUTPUT_LIMIT)
            text_append(to, buffer, (size_t)got);
    }
}

static int wait_for(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 127; /* somebody else took its status: count it as failed */
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_here(const struct setting *s, const char *const *argument, struct text *output,
                    struct error *e)
{
    int ends[2];
    pid_t child;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(e, ERROR_UNAVAILABLE, "%s: %s", argument[0], strerror(errno));
    const int code = start(s, argument, ends[1], &child);
    close(ends[1]);
    if (!code)
        read_all(ends[0], output);
    close(ends[0]);
    return code ? error_set(e, ERROR_UNAVAILABLE, "%s: %s", argument[0], strerror(code))
                : wait_for(child);
}

/* Where SIGCHLD is ignored, as servers have it, the kernel throws the status of a child away. That of a shell's child is known to
   the shell, which starts with the signal's default. Nothing changes for this process and its other children. */
static bool statuses_are_lost(void)
{
    struct sigaction now;
    return sigaction(SIGCHLD, NULL, &now) == 0 &&
           (now.sa_handler == SIG_IGN || now.sa_flags & SA_NOCLDWAIT);
}

static const char **by_shell(const char *program, const char *const *argument)
{
    static const char *const shell[] = {"/bin/sh", "-c", "\"$@\" 3>&-; echo $? >&3", "sh"};
    enum { WORDS = sizeof shell / sizeof *shell };
    size_t count = 0;
    while (argument[count])
        count++;
    const char **ret = memory_new(WORDS + count + 1, sizeof *ret);
    memcpy(ret, shell, sizeof shell);
    memcpy(ret + WORDS, argument, count * sizeof *ret);
    ret[WORDS] = program;
    return ret;
}

/* The status that the shell writes, or 127: it was killed. -1: it does not start. */
static int run_words(const struct setting *s, const char *const *words, struct text *output,
                     struct error *e)
{
    int ends[2];
    struct text status = {0};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(e, ERROR_UNAVAILABLE, "%s: %s", words[0], strerror(errno));
    int r = run_here(&(struct setting){s->folder, s->input, ends[1]}, words, output, e);
    close(ends[1]);
    if (r >= 0) {
        read_all(ends[0], &status);
        r = status.length ? atoi(text_get(&status)) : 127;
    }
    close(ends[0]);
    text_finish(&status);
    return r;
}

static int run_by_shell(const struct setting *s, const char *const *argument,
                        struct text *output, struct error *e)
{
    char *program = process_find(argument[0]);
    if (!program)
        return error_set(e, ERROR_UNAVAILABLE, "%s: %s", argument[0], strerror(ENOENT));
    const char **words = by_shell(program, argument);
    const int r = run_words(s, words, output, e);
    free(words);
    free(program);
    return r;
}

static int run(const struct setting *s, const char *const *argument, struct text *output,
               struct error *e)
{
    return statuses_are_lost() ? run_by_shell(s, argument, output, e)
                               : run_here(s, argument, output, e);
}

int process_run(const char *const *argument, struct text *output, struct error *e)
{
    return run(&(struct setting){NULL, -1, -1}, argument, output, e);
}

int process_run_in(const char *folder, const char *const *argument, struct text *output,
                   struct error *e)
{
    return run(&(struct setting){folder, -1, -1}, argument, output, e);
}

/* 0, or the number of the error. */
static int write_all(int to, const char *bytes, size_t size)
{
    while (size) {
        const ssize_t put = write(to, bytes, size);
        if (put < 0 && errno != EINTR)
            return errno;
        bytes += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return lseek(to, 0, SEEK_SET) < 0 ? errno : 0;
}

/* The bytes are in memory before the child begins: neither side waits for the other. */
int process_feed(const char *const *argument, const void *input, size_t size,
                 struct text *output, struct error *e)
{
    const int file = memfd_create("input", MFD_CLOEXEC);
    const int problem = file < 0 ? errno : write_all(file, input, size);
    const int r = problem ? error_set(e, ERROR_UNAVAILABLE, "%s: its input: %s", argument[0],
                                      strerror(problem))
                          : run(&(struct setting){NULL, file, -1}, argument, output, e);
    if (file >= 0)
        close(file);
    return r;
}

static bool executable(const char *path)
{
    struct stat st;
    return access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

char *process_find(const char *program)
{
    const char *path = getenv("PATH");
    if (!*program)
        return NULL;
    if (strchr(program, '/'))
        return executable(program) ? memory_text(program) : NULL;
    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path;) {
        size_t length = strcspn(path, ":");
        struct text full = {0};
        text_add(&full, "%.*s/%s", length ? (int)length : 1, length ? path : ".", program);
        if (executable(text_get(&full)))
            return text_take(&full);
        text_finish(&full);
        path += length + (path[length] == ':');
    }
    return NULL;
}

char *folder_temporary(struct error *e)
{
    const char *base = getenv("TMPDIR");
    struct text path = {0};
    text_add(&path, "%s/maskc-XXXXXX", base && *base ? base : "/tmp");
    char *ret = text_take(&path);
    if (mkdtemp(ret))
        return ret;
    error_set(e, ERROR_UNAVAILABLE, "%s: cannot make a temporary folder: %s", ret,
              strerror(errno));
    free(ret);
    return NULL;
}
