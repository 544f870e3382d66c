/* SPDX-License-Identifier: Apache-2.0 */
/* Processor time is what others on the machine disturb least, so that is what is judged; NVRTC does all
   work of a program on the thread that asks for it. */
#include "tests/kernels/gate_units.h"
#include "masks/base/memory.h"
#include "runtime/crew.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIES = 5 };

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a source with some of another's units ---- */

/* `units` (bits) alone, with all of the files. What it returns in files is the caller's to free. */
static struct source part_of(const struct source *s, uint32_t units)
{
    struct source ret = *s;
    struct source_file *files = memory_new(s->n_files, sizeof *files);
    uint32_t count = 0;
    files[count++] = s->files[0];
    for (uint32_t taken = 0; taken < 2; taken++) /* first those, then all others */
        for (uint32_t k = 1; k < s->n_files; k++)
            if ((k <= s->n_units && units >> (k - 1) & 1) != taken)
                files[count++] = s->files[k];
    ret.files = files;
    ret.n_units = (uint32_t)__builtin_popcount(units);
    return ret;
}

/* ---- unit by unit ---- */

struct job {
    const struct source *s;
    const struct target *t;
    struct gate_units *units;
    double enough;
    struct error error[SOURCE_MAX_UNITS];
};

static bool is_forward(const struct launch_record *l, const struct binary *b)
{
    for (uint32_t k = 0; k < l->n_forward && b->n_kernels; k++)
        if (!strcmp(l->forward[k].entry, b->kernel[0].entry))
            return true;
    return false;
}

static void compile_unit(void *context, uint32_t k)
{
    struct job *j = context;
    struct gate_unit *u = &j->units->unit[k];
    struct source one = part_of(j->s, UINT32_C(1) << k);
    u->seconds = 1e9;
    for (int time = 0; time < TRIES && u->seconds > j->enough; time++) {
        binary_finish(&u->binary);
        double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
        if (nvrtc_compile(&one, j->t, &u->binary, &j->error[k]) < 0)
            break;
        double took = seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
        u->seconds = took < u->seconds ? took : u->seconds;
    }
    u->forward = is_forward(&j->s->launch, &u->binary);
    free((void *)one.files);
}

int gate_units_compile(const struct source *s, const struct target *t, double enough,
                       struct gate_units *ret, struct error *e)
{
    struct job *j = memory_new(1, sizeof *j);
    *ret = (struct gate_units){.count = s->n_units};
    *j = (struct job){.s = s, .t = t, .units = ret, .enough = enough};
    crew_run(s->n_units, compile_unit, j);
    int r = 0;
    for (uint32_t k = 0; k < s->n_units && r == 0; k++)
        if (!ret->unit[k].binary.n_images)
            r = error_set(e, ERROR_FALSE, "%s", j->error[k].text);
    free(j);
    return r;
}

void gate_units_finish(struct gate_units *u)
{
    for (uint32_t k = 0; k < u->count; k++)
        binary_finish(&u->unit[k].binary);
}

/* ---- passes ---- */

double gate_pass_seconds(const struct gate_units *u, bool forward)
{
    double most = 0, sum = 0;
    for (uint32_t k = 0; k < u->count; k++)
        if (u->unit[k].forward == forward) {
            sum += u->unit[k].seconds;
            most = u->unit[k].seconds > most ? u->unit[k].seconds : most;
        }
    return sum / 2 > most ? sum / 2 : most;
}

double gate_pass_wall(const struct source *s, const struct target *t,
                      const struct gate_units *u, bool forward)
{
    struct binary unused = {0};
    uint32_t units = 0;
    for (uint32_t k = 0; k < u->count; k++)
        units |= (uint32_t)(u->unit[k].forward == forward) << k;
    struct source pass = part_of(s, units);
    double begin = seconds_of(CLOCK_MONOTONIC);
    nvrtc_compile(&pass, t, &unused, NULL);
    double wall = seconds_of(CLOCK_MONOTONIC) - begin;
    binary_finish(&unused);
    free((void *)pass.files);
    return wall;
}
