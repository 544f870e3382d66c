/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/far_memory.h"
#include "model/ops/linear.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 64 };

static struct {
    uint8_t *data;
    size_t bytes; /* whole pages */
} array[MOST];
static uint32_t arrays, inside; /* inside: functions of the backend that run now */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t far_arrays(void)
{
    return arrays;
}

/* Ends the program: threads of OpenMP cannot fail a test. */
static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "far memory: %s\n", what);
    abort();
}

static void protect(uint32_t k, int how)
{
    must(mprotect(array[k].data, array[k].bytes, how) == 0, "mprotect failed");
}

static void enter(void)
{
    pthread_mutex_lock(&lock);
    for (uint32_t k = 0; k < arrays && !inside; k++)
        protect(k, PROT_READ | PROT_WRITE);
    inside++;
    pthread_mutex_unlock(&lock);
}

static void leave(void)
{
    pthread_mutex_lock(&lock);
    inside--;
    for (uint32_t k = 0; k < arrays && !inside; k++)
        protect(k, PROT_NONE);
    pthread_mutex_unlock(&lock);
}

static bool is_far(const void *p, uint64_t bytes)
{
    const uint8_t *at = p;
    bool ret = false;
    pthread_mutex_lock(&lock);
    for (uint32_t k = 0; k < arrays; k++)
        ret |= at >= array[k].data && at + bytes <= array[k].data + array[k].bytes;
    pthread_mutex_unlock(&lock);
    return ret;
}

/* ---- arrays ---- */

static float *array_new(struct backend_state *s, uint64_t count, struct error *e)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                 bytes = (count * sizeof(float) + page - 1) / page * page;
    (void)s, (void)e;
    pthread_mutex_lock(&lock);
    must(arrays < MOST, "too many arrays");
    array[arrays].bytes = bytes ? bytes : page;
    array[arrays].data = mmap(NULL, array[arrays].bytes, inside ? PROT_READ | PROT_WRITE : 0,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *ret = array[arrays++].data;
    must(ret != MAP_FAILED, "no memory");
    pthread_mutex_unlock(&lock);
    return ret;
}

static void array_destroy(struct backend_state *s, float *p)
{
    uint32_t k = 0;
    (void)s;
    if (!p)
        return;
    pthread_mutex_lock(&lock);
    while (k < arrays && array[k].data != (uint8_t *)p)
        k++;
    must(k < arrays, "what is destroyed is no array");
    munmap(array[k].data, array[k].bytes);
    array[k] = array[--arrays];
    pthread_mutex_unlock(&lock);
}

static float *array_host(struct backend_state *s, float *p)
{
    (void)s, (void)p;
    return NULL;
}

static int array_write(struct backend_state *s, float *to, uint64_t count, const void *value,
                       struct error *e)
{
    must(is_far(to, count * sizeof *to) && !is_far(value, 1), "array_write: a wrong address");
    enter();
    const int r = backend_cpu.training->array_write(s, to, count, value, e);
    leave();
    return r;
}

static int array_read(struct backend_state *s, const float *from, uint64_t count, float *ret,
                      struct error *e)
{
    must(is_far(from, count * sizeof *from) && !is_far(ret, 1), "array_read: a wrong address");
    enter();
    const int r = backend_cpu.training->array_read(s, from, count, ret, e);
    leave();
    return r;
}

static int array_clear(struct backend_state *s, float *to, uint64_t count, uint32_t threads,
                       struct error *e)
{
    must(is_far(to, count * sizeof *to), "array_clear: a wrong address");
    enter();
    const int r = backend_cpu.training->array_clear(s, to, count, threads, e);
    leave();
    return r;
}

static int array_drain(struct backend_state *s, float *to, float *from, uint64_t count,
                       uint32_t threads, struct error *e)
{
    must(is_far(to, count * sizeof *to) && is_far(from, count * sizeof *from),
         "array_drain: a wrong address");
    enter();
    const int r = backend_cpu.training->array_drain(s, to, from, count, threads, e);
    leave();
    return r;
}

static int array_is_finite(struct backend_state *s, const float *from, uint64_t count,
                           bool *ret, struct error *e)
{
    enter();
    const int r = backend_cpu.training->array_is_finite(s, from, count, ret, e);
    leave();
    return r;
}

/* ---- what reads and writes them ---- */

static int gradient_norm(const struct train_state *s, uint32_t threads, double *ret,
                         struct error *e)
{
    enter();
    const int r = backend_cpu.training->gradient_norm(s, threads, ret, e);
    leave();
    return r;
}

static int update(const struct train_state *s, const struct update *u, uint32_t threads,
                  struct error *e)
{
    enter();
    const int r = backend_cpu.training->update(s, u, threads, e);
    leave();
    return r;
}

static int refill(struct backend_state *s, void *kept, enum element type, const float *value,
                  uint64_t count, struct error *e)
{
    must(is_far(value, count * sizeof *value), "refill: a wrong address");
    enter();
    const int r = backend_cpu.training->refill(s, kept, type, value, count, e);
    leave();
    return r;
}

static int repack(struct backend_state *s, const struct linear *l,
                  const struct weight_view *weight, const float *bias, struct error *e)
{
    const bool far = !weight->on_host;
    must(is_far(weight->value, sizeof(float)) == far &&
             (!bias || is_far(bias, l->shape.out * sizeof *bias) == far),
         "repack: a wrong address");
    enter();
    const int r = backend_cpu.training->repack(s, l, weight, bias, e);
    leave();
    return r;
}

static int compute(const struct gradients_request *q, struct backend_training *m,
                   struct batch_loss *loss, struct error *e)
{
    enter();
    const int r = backend_cpu.training->compute(q, m, loss, e);
    leave();
    return r;
}

/* Word embeddings are read where they are. */
static int encode(const struct encode_request *q, struct error *e)
{
    enter();
    const int r = backend_cpu.encode(q, e);
    leave();
    return r;
}

const struct backend *far_backend(void)
{
    static struct training_backend training;
    static struct backend backend;
    training = *backend_cpu.training;
    training.array_new = array_new;
    training.array_destroy = array_destroy;
    training.array_host = array_host;
    training.array_write = array_write;
    training.array_read = array_read;
    training.array_clear = array_clear;
    training.array_drain = array_drain;
    training.array_is_finite = array_is_finite;
    training.gradient_norm = gradient_norm;
    training.update = update;
    training.refill = refill;
    training.repack = repack;
    training.compute = compute;
    backend = backend_cpu;
    backend.encode = encode;
    backend.training = &training;
    return &backend;
}
