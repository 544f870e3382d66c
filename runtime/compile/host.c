/* SPDX-License-Identifier: Apache-2.0 */
/* The host compiler as a child process: the files go to a temporary folder, the shared object comes
   back as bytes. Works with clang and gcc; what it is called is asked for once. */
#include "masks/base/file.h"
#include "masks/base/folder.h"
#include "masks/base/memory.h"
#include "runtime/ahead/ahead.h"
#include "runtime/base/process.h"
#include "runtime/compile/compile.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which compiler ---- */

struct compiler {
    char *path;
    char version[96]; /* "clang 14.0.6" */
};

static const char no_compiler[] = "no C compiler found (looked for $MASKC_CC, clang, gcc, cc)";

static size_t version_length(const char *word)
{
    const size_t length = strspn(word, "0123456789.");
    return *word != '.' && memchr(word, '.', length) ? length : 0;
}

/* The version is the first word of digits and dots, as in "Debian clang version 14.0.6" and "gcc (GCC) 14.2.1 20240910".
   Parentheses hold the version of a distribution's package. */
static void parse_version(const char *line, char *to, size_t capacity)
{
    size_t length = 0;
    const char *at = line;
    for (int depth = 0; *at && *at != '\n'; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0 && at > line && at[-1] == ' ' && (length = version_length(at)))
            break;
    }
    snprintf(to, capacity, "%s %.*s", strstr(line, "clang") ? "clang" : "gcc", (int)length, at);
}

/* False: try the next one. A child that was interrupted is no reason to: this process was, too. */
static bool try_compiler(const char *name, struct compiler *ret)
{
    struct text output = {0};
    char *path = name && *name ? process_find(name) : NULL;
    if (!path)
        return false;
    const char *argument[] = {path, "--version", NULL};
    int status = process_run(argument, &output, NULL);
    bool interrupted =
        status == 128 + SIGINT || status == 128 + SIGTERM || status == 128 + SIGHUP;
    bool ok = status == 0 && output.length;
    if (ok) {
        ret->path = path;
        parse_version(text_get(&output), ret->version, sizeof ret->version);
    } else {
        free(path);
    }
    text_finish(&output);
    return ok || interrupted;
}

const char *const host_compilers[] = {"clang", "gcc", "cc", NULL};

/* Where $MASKC_CC is set nothing else is tried: a wrong one should not be passed over in silence. */
static void find_compiler(struct compiler *ret)
{
    const char *asked = getenv("MASKC_CC");
    if (asked && *asked) {
        try_compiler(asked, ret);
        return;
    }
    for (const char *const *name = host_compilers; *name; name++)
        if (try_compiler(*name, ret))
            return;
}

static struct compiler the_compiler;

static void find_once(void)
{
    find_compiler(&the_compiler);
}

static const struct compiler *compiler(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_once);
    return &the_compiler;
}

const char *host_compiler_version(void)
{
    return compiler()->version;
}

static int refuse(struct error *e)
{
    const char *asked = getenv("MASKC_CC");
    if (asked && *asked)
        return error_set(e, ERROR_UNAVAILABLE,
                         "MASKC_CC: no C compiler runs as '%.200s'; "
                         "unset it, or install one: apt install clang",
                         asked);
    return error_set(e, ERROR_UNAVAILABLE,
                     "%s, and no such kernel was compiled ahead (%.1000s); "
                     "install a compiler: apt install clang",
                     no_compiler, ahead_describe());
}

/* ---- compile ---- */

static int write_files(const struct source *s, const char *folder, struct error *e)
{
    for (uint32_t k = 0; k < s->n_files; k++) {
        struct text path = {0};
        text_add(&path, "%s/%s", folder, s->files[k].name);
        char *slash = strrchr(path.bytes, '/');
        *slash = 0;
        int code = file_make_directory(path.bytes, e);
        *slash = '/';
        if (code == 0)
            code = file_write(path.bytes, s->files[k].text, strlen(s->files[k].text), e);
        text_finish(&path);
        if (code < 0)
            return -1;
    }
    return 0;
}

