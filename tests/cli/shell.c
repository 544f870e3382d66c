/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cli/shell.h"
#include "tests/cli/fixtures.h"
#include "tests/support/test.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/maskc-cli-XXXXXX";

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

/* The compiler that maskc would take, told last of all how much to optimise. */
static void write_compiler(const char *path, const char *level)
{
    FILE *f = fopen(path, "w");
    must(f != NULL, path);
    fprintf(f, "#!/bin/sh\nexec $(command -v clang || command -v gcc || echo cc) \"$@\" %s\n",
            level);
    must(fclose(f) == 0 && chmod(path, 0755) == 0, path);
}

void shell_compile_at(const char *level)
{
    char path[64];
    snprintf(path, sizeof path, "%s/compiler", folder);
    write_compiler(path, level);
    setenv("MASKC_CC", path, 1);
}

void shell_compile_fast(void)
{
    shell_compile_at("-O0");
}

/* The folder holds work/ (the working folder, which failures must leave as it is), out, err, cache. */
void shell_start(const char *maskc)
{
    char path[4200], work[64];
    char *program = realpath(maskc, NULL);
    must(program != NULL, maskc);
    must(mkdtemp(folder) != NULL, folder);
    snprintf(work, sizeof work, "mkdir %s/work", folder);
    must(system(work) == 0, work);
    snprintf(path, sizeof path, "%s/work", folder);
    must(!chdir(path), path);
    snprintf(path, sizeof path, "%s/cache", folder);
    setenv("XDG_CACHE_HOME", path, 1);
    setenv("MASKC", program, 1);
    unsetenv("MASKC_CC");
    free(program);
}

void shell_stop(void)
{
    char line[64];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    must(!chdir("/tmp") && system(line) == 0, line);
}

struct outcome shell_run(const char *prefix, const char *line)
{
    char command[2048];
    size_t ignored;
    snprintf(command, sizeof command, "{ %s \"$MASKC\" %s ; } >../out 2>../err </dev/null",
             prefix ? prefix : "", line);
    int status = system(command);
    must(status != -1, command);
    return (struct outcome){.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                            .out = (char *)fixture_read("../out", &ignored),
                            .err = (char *)fixture_read("../err", &ignored)};
}

void shell_says(const char *line, const char *says)
{
    struct outcome o = shell_run(NULL, line);
    if (o.code || *o.err || !strstr(o.out, says))
        fail_msg("maskc %s: %d, '%s' is not in: %s%s", line, o.code, says, o.out, o.err);
    outcome_finish(&o);
}

json_t *shell_json(const char *line, int code)
{
    json_error_t e;
    struct outcome o = shell_run(NULL, line);
    json_t *j = json_loads(o.out, 0, &e);
    if (o.code != code || !j)
        fail_msg("maskc %s: %d, %s: %s%s", line, o.code, e.text, o.out, o.err);
    outcome_finish(&o);
    return j;
}

struct outcome shell_must(const char *prefix, const char *line)
{
    struct outcome o = shell_run(prefix, line);
    if (o.code)
        fail_msg("%s: exit code %d: %s", line, o.code, o.err);
    return o;
}

json_t *shell_json_of(const char *prefix, const char *line)
{
    struct outcome o = shell_must(prefix, line);
    json_t *json = json_loads(o.out, 0, NULL);
    if (!json)
        fail_msg("%s: '%s' is no JSON", line, o.out);
    outcome_finish(&o);
    return json;
}

static bool is_refused(const struct outcome *o, const char *program, const char *error)
{
    const size_t name = strlen(program);
    return o->code == 2 && !strncmp(o->err, program, name) &&
           !strncmp(o->err + name, ": ", 2) && !strcmp(o->err + name + 2, error) && !*o->out;
}

void shell_refuses(const char *program, const char *prefix, const struct shell_failure *f,
                   size_t count)
{
    char *before = shell_listing();
    for (size_t k = 0; k < count; k++) {
        struct outcome o = shell_run(f[k].prefix ? f[k].prefix : prefix, f[k].line);
        if (!is_refused(&o, program, f[k].error))
            fail_msg("%s %s: %d '%s'", program, f[k].line, o.code, o.err);
        outcome_finish(&o);
    }
    char *after = shell_listing();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

void outcome_finish(struct outcome *o)
{
    free(o->out);
    free(o->err);
}

char *shell_listing(void)
{
    size_t ignored;
    must(system("find . -printf '%p %s %T@\\n' | sort >../listing") == 0, "find");
    return (char *)fixture_read("../listing", &ignored);
}

char *shell_files(void)
{
    size_t ignored;
    must(system("find . -mindepth 1 -printf '%p %s\\n' | sort >../listing") == 0, "find");
    return (char *)fixture_read("../listing", &ignored);
}
