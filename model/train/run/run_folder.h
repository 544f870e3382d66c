/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run. A new one is made as RUN.maskbert-part and gets its name once all of it is there; one process at a time has
   it, by locks that the system drops when the process ends, however it ends: of the folder, and of its log.jsonl, as a network file
   system tells other machines only of a file's lock. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>

struct run_folder {
    char *run;     /* RUN, without slashes behind it */
    char *path;    /* where it is now: RUN.maskbert-part until it is published */
    int lock, log; /* locked; log: of RUN's log.jsonl, -1 where there is none yet */
    bool is_new;
};

/* An empty folder. ERROR_INPUT where RUN is there, or is being made by another process. What a killed process left of
   RUN.maskbert-part is removed. */
int run_folder_begin(const char *run, struct run_folder *ret, struct error *e);
/* An existing one, without what a killed process left of files. */
int run_folder_open(const char *run, struct run_folder *ret, struct error *e);
/* The folder of a run that another rank has locked: only its names. */
struct run_folder run_folder_join(const char *run, bool is_new);
/* A new one got its name. */
void run_folder_joined(struct run_folder *f);
/* Gives a new one its name. */
int run_folder_publish(struct run_folder *f, struct error *e);
/* A new one that was not published is removed. A zeroed one is fine. */
void run_folder_finish(struct run_folder *f);
