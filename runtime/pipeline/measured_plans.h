/* SPDX-License-Identifier: Apache-2.0 */
/* Which plan of a portfolio was fastest when `maskc bench --measure-plans` timed several, as FFTW keeps wisdom: one JSON
   file for each CPU, beside its calibration, written aside and renamed. It says its version and whose it is, and has a
   checksum. An entry is of one mask, request, target and machine: of another calibration there is none. */
#pragma once
#include "gen/plan/plan.h"
#include <jansson.h>

enum { MEASURED_MOST = 4096, MEASURED_BYTES = 1 << 22 /* of a file */ };

struct measured_entry {
    char key[33];
    struct plan_choice choice; /* .seconds: as measured, forward and backward */
};
struct measured_plans {
    struct measured_entry *entry; /* [count] */
    uint32_t count;
};

/* Key of an entry, a digest in hexadecimal. The length is the mask's, not the request's. family: null, or the one that --family
   names. */
void measured_key(const struct mask *m, const struct target *t, const struct kernel_request *r,
                  const struct machine *machine, const struct kernel_family *family,
                  char ret[33]);
/* Null where there is none. */
const struct plan_choice *measured_find(const struct measured_plans *p, const char *key);
/* The plan to take: the fastest, or where none was measured the cheapest predicted. Points into p. */
struct plan_options measured_options(const struct measured_plans *p, const struct mask *m,
                                     const struct target *t, const struct kernel_request *r,
                                     const struct machine *machine,
                                     const struct kernel_family *family);
/* In the place of an older one; the oldest goes where there are too many. */
void measured_add(struct measured_plans *p, const char *key, const struct plan_choice *choice);
void measured_finish(struct measured_plans *p); /* a zeroed one is fine */

/* The text of a file, which may be anything: 0, or -1 with *e set and *ret empty. Of another machine: an error too. */
int measured_parse(const void *bytes, uint64_t size, const char *identity,
                   struct measured_plans *ret, struct error *e);
char *measured_text(const struct measured_plans *p, const char *identity); /* caller frees */

void measured_digest(const json_t *entries, char ret[17]); /* the checksum, in hexadecimal */

char *measured_path(void); /* "" where there is no folder for it; caller frees */
/* Loads the measured plans of this CPU. 0 with *ret empty if none are stored. -1 with *ret empty and a line that starts
   with the file's path if the file cannot be used: callers may continue without. */
int measured_load(struct measured_plans *ret, struct error *e);
int measured_save(const struct measured_plans *p, struct error *e);
