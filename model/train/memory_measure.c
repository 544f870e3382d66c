/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the memory of a step. A child process runs it, so that the caller's memory is not counted, and none stays
   allocated. */
#include "masks/base/memory.h"
#include "model/train/memory.h"
#include "model/train/optimizer.h"
#include "model/train/part_sums.h"
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Message of the child. */
struct answer {
    int result;
    struct train_memory memory;
    struct error error;
};

/* ---- what is resident ---- */

/* A field of /proc/self/status in bytes. */
static uint64_t status_bytes(const char *field)
{
    char line[256];
    uint64_t ret = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, field, strlen(field)))
            ret = strtoull(line + strlen(field), NULL, 10) << 10;
    if (f)
        fclose(f);
    return ret;
}

/* The peak of all less the files at their most: no less than the peak of anonymous memory since the last
   forget_peak() can have been. Files' pages stay once they are read. */
static uint64_t peak_bytes(void)
{
    return status_bytes("VmHWM:") - status_bytes("RssFile:") - status_bytes("RssShmem:");
}

static int forget_peak(struct error *e)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    const bool written = f && fputs("5", f) >= 0;
    if ((f && fclose(f)) || !written)
        return error_set(e, ERROR_UNAVAILABLE,
                         "/proc/self/clear_refs cannot be written: nothing is measured here");
    return 0;
}

/* Resident bytes after unused memory is returned to the system. */
static uint64_t settled_bytes(void)
{
    malloc_trim(0);
    return status_bytes("RssAnon:");
}

/* Resident bytes of an array of whole pages. */
static uint64_t resident_bytes(const void *data, uint64_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)data / page,
                   pages = ((uintptr_t)data + bytes + page - 1) / page - first;
    unsigned char *there = memory_new(pages, 1);
    uint64_t count = 0;
    if (bytes && mincore((void *)(first * page), pages * page, there) == 0)
        for (uint64_t k = 0; k < pages; k++)
            count += there[k] & 1;
    free(there);
    return count * page;
}

/* ---- a batch of random tokens ---- */

/* Knuth's MMIX generator: any tokens will do. */
static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* `count` rows evenly over the batch. */
static void add_target(struct train_batch *b, enum target_head head, uint32_t count,
                       uint32_t labels, uint64_t *state)
{
    uint32_t *row = memory_new(count, sizeof *row), *label = memory_new(count, sizeof *label);
    for (uint32_t k = 0; k < count; k++) {
        row[k] = (uint32_t)((uint64_t)k * b->tokens / count);
        label[k] = draw(state) % labels;
    }
    b->target[b->targets++] = (struct train_target){head, count, row, label};
}

static struct train_batch batch_make(const struct engine *g, const struct gradients_sizes *s)
{
    struct train_batch b = {.sequences = s->sequences, .tokens = s->tokens};
    uint32_t *token = memory_new(s->tokens, sizeof *token);
    uint64_t state = 1;
    for (uint32_t k = 0; k < s->tokens; k++)
        token[k] = draw(&state) % g->config.vocabulary;
    b.list = memory_new(b.sequences, sizeof *b.list);
    b.offsets = memory_new(b.sequences + UINT64_C(1), sizeof *b.offsets);
    b.sample = memory_new(b.sequences, sizeof *b.sample);
    for (uint32_t k = 0; k < b.sequences; k++) {
        b.list[k] = (struct sequence){token + (size_t)k * s->longest, s->longest, s->longest};
        b.offsets[k + 1] = (int32_t)((k + 1) * s->longest);
        b.sample[k] = k;
    }
    if (s->words)
        add_target(&b, TARGET_WORDS, s->words, g->config.vocabulary, &state);
    if (s->labels)
        add_target(&b, TARGET_NEXT, s->labels, 2, &state);
    return b;
}

static void batch_finish(struct train_batch *b)
{
    free((void *)b->list[0].token_ids);
    free(b->list);
    free(b->offsets);
    free(b->sample);
    for (uint32_t k = 0; k < b->targets; k++) {
        free((void *)(uintptr_t)b->target[k].row);
        free((void *)(uintptr_t)b->target[k].label);
    }
}

/* ---- the step ---- */

/* Shared by the functions below. */
struct subject {
    const struct memory_request *request;
    struct engine *engine;
    struct train_state *state;
    struct gradients_workspace *workspace;
    struct part_sums sums;
};

/* Two parts of a batch that has several, the second into the level of the tree below. */
static int run_parts(const struct subject *s, const struct gradients_sizes *sizes,
                     struct error *e)
{
    struct train_batch batch = batch_make(s->engine, sizes);
    struct batch_loss loss = {0};
    struct gradients_request r = {
        .engine = s->engine,
        .state = s->state,
        .batch = &batch,
        .hidden_dropout = s->request->hidden_dropout,
        .attention_dropout = s->request->attention_dropout,
        .recompute = s->request->recompute,
    };
    int result = 0;
    for (uint32_t k = 0; k < batch.targets; k++)
        r.weight[k] = 1.0 / batch.target[k].count;
    for (uint32_t k = 0; k < (s->request->accumulate > 1 ? 2 : 1) && result == 0; k++) {
        struct train_state state = *s->state;
        state.gradient = k && s->sums.gradient[1] ? s->sums.gradient[1] : state.gradient;
        r.state = &state;
        result = gradients_compute(&r, s->workspace, &loss, e);
    }
    if (result == 0 && s->sums.gradient[1])
        result = part_sums_add(&s->sums, 0, false, e);
    batch_finish(&batch);
    return result;
}

