/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/snapshot/snapshot.h"
#include "masks/base/memory.h"
#include "masks/base/number.h"
#include "model/backend/mirror.h"
#include "model/base/whole_file.h"
#include "model/checkpoint/json.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_SUM  "00000000000000000000000000000000" /* where the sum will stand */
#define VERSION "1"
enum { SUM_DIGITS = 32 };

enum { BUFFERS = 3 };
static const char *const buffers[] = {"value", "first_moment", "second_moment"};
static const char *const alpha_buffers[] = {"alpha", "alpha_first_moment",
                                            "alpha_second_moment"};

static char *state_folder(const char *run)
{
    return path_join(run, STATE_FOLDER);
}

/* ---- writing ---- */

struct writing {
    struct whole_file file;
    uint64_t sum_at; /* 0: not seen yet */
};

static int sink(void *context, const void *bytes, uint64_t size)
{
    struct writing *w = context;
    if (!w->sum_at) {
        const char *at = memmem(bytes, size, NO_SUM, SUM_DIGITS);
        w->sum_at = (uint64_t)(at - (const char *)bytes);
    }
    return whole_file_write(&w->file, bytes, size);
}

static void add_number(struct safetensors *s, const char *key, double value, int digits)
{
    char text[64];
    number_print(text, sizeof text, "%.*g", digits, value);
    safetensors_add_metadata(s, key, text);
}

static void add_facts(struct safetensors *s, const struct snapshot_facts *f)
{
    safetensors_add_metadata(s, "format", "maskbert state");
    safetensors_add_metadata(s, "version", VERSION);
    add_number(s, "step", (double)f->step, 17);
    add_number(s, "tokens", (double)f->tokens, 17);
    add_number(s, "place", (double)f->place, 17);
    add_number(s, "elapsed_s", f->elapsed, 17);
    if (f->best_step) {
        add_number(s, "best", f->best, 17);
        add_number(s, "best_loss", f->best_loss, 17);
        add_number(s, "best_step", (double)f->best_step, 17);
    }
    safetensors_add_metadata(s, "options", f->options);
    safetensors_add_metadata(s, "identity", f->identity);
    safetensors_add_metadata(s, "sum", NO_SUM);
}

/* Names and sizes of the pieces: a state of another model does not fit. */
static void hash_pieces(const struct train_state *s, char ret[17])
{
    uint64_t hash = s->count;
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct piece *p = &s->piece[k];
        hash = XXH3_64bits_withSeed(p->parameter->name, strlen(p->parameter->name), hash);
        hash = XXH3_64bits_withSeed(&p->count, sizeof p->count, hash);
    }
    snprintf(ret, 17, "%016" PRIx64, hash);
}

/* Host copies of the arrays; null for an array that the host can read directly. */
struct copies {
    float *own[2 * BUFFERS];
    uint32_t count;
};

static int add_buffers(struct safetensors *out, const struct train_state *s,
                       const char *const *name, struct copies *c, struct error *e)
{
    float *each[BUFFERS] = {s->value, s->first_moment, s->second_moment};
    for (int k = 0; k < BUFFERS; k++) {
        const float *values =
            array_view(&s->device, each[k], each[k], s->count, &c->own[c->count++], e);
        if (!values)
            return -1;
        safetensors_add(out, name[k], "F32", 1, &s->count, values);
    }
    return 0;
}

static int add_tensors(struct safetensors *out, const struct snapshot_of *of, struct copies *c,
                       struct error *e)
{
    char pieces[17];
    uint64_t size;
    const uint8_t *kernel = engine_kernel(of->engine, &size);
    hash_pieces(of->state, pieces);
    safetensors_add_metadata(out, "pieces", pieces);
    if (add_buffers(out, of->state, buffers, c, e) < 0 ||
        (of->alpha && add_buffers(out, of->alpha, alpha_buffers, c, e) < 0))
        return -1;
    safetensors_add(out, "kernel", "U8", 1, &size, kernel);
    return 0;
}

static int stream(const char *path, const struct safetensors *out, struct error *e)
{
    struct writing w = {0};
    char sum[33];
    whole_file_begin(&w.file, path);
    safetensors_stream(out, sink, &w);
    whole_file_sum(&w.file, sum);
    whole_file_patch(&w.file, w.sum_at, sum, SUM_DIGITS);
    return whole_file_end(&w.file, e);
}

