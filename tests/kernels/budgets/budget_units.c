/* SPDX-License-Identifier: Apache-2.0 */
/* Processor time is what others on the machine disturb least, so that is what is checked; NVRTC does all
   work of a program on the thread that asks for it. What takes too long so is held against budget_clock. */
#include "tests/kernels/budgets/budget_units.h"
#include "masks/base/memory.h"
#include "runtime/base/thread_pool.h"
#include "tests/kernels/budgets/budget_clock.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIES = 5 };

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

struct task {
    const struct source *s;
    const struct target *t;
    struct budget_known *known;
    struct budget_units *units;
    bool again[2]; /* backward, forward: what is timed again */
    struct error error[SOURCE_MAX_UNITS];
};

/* Seconds of processor time. Below 0 if it fails. */
static double time_unit(const struct task *j, uint32_t k, struct binary *ret, struct error *e)
{
    struct source one = part_of(j->s, UINT32_C(1) << k);
    double begin = budget_clock_now();
    int r = nvrtc_compile(&one, j->t, ret, e);
    double took = budget_clock_now() - begin;
    free((void *)one.files);
    return r < 0 ? -1 : took;
}

static void compile_unit(void *context, uint32_t k)
{
    struct task *j = context;
    struct budget_unit *u = &j->units->unit[k];
    const struct cache_key key = budget_known_key(j->s, k, j->t);
    u->forward = strstr(j->s->files[1 + k].name, "forward") != NULL;
    u->known = j->known && budget_known_take(j->known, key, &u->binary);
    if (u->known)
        return;
    u->seconds = time_unit(j, k, &u->binary, &j->error[k]);
    if (j->known && u->seconds >= 0)
        budget_known_give(j->known, key, &u->binary);
}

/* Against the clock before and after; the slower of the two is not believed. */
static void time_again(void *context, uint32_t k)
{
    struct task *j = context;
    struct budget_unit *u = &j->units->unit[k];
    struct binary unused = {0};
    if (!j->again[u->forward])
        return;
    double before = budget_clock_slowness();
    double took = time_unit(j, k, &unused, NULL);
    double after = budget_clock_slowness();
    took /= before < after ? before : after;
    u->seconds = took > 0 && took < u->seconds ? took : u->seconds;
    binary_finish(&unused);
}

static bool takes_longer(struct task *j, double enough)
{
    for (int forward = 0; forward < 2; forward++)
        j->again[forward] = budget_pass_seconds(j->units, forward) > enough;
    return j->again[0] || j->again[1];
}

int budget_units_compile(const struct source *s, const struct target *t, double enough,
                         struct budget_known *known, struct budget_units *ret, struct error *e)
{
    struct task *j = memory_new(1, sizeof *j);
    *ret = (struct budget_units){.count = s->n_units};
    *j = (struct task){.s = s, .t = t, .known = known, .units = ret};
    thread_pool_run(s->n_units, compile_unit, j);
    int r = 0;
    for (uint32_t k = 0; k < s->n_units && r == 0; k++)
        if (!ret->unit[k].known && !ret->unit[k].binary.n_images)
            r = error_set(e, ERROR_FALSE, "%s", j->error[k].text);
    for (int time = 0; time < TRIES && r == 0 && takes_longer(j, enough); time++)
        thread_pool_run(s->n_units, time_again, j);
    free(j);
    return r;
}

void budget_units_finish(struct budget_units *u)
{
    for (uint32_t k = 0; k < u->count; k++)
        binary_finish(&u->unit[k].binary);
}

/* ---- passes ---- */

double budget_pass_seconds(const struct budget_units *u, bool forward)
{
    double most = 0, sum = 0;
    for (uint32_t k = 0; k < u->count; k++)
        if (u->unit[k].forward == forward) {
            sum += u->unit[k].seconds;
            most = u->unit[k].seconds > most ? u->unit[k].seconds : most;
        }
    return sum / 2 > most ? sum / 2 : most;
}

static double wall_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double budget_pass_wall(const struct source *s, const struct target *t,
                        const struct budget_units *u, bool forward)
{
    struct binary unused = {0};
    uint32_t units = 0;
    for (uint32_t k = 0; k < u->count; k++)
        units |= (uint32_t)(u->unit[k].forward == forward) << k;
    struct source pass = part_of(s, units);
    double begin = wall_now();
    nvrtc_compile(&pass, t, &unused, NULL);
    double wall = wall_now() - begin;
    binary_finish(&unused);
    free((void *)pass.files);
    return wall;
}
