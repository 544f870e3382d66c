/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the mock GPU's streams, a part of fake_gpu.c. A stream's work is kept until something waits for it: the host, or
   another stream by an event. Its memory is not read before that, so that too early a change of it shows. */
#pragma once

struct cu_function {
    char name[40];
};

enum work_kind { WORK_KERNEL, WORK_PRODUCT, WORK_COPY, WORK_SET, WORK_WAIT };

struct work {
    enum work_kind kind;
    struct cu_function function; /* a kernel with its arguments */
    unsigned blocks, threads, shared_bytes;
    void *args;
    struct product product;
    void *to; /* a copy, or bytes of one value */
    const void *from;
    size_t bytes;
    unsigned char value;
    struct cu_stream *stream; /* that is waited for, */
    int up_to;                /* until it has done so much */
    struct work *next;
};

struct cu_graph {
    struct work *first, **last;
};

struct cu_graph_exec {
    struct cu_graph graph;
};

struct cu_stream {
    struct cu_graph *capture;
    struct work *first, **last; /* that is not done */
    int given, done;
    const struct cu_stream *before; /* whose work it waits for, up to: */
    int up_to;
    struct cu_stream *next;
};

static struct cu_stream *all_streams;

static int unseen(const void *of)
{
    const struct cu_stream *s = of;
    return s->before ? s->before->given - s->up_to : -1;
}

/* ---- running ---- */

static int run_until(struct cu_stream *s, int up_to);

static int run(const struct work *w)
{
    switch (w->kind) {
    case WORK_KERNEL:
        return fake_gpu.run(w->function.name, w->blocks, w->threads, w->shared_bytes, w->args);
    case WORK_PRODUCT:
        return run_product(&w->product);
    case WORK_COPY:
        memcpy(w->to, w->from, w->bytes);
        return 0;
    case WORK_SET:
        memset(w->to, w->value, w->bytes);
        return 0;
    default:
        return run_until(w->stream, w->up_to);
    }
}

static int run_until(struct cu_stream *s, int up_to)
{
    int r = 0;
    while (s->done < up_to && s->first) {
        struct work *w = s->first;
        s->first = w->next;
        s->last = s->first ? s->last : &s->first;
        s->done++;
        r = r ? r : run(w);
        free(w->args);
        free(w);
    }
    if (!s->first)
        s->done = s->given;
    return r;
}

static int run_all(void)
{
    int r = 0;
    for (struct cu_stream *s = all_streams; s; s = s->next)
        r = run_until(s, s->given) ? 1 : r;
    return r;
}

static int left(void)
{
    int ret = 0;
    for (const struct cu_stream *s = all_streams; s; s = s->next)
        for (const struct work *w = s->first; w; w = w->next)
            ret++;
    return ret;
}

/* ---- memory that work refers to ---- */

struct range {
    const uint8_t *begin;
    size_t bytes;
};

/* True if one of the words, arguments or the like, is an address inside the range. */
static bool points_into(const struct range *r, const void *words, size_t bytes)
{
    for (size_t k = 0; k + sizeof(void *) <= bytes; k += sizeof(void *)) {
        const uint8_t *p;
        memcpy(&p, (const uint8_t *)words + k, sizeof p);
        if (p >= r->begin && p < r->begin + r->bytes)
            return true;
    }
    return false;
}

static bool refers_to(const struct work *w, const struct range *r)
{
    const void *copied[] = {w->to, w->from};
    return points_into(r, copied, sizeof copied) ||
           points_into(r, &w->product, sizeof w->product) ||
           (w->args && points_into(r, w->args, fake_gpu.args_bytes(w->function.name)));
}

/* Counts memory that goes before the work that refers to it has run. */
static void release(const void *begin, size_t bytes)
{
    const struct range r = {begin, bytes};
    for (const struct cu_stream *s = all_streams; s; s = s->next)
        for (const struct work *w = s->first; w; w = w->next)
            fake_gpu.early += !unwaited && refers_to(w, &r);
}

/* ---- giving ---- */

static void free_works(struct work *w)
{
    while (w) {
        struct work *next = w->next;
        free(w->args);
        free(w);
        w = next;
    }
}

static void append(struct work ***last, const struct work *w)
{
    struct work *added = malloc(sizeof *added);
    *added = *w;
    added->next = NULL;
    **last = added;
    *last = &added->next;
}

/* Takes what w points to. */
static int take(struct cu_stream *s, const struct work *w)
{
    fake_gpu.outside += !s;
    if (!s) {
        const int r = run(w);
        free(w->args);
        return r;
    }
    if (s->capture) {
        append(&s->capture->last, w);
        return 0;
    }
    append(&s->last, w);
    s->given++;
    return 0;
}

struct pinned {
    uint8_t *begin;
    size_t bytes;
    struct pinned *next;
};
static struct pinned *all_pinned;

static bool is_pinned(const void *p)
{
    for (const struct pinned *k = all_pinned; k; k = k->next)
        if ((const uint8_t *)p >= k->begin && (const uint8_t *)p < k->begin + k->bytes)
            return true;
    return false;
}

static bool works_beside(const struct cu_stream *s)
{
    for (const struct cu_stream *k = all_streams; k; k = k->next)
        if (k != s && k->first)
            return true;
    return false;
}

/* Memory that is not pinned is read at once. A copy from pinned memory with nothing before it runs at once or as late as any
   other work: both are right. */
static int copy(struct cu_stream *s, const struct work *w)
{
    const bool pinned = is_pinned(w->from);
    fake_gpu.copies += pinned;
    fake_gpu.beside += pinned && works_beside(s);
    if (pinned && (s->first || fake_gpu.lazy_copies))
        return take(s, w);
    const int r = run_until(s, ++s->given);
    memcpy(w->to, w->from, w->bytes);
    return r;
}