static int make_folder(const char *folder, struct error *e)
{
    return mkdir(folder, 0777) < 0 && errno != EEXIST
               ? error_set(e, ERROR_UNAVAILABLE, "%s: cannot be made: %s", folder,
                           strerror(errno))
               : 0;
}

int snapshot_write(const char *run, const struct snapshot_facts *facts,
                   const struct snapshot_of *of, struct error *e)
{
    struct safetensors out = {0};
    struct copies copies = {0};
    char name[48], *folder = state_folder(run);
    snprintf(name, sizeof name, "step-%012" PRIu64 ".safetensors", facts->step);
    char *path = path_join(folder, name);
    add_facts(&out, facts);
    int r = add_tensors(&out, of, &copies, e) < 0 || make_folder(folder, e) < 0 ||
                    stream(path, &out, e) < 0
                ? -1
                : folder_sync(folder, e);
    safetensors_finish(&out);
    for (uint32_t k = 0; k < copies.count; k++)
        free(copies.own[k]);
    free(path);
    free(folder);
    return r;
}

/* ---- which there are ---- */

static int is_state(const struct dirent *d)
{
    uint64_t step;
    int end = 0;
    return sscanf(d->d_name, "step-%12" SCNu64 ".safetensors%n", &step, &end) == 1 && end &&
           !d->d_name[end];
}

/* The newest first; -1: none. */
static int list(const char *folder, struct dirent ***ret)
{
    int n = scandir(folder, ret, is_state, alphasort);
    for (int k = 0; k < n / 2; k++) {
        struct dirent *first = (*ret)[k];
        (*ret)[k] = (*ret)[n - 1 - k];
        (*ret)[n - 1 - k] = first;
    }
    return n;
}

static void free_list(struct dirent **entry, int n)
{
    for (int k = 0; k < n; k++)
        free(entry[k]);
    if (n >= 0)
        free(entry);
}

void snapshot_prune(const char *run, uint32_t keep)
{
    struct dirent **entry;
    char *folder = state_folder(run);
    int n = list(folder, &entry);
    for (int k = 0; k < n; k++) {
        char *path = path_join(folder, entry[k]->d_name);
        if ((uint32_t)k >= keep)
            unlink(path);
        free(path);
    }
    free_list(entry, n);
    free(folder);
}

/* ---- reading ---- */

static bool sum_is_right(const struct file *f, const char *stored)
{
    const uint8_t *at =
        strlen(stored) == SUM_DIGITS ? memmem(f->bytes, f->size, stored, SUM_DIGITS) : NULL;
    char sum[33];
    if (!at)
        return false;
    struct whole_file reading = {.hash = XXH3_createState()};
    const uint8_t *rest = at + SUM_DIGITS;
    XXH3_128bits_reset(reading.hash);
    XXH3_128bits_update(reading.hash, f->bytes, (size_t)(at - f->bytes));
    XXH3_128bits_update(reading.hash, NO_SUM, SUM_DIGITS);
    XXH3_128bits_update(reading.hash, rest, f->size - (size_t)(rest - f->bytes));
    whole_file_sum(&reading, sum);
    XXH3_freeState(reading.hash);
    return !memcmp(sum, stored, SUM_DIGITS);
}

static const char *fact(const struct snapshot *s, const char *key)
{
    const char *text = safetensors_metadata(&s->tensors, key);
    return text ? text : "";
}

