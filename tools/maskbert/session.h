/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands that run a model: the engine by the options, texts from lines, and a line of progress on a
   terminal. */
#pragma once
#include "model/tasks/tasks.h"
#include "tools/maskbert/input.h"
#include "tools/maskbert/options.h"

struct session {
    struct engine *engine;
    struct engine_workspace workspace;
    struct input_text input;
    struct task_text *text; /* [input.count] */
    struct task_options task;
    struct task_batches batches;
};

/* Sets the members of *ret that the options determine; the rest stays. */
int session_options(const struct options *o, struct engine_options *ret, struct error *e);
/* Loads the engine with these parts. */
int session_open(const struct options *o, uint32_t parts, struct session *s, struct error *e);
/* Reads the lines of o->input, or of stdin, as texts or pairs, and tokenizes them. */
int session_read(const struct options *o, struct session *s, struct error *e);
/* Says on stderr how many of `all` texts or questions were cut, if any were. path: the file to name, or null. */
void session_tell_cut(const char *path, uint32_t cut, uint32_t all, const char *what,
                      uint32_t tokens);
/* Texts in s->text to batches; stderr says how many were cut. */
int session_prepare(struct session *s, uint32_t texts, struct error *e);
struct task_runner session_runner(struct session *s);
void session_close(struct session *s); /* a zeroed one is fine */

/* --dtype: f32 by default. */
/* --tokenizer-compat; checks --max-length, too. */
int session_compat(const struct options *o, enum tokenizer_compat *ret, struct error *e);
int session_dtype(const struct options *o, enum element *ret, struct error *e);
/* Shows a step of long work on the terminal's last line; null clears it. */
void session_tell(const char *step);