static int run_step(const struct subject *s, const struct gradients_sizes *sizes,
                    struct error *e)
{
    const struct optimizer o = {.kind = OPTIMIZER_ADAMW,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .weight_decay = 0.01,
                                .clip = 1};
    const struct optimizer_step at = {1, 1e-4, s->engine->threads};
    double norm;
    if (run_parts(s, sizes, e) < 0 || optimizer_step(&o, s->state, &at, &norm, e) < 0)
        return -1;
    return engine_repack(s->engine, e);
}

static uint64_t attention_bytes(const struct subject *s)
{
    struct gradients_array array[GRADIENTS_ATTENTION_ARRAYS];
    uint64_t ret = 0;
    gradients_attention_arrays(s->workspace, array);
    for (uint32_t k = 0; k < GRADIENTS_ATTENTION_ARRAYS; k++)
        ret += resident_bytes(array[k].data, array[k].bytes);
    return ret;
}

/* Resident bytes of an array in host memory; 0 for other arrays. */
static uint64_t state_bytes(const struct subject *s, float *array)
{
    const struct training_device *d = &s->state->device;
    const float *host = d->does->array_host(d->state, array);
    return host ? resident_bytes(host, d->does->array_bytes(s->state->count)) : 0;
}

static int load(const char *folder, const struct engine_options *o, struct subject *s,
                struct error *e)
{
    s->engine = engine_load(folder, o, e);
    if (!s->engine || train_state_new(s->engine, &s->state, e) < 0)
        return -1;
    s->workspace = gradients_workspace_new(s->engine);
    part_sums_begin(&s->sums, s->state, s->engine->threads, NULL, 0);
    for (uint32_t k = 1; k <= parts_extra(s->request->accumulate, 1); k++)
        if (part_sums_reserve(&s->sums, k, e) < 0)
            return -1;
    return engine_repack(s->engine, e);
}

/* A device counts what it allocates. */
static int measure_device(const struct subject *s, const struct gradients_sizes *sizes,
                          struct train_memory *ret, struct error *e)
{
    const struct training_device *d = &s->state->device;
    const uint64_t array = d->does->array_bytes(s->state->count);
    struct gradients_array attention[GRADIENTS_ATTENTION_ARRAYS];
    const struct training_use loaded = train_state_use(s->state);
    if (run_step(s, sizes, e) < 0)
        return -1;
    const struct training_use done = train_state_use(s->state);
    gradients_attention_arrays(s->workspace, attention);
    ret->gradients = array * (1 + parts_extra(s->request->accumulate, 1));
    ret->optimizer = 2 * array;
    ret->parameters = loaded.bytes - ret->gradients - ret->optimizer;
    ret->attention = attention[0].bytes;
    ret->activations = done.most_bytes - loaded.bytes - ret->attention;
    return 0;
}

static int measure(const char *folder, const struct engine_options *o, struct subject *s,
                   struct train_memory *ret, struct error *e)
{
    struct gradients_sizes sizes;
    const uint64_t begin = settled_bytes();
    if (load(folder, o, s, e) < 0 || train_memory_sizes(s->engine, s->request, &sizes, e) < 0)
        return -1;
    if (s->state->device.does->use)
        return measure_device(s, &sizes, ret, e);
    const uint64_t loaded = settled_bytes();
    if (forget_peak(e) < 0 || run_step(s, &sizes, e) < 0)
        return -1;
    const uint64_t peak = peak_bytes();
    ret->gradients = 0;
    for (uint32_t k = 0; k < PARTS_LEVELS; k++)
        if (s->sums.gradient[k])
            ret->gradients += state_bytes(s, s->sums.gradient[k]);
    ret->optimizer =
        state_bytes(s, s->state->first_moment) + state_bytes(s, s->state->second_moment);
    ret->parameters = loaded - begin - ret->gradients - ret->optimizer;
    ret->attention = attention_bytes(s);
    ret->activations = peak - loaded - ret->attention;
    return 0;
}

/* ---- the child ---- */

static void send(int to, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    while (bytes) {
        const ssize_t n = write(to, at, bytes);
        if (n <= 0)
            return;
        at += n;
        bytes -= (size_t)n;
    }
}

static bool receive(int from, void *data, size_t bytes)
{
    uint8_t *at = data;
    while (bytes) {
        const ssize_t n = read(from, at, bytes);
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Large blocks are mapped one by one, and go back when they are freed. */
static void settle_malloc(void)
{
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

static void run_child(const char *folder, const struct engine_options *o,
                      const struct memory_request *r, int to)
{
    struct answer a = {0};
    struct subject s = {.request = r};
    settle_malloc();
    a.result = measure(folder, o, &s, &a.memory, &a.error);
    send(to, &a, sizeof a);
    _exit(0);
}

static int fetch_answer(int from, pid_t child, struct train_memory *ret, struct error *e)
{
    struct answer *a = memory_new(1, sizeof *a);
    const bool whole = receive(from, a, sizeof *a);
    waitpid(child, NULL, 0);
    int result = -1;
    if (!whole)
        error_set(e, ERROR_UNAVAILABLE,
                  "the process that was measured was killed: too little memory?");
    else if ((result = a->result) < 0)
        error_set(e, a->error.kind, "%s", a->error.text);
    else
        *ret = a->memory;
    free(a);
    return result;
}

int train_memory_measure(const char *folder, const struct engine_options *o,
                         const struct memory_request *r, struct train_memory *ret,
                         struct error *e)
{
    int end[2];
    if (pipe(end) < 0)
        return error_set(e, ERROR_UNAVAILABLE, "no pipe");
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(end[0]);
        run_child(folder, o, r, end[1]);
    }
    close(end[1]);
    int result = child < 0 ? error_set(e, ERROR_UNAVAILABLE, "no child process")
                           : fetch_answer(end[0], child, ret, e);
    close(end[0]);
    return result;
}
