/* SPDX-License-Identifier: Apache-2.0 */
/* Runs maskc as a person does: a line for the shell, in a folder of its own. */
#pragma once
#include <jansson.h>
#include <stddef.h>

struct outcome {
    int code;
    char *out, *err; /* what was printed */
};

/* Enters a new temporary folder with an own compile cache; `maskc` is a path to the program. Every
   line below is run with "maskc" before it; `prefix` may set variables. */
void shell_start(const char *maskc);
void shell_stop(void); /* removes the folder */
/* From here on kernels are compiled without optimisation, in a tenth of the time: for tests that ask what
   commands do, not how fast kernels are (tests/kernels has the optimised ones). */
void shell_compile_fast(void);
void shell_compile_at(const char *level); /* the same with another level, "-O1" */
struct outcome shell_run(const char *prefix, const char *line);
void outcome_finish(struct outcome *o);
/* The line must succeed, with this on stdout and nothing on stderr. */
void shell_says(const char *line, const char *says);
/* The one JSON value that the line prints, which must end with this code; the caller lets go of it. */
json_t *shell_json(const char *line, int code);

/* The same with a prefix, of a line that must succeed; and all that such a line prints. */
json_t *shell_json_of(const char *prefix, const char *line);
struct outcome shell_must(const char *prefix, const char *line);

struct shell_failure {
    const char *line, *error, *prefix;
};
/* Each line, with its own prefix or this one, is bad input: exit code 2, "PROGRAM: ERROR" on stderr, nothing on stdout, no file changed. */
void shell_refuses(const char *program, const char *prefix, const struct shell_failure *f,
                   size_t count);

/* The same without times, for what makes and removes a folder beside others. */
char *shell_files(void);
/* Every path below the working folder, one a line, with its size; caller frees. */
char *shell_listing(void);