static int read_facts(struct snapshot *s, const char *path, struct error *e)
{
    const struct safetensor *kernel = safetensors_find(&s->tensors, "kernel");
    if (strcmp(fact(s, "format"), "maskbert state") != 0)
        return error_set(e, ERROR_INPUT, "%s: no state of maskbert pretrain", path);
    if (strcmp(fact(s, "version"), VERSION) != 0)
        return error_set(e, ERROR_INPUT, "%s: version %s; " VERSION " is expected", path,
                         fact(s, "version"));
    if (!kernel || !sum_is_right(&s->file, fact(s, "sum")))
        return error_set(e, ERROR_INPUT, "%s: damaged: its checksum is another", path);
    s->kernel = kernel->data;
    s->kernel_size = kernel->size;
    s->facts =
        (struct snapshot_facts){.step = strtoull(fact(s, "step"), NULL, 10),
                                .tokens = (uint64_t)number_read(fact(s, "tokens"), NULL),
                                .place = (uint64_t)number_read(fact(s, "place"), NULL),
                                .elapsed = number_read(fact(s, "elapsed_s"), NULL),
                                .best = number_read(fact(s, "best"), NULL),
                                .best_loss = number_read(fact(s, "best_loss"), NULL),
                                .best_step = (uint64_t)number_read(fact(s, "best_step"), NULL),
                                .identity = memory_text(fact(s, "identity"))};
    snprintf(s->facts.options, sizeof s->facts.options, "%s", fact(s, "options"));
    return 0;
}

static int read_one(const char *path, struct snapshot *ret, struct error *e)
{
    struct snapshot s = {0};
    if (file_open(path, &s.file, e) < 0 ||
        safetensors_parse(s.file.bytes, s.file.size, path, &s.tensors, e) < 0 ||
        read_facts(&s, path, e) < 0) {
        snapshot_close(&s);
        return -1;
    }
    *ret = s;
    return 0;
}

int snapshot_open(const char *run, struct snapshot *ret, struct error *e)
{
    struct dirent **entry;
    char *folder = state_folder(run);
    int n = list(folder, &entry), r = n > 0 ? -1 : 0;
    uint32_t damaged = 0;
    *ret = (struct snapshot){0};
    for (int k = 0; k < n && r < 0; k++) {
        char *path = path_join(folder, entry[k]->d_name);
        r = read_one(path, ret, e);
        damaged += r < 0;
        free(path);
    }
    ret->damaged = damaged;
    free_list(entry, n);
    free(folder);
    return r;
}

int snapshot_each(const char *run,
                  int (*see)(void *context, const struct snapshot *s, struct error *e),
                  void *context, struct error *e)
{
    struct dirent **entry;
    char *folder = state_folder(run);
    int n = list(folder, &entry), r = 0;
    for (int k = n - 1; k >= 0 && r == 0; k--) {
        struct snapshot s;
        char *path = path_join(folder, entry[k]->d_name);
        if (read_one(path, &s, e) == 0) {
            r = see(context, &s, e);
            snapshot_close(&s);
        }
        free(path);
    }
    free_list(entry, n);
    free(folder);
    return r;
}

void snapshot_close(struct snapshot *s)
{
    free(s->facts.identity);
    safetensors_finish(&s->tensors);
    file_close(&s->file);
    *s = (struct snapshot){0};
}

static int copy_buffers(const struct snapshot *s, const struct train_state *to,
                        const char *const *name, struct error *e)
{
    float *each[BUFFERS] = {to->value, to->first_moment, to->second_moment};
    for (int k = 0; k < BUFFERS; k++) {
        const struct safetensor *t = safetensors_find(&s->tensors, name[k]);
        if (!t || strcmp(t->dtype, "F32") != 0 || t->size != to->count * sizeof(float))
            return error_set(e, ERROR_INPUT, "the state has no %s of %" PRIu64 " numbers",
                             name[k], to->count);
    }
    for (int k = 0; k < BUFFERS; k++) {
        const struct safetensor *t = safetensors_find(&s->tensors, name[k]);
        if (elements_not_finite(ELEMENT_F32, t->data, to->count) != to->count)
            return error_set(e, ERROR_INPUT, "the state's %s: a number is not finite", name[k]);
        const struct span of = k ? to->moments : (struct span){0, to->count};
        if (to->device.does->array_write(to->device.state, each[k], of.count,
                                         t->data + of.first * sizeof(float), e) < 0)
            return -1;
    }
    return 0;
}

int snapshot_apply(const struct snapshot *s, struct train_state *to, struct train_state *alpha,
                   struct error *e)
{
    char pieces[17];
    hash_pieces(to, pieces);
    if (strcmp(fact(s, "pieces"), pieces) != 0)
        return error_set(e, ERROR_INPUT, "the state is of another model than the run's");
    if (copy_buffers(s, to, buffers, e) < 0)
        return -1;
    return alpha ? copy_buffers(s, alpha, alpha_buffers, e) : 0;
}