/* One line, then the compiler's own first lines, without the folder's name. */
static int explain(const char *folder, const struct text *output, int status, struct error *e)
{
    enum { LINES = 12 };
    struct text lines = {0};
    const char *line = text_get(output);
    for (int k = 0; k < LINES && *line; k++) {
        size_t skip = strncmp(line, folder, strlen(folder)) ? 0 : strlen(folder) + 1;
        size_t length = strcspn(line, "\n");
        text_add(&lines, "\n%.*s", (int)(length - skip), line + skip);
        line += length + (line[length] == '\n');
    }
    error_set(e, ERROR_UNAVAILABLE, "%s could not compile the kernel (exit status %d)%.3500s",
              compiler()->version, status, text_get(&lines));
    text_finish(&lines);
    return -1;
}

static int run_in(const char *folder, const struct source *s, const char *const *flags,
                  struct text *output, struct error *e)
{
    enum { MOST = HOST_MAX_FLAGS + 8 };
    const char *argument[MOST] = {compiler()->path};
    struct text file = {0}, object = {0};
    uint32_t n = 1;
    for (uint32_t k = 0; flags[k] && n < HOST_MAX_FLAGS; k++)
        argument[n++] = flags[k];
    text_add(&file, "%s/%s", folder, s->files[0].name);
    text_add(&object, "%s/kernel.so", folder);
    argument[n++] = "-I";
    argument[n++] = folder;
    argument[n++] = "-o";
    argument[n++] = text_get(&object);
    argument[n++] = text_get(&file);
    int status = process_run_in(folder, argument, output, e);
    text_finish(&file);
    text_finish(&object);
    return status;
}

static int take_object(const char *folder, struct binary *ret, struct error *e)
{
    struct text path = {0};
    struct file file;
    text_add(&path, "%s/kernel.so", folder);
    int code = file_open(text_get(&path), &file, e);
    text_finish(&path);
    if (code < 0)
        return error_set(e, ERROR_UNAVAILABLE, "%s compiled the kernel but wrote no object",
                         compiler()->version);
    *ret = (struct binary){0};
    binary_add(ret, file.bytes, file.size);
    snprintf(ret->compiler, sizeof ret->compiler, "%s", compiler()->version);
    file_close(&file);
    return 0;
}

static int compile_in(const char *folder, const struct source *s, const char *const *flags,
                      struct binary *ret, struct error *e)
{
    struct text output = {0};
    int status = write_files(s, folder, e);
    if (status == 0)
        status = run_in(folder, s, flags, &output, e);
    if (status > 0)
        status = explain(folder, &output, status, e);
    if (status == 0)
        status = take_object(folder, ret, e);
    text_finish(&output);
    return status;
}

int host_compile(const struct source *s, const char *const *flags, struct binary *ret,
                 struct error *e)
{
    if (!compiler()->path)
        return refuse(e);
    sigset_t held;
    interrupts_hold(&held);
    char *folder = folder_temporary(e);
    int code = folder ? compile_in(folder, s, flags, ret, e) : -1;
    if (folder)
        folder_remove(folder);
    free(folder);
    interrupts_release(&held);
    return code;
}

/* ---- by hand ---- */

static const char *program(void)
{
    const char *path = compiler()->path;
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "cc";
}

void compile_command(const struct source *s, const struct target *t, struct text *out)
{
    struct host_flags flags;
    if (t->kind == TARGET_CUDA) {
        text_add(out, "nvcc %s -arch=%s -I . -o attention.%s %s", t->ptx ? "-ptx" : "-cubin",
                 t->arch, t->ptx ? "ptx" : "cubin", s->files[0].name);
        return;
    }
    host_flags(t, &flags);
    text_add(out, "%s", program());
    for (uint32_t k = 0; flags.flag[k]; k++)
        text_add(out, " %s", flags.flag[k]);
    text_add(out, " -I . -o attention.so %s", s->files[0].name);
}
