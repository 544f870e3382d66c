/* SPDX-License-Identifier: Apache-2.0 */
/* A child process run to its end, and a temporary folder to work in. A shell stands between only where SIGCHLD is ignored. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/text.h"
#include <signal.h>
#include <stdbool.h>

/* Runs argument[0], looked up in PATH, with a null-ended list; nothing on its standard input, what
   it prints on either output is appended to *output (at most 64 KiB are kept). Returns its exit
   status, 128 + signal, or -1 with *e set where it could not be started. */
int process_run(const char *const *argument, struct text *output, struct error *e);
/* The same with these bytes on its standard input. */
int process_feed(const char *const *argument, const void *input, size_t size,
                 struct text *output, struct error *e);
/* The same with `folder` as TMPDIR, so that what the child leaves behind goes when the folder does. */
int process_run_in(const char *folder, const char *const *argument, struct text *output,
                   struct error *e);

/* Full path of a program in PATH (or of a path with a slash); null if there is none. Caller frees. */
char *process_find(const char *program);

/* A new empty folder below $TMPDIR (/tmp), for this user alone; null with *e set. Caller frees. */
char *folder_temporary(struct error *e);

/* Between hold and release SIGINT, SIGTERM and SIGHUP wait (for this thread and those that it creates; children get
   them): what was begun, a temporary folder above all, is cleared away first. */
void interrupts_hold(sigset_t *old);
/* True if a signal waits only because of the hold: the caller should finish soon. */
bool interrupts_wait(const sigset_t *old);
void interrupts_release(const sigset_t *old);
