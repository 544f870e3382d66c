/* SPDX-License-Identifier: Apache-2.0 */
/* See hopper_args.h. The tables of operands are those of templates/cuda/hopper/args.h. */
#include "runtime/device/hopper_args.h"
#include "masks/base/memory.h"
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_OPERANDS = 6,
    KEPT = 128,             /* launches: a step of 24 layers has 72 */
    PARAMETER_BYTES = 4096, /* of a kernel, at most */
    LEAST_STRIDE = 16,      /* bytes; all strides are multiples of it */
    STRIDE_BITS = 40,       /* strides are below 2^40 bytes */
};

_Static_assert(sizeof(struct hopper_args) <= PARAMETER_BYTES, "arguments of a kernel");

/* ---- operands ---- */

enum role { ROLE_ROWS, ROLE_COLUMNS, ROLE_OUT };

struct operand {
    const char *name; /* as in struct maskc_launch */
    size_t tensor;    /* in struct abi_args */
    enum role role;
    uint32_t place;  /* in the array of that role */
    bool of_keys;    /* rows and heads are those of K and V */
    bool is_key_sum; /* scratch of floats where query heads share a key head: no map */
};

/* clang-format off */
#define T(name) offsetof(struct abi_args, name)
static const struct operand operands[PASSES][MOST_OPERANDS] = {
    [PASS_FORWARD] = {
        {"query",      T(q),   ROLE_ROWS,    0, false, false},
        {"key",        T(k),   ROLE_COLUMNS, 0, true,  false},
        {"value",      T(v),   ROLE_COLUMNS, 1, true,  false},
        {"out",        T(o),   ROLE_OUT,     0, false, false},
    },
    [PASS_DQ] = {
        {"query",      T(q),   ROLE_ROWS,    0, false, false},
        {"grad_out",   T(d_o), ROLE_ROWS,    1, false, false},
        {"out",        T(o),   ROLE_ROWS,    2, false, false},
        {"key",        T(k),   ROLE_COLUMNS, 0, true,  false},
        {"value",      T(v),   ROLE_COLUMNS, 1, true,  false},
        {"grad_query", T(d_q), ROLE_OUT,     0, false, false},
    },
    [PASS_DKV] = {
        {"key",        T(k),   ROLE_ROWS,    0, true,  false},
        {"value",      T(v),   ROLE_ROWS,    1, true,  false},
        {"query",      T(q),   ROLE_COLUMNS, 0, false, false},
        {"grad_out",   T(d_o), ROLE_COLUMNS, 1, false, false},
        {"grad_key",   T(d_k), ROLE_OUT,     0, true,  true},
        {"grad_value", T(d_v), ROLE_OUT,     1, true,  true},
    },
};
#undef T
/* clang-format on */

static enum machine_pass pass_of(const struct phase *p)
{
    return (enum machine_pass)(p->arguments - PHASE_HOPPER_FORWARD);
}

static bool some_need(const struct phase *p, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        if (p[k].arguments != PHASE_ARGS)
            return true;
    return false;
}

bool hopper_needed(const struct launch_record *l)
{
    return some_need(l->forward, l->n_forward) || some_need(l->backward, l->n_backward);
}

static int check_steps(const struct phase *p, uint32_t count, const struct plan_steps *steps,
                       struct error *e)
{
    for (uint32_t k = 0; k < count; k++)
        if (p[k].arguments != PHASE_ARGS && !steps[pass_of(&p[k])].layer_work)
            return error_set(e, ERROR_INPUT, "%s receives steps that the plan lacks",
                             p[k].entry);
    return 0;
}

/* ---- kept maps ---- */

/* Input of the maps of a phase. */
struct key {
    uint32_t pass;                         /* 1 + enum machine_pass; 0: nothing kept */
    struct map_shape shape[MOST_OPERANDS]; /* without boxes */
};

struct hopper_maps {
    map_encode_fn *encode;
    struct kernel_request request;
    const struct plan_steps *steps; /* [PASSES] */
    pthread_mutex_t lock;
    uint32_t oldest;
    struct key key[KEPT];
    struct hopper_args args[KEPT]; /* only the maps */
};

struct hopper_maps *hopper_maps_new(const struct artifact *a, const struct artifact_target *t,
                                    map_encode_fn *encode, struct error *e)
{
    const struct plan_steps *steps = a->plan[t->plan].steps;
    const struct launch_record *l = &t->launch;
    if (check_steps(l->forward, l->n_forward, steps, e) < 0 ||
        check_steps(l->backward, l->n_backward, steps, e) < 0)
        return NULL;
    struct hopper_maps *m = memory_aligned(1, sizeof *m);
    m->encode = encode;
    m->request = a->request;
    m->steps = steps;
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void hopper_maps_destroy(struct hopper_maps *m)
{
    if (m)
        pthread_mutex_destroy(&m->lock);
    free(m);
}

/* ---- shapes ---- */

static bool has_map(const struct hopper_maps *m, const struct operand *o)
{
    return o->name && !(o->is_key_sum && m->request.kv_heads);
}

/* Rows of a packed batch are all its tokens, which are the distance of two heads of the LSE. */
static uint64_t rows_of(const struct abi_args *a, const struct operand *o)
{
    if (a->offsets)
        return a->lse_head > 0 ? (uint64_t)a->lse_head : 1;
    return o->of_keys ? a->keys : a->queries;
}

/* A dimension of one element may have any stride. */
static uint64_t stride_of(uint64_t extent, int64_t elements)
{
    return extent > 1 ? sizeof(u16) * (uint64_t)elements : LEAST_STRIDE;
}

/* Leaves the padding of *s, which is compared. */
static void fill_shape(const struct hopper_maps *m, const struct operand *o,
                       const struct abi_args *a, struct map_shape *s)
{
    struct abi_tensor t;
    memcpy(&t, (const char *)a + o->tensor, sizeof t);
    s->address = t.data;
    s->dtype = m->request.dtype;
    s->extent[0] = m->request.head_dim;
    s->extent[1] = o->of_keys ? a->heads / a->group : a->heads;
    s->extent[2] = rows_of(a, o);
    s->extent[3] = a->offsets ? 1 : a->batch;
    s->stride[0] = sizeof(u16);
    s->stride[1] = stride_of(s->extent[1], t.head);
    s->stride[2] = stride_of(s->extent[2], t.row);
    s->stride[3] = stride_of(s->extent[3], t.batch);
}

static void make_key(const struct hopper_maps *m, enum machine_pass pass,
                     const struct abi_args *a, struct key *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->pass = 1 + (uint32_t)pass;
    for (int k = 0; k < MOST_OPERANDS; k++)
        if (has_map(m, &operands[pass][k]))
            fill_shape(m, &operands[pass][k], a, &ret->shape[k]);
}

/* The launch has checked addresses, and that strides are multiples of 16 bytes. */
static int check_shape(const struct operand *o, const struct map_shape *s, struct error *e)
{
    static const char *const of[MAP_DIMENSIONS] = {"positions", "heads", "rows", "sequences"};
    for (int k = 1; k < MAP_DIMENSIONS; k++)
        if (s->stride[k] >> STRIDE_BITS || s->stride[k] % LEAST_STRIDE)
            return error_set(
                e, ERROR_INPUT,
                "launch: %s has a stride of %lld bytes between %s, which the tensor maps of "
                "this kernel cannot hold: expected a multiple of 16 in 0..2^40 - 16; change "
                "the layout, or compile with --family cuda_tiled",
                o->name, (long long)s->stride[k], of[k]);
    return 0;
}

/* ---- encoding ---- */

static int encode(const struct hopper_maps *m, const struct map_shape *s, uint32_t rows,
                  struct tensor_map *ret, struct error *e)
{
    struct map_shape boxed = *s;
    boxed.box[0] = HOPPER_PART;
    boxed.box[1] = 1;
    boxed.box[2] = rows;
    boxed.box[3] = 1;
    return m->encode(&boxed, ret, e);
}

static int encode_operand(const struct hopper_maps *m, enum machine_pass pass, int k,
                          const struct map_shape *s, struct hopper_args *ret, struct error *e)
{
    const struct operand *o = &operands[pass][k];
    struct stream_maps *columns = &ret->columns[o->place];
    switch (o->role) {
    case ROLE_ROWS:
        return encode(m, s, HOPPER_ROWS, &ret->rows[o->place], e) < 0
                   ? -1
                   : encode(m, s, 1, &ret->row[o->place], e);
    case ROLE_COLUMNS:
        return encode(m, s, m->steps[pass].slots * ABI_TILE_COLS, &columns->run, e) < 0 ||
                       encode(m, s, ABI_TILE_COLS, &columns->tile, e) < 0
                   ? -1
                   : encode(m, s, 1, &columns->row, e);
    default:
        return encode(m, s, HOPPER_ROWS, &ret->out[o->place], e);
    }
}

static int encode_all(const struct hopper_maps *m, enum machine_pass pass,
                      const struct key *key, struct hopper_args *ret, struct error *e)
{
    memset(ret, 0, sizeof *ret);
    for (int k = 0; k < MOST_OPERANDS; k++) {
        const struct operand *o = &operands[pass][k];
        if (!has_map(m, o))
            continue;
        if (check_shape(o, &key->shape[k], e) < 0)
            return -1;
        if (encode_operand(m, pass, k, &key->shape[k], ret, e) < 0)
            return error_prefix(e, "launch: tensor map of %s", o->name);
    }
    return 0;
}

/* The kept maps, or new ones in the place of the oldest; null with *e set. The caller holds the lock. */
static const struct hopper_args *find_maps(struct hopper_maps *m, enum machine_pass pass,
                                           const struct key *key, struct error *e)
{
    for (uint32_t k = 0; k < KEPT; k++)
        if (!memcmp(&m->key[k], key, sizeof *key))
            return &m->args[k];
    const uint32_t k = m->oldest;
    m->key[k].pass = 0;
    if (encode_all(m, pass, key, &m->args[k], e) < 0)
        return NULL;
    memcpy(&m->key[k], key, sizeof *key);
    m->oldest = (k + 1) % KEPT;
    return &m->args[k];
}

int hopper_fill(struct hopper_maps *m, const struct phase *p, const struct device_launch *l,
                const struct abi_steps steps[PASSES], struct hopper_args *ret, struct error *e)
{
    const enum machine_pass pass = pass_of(p);
    struct key key;
    make_key(m, pass, &l->args, &key);
    pthread_mutex_lock(&m->lock);
    const struct hopper_args *maps = find_maps(m, pass, &key, e);
    if (maps)
        *ret = *maps;
    pthread_mutex_unlock(&m->lock);
    if (!maps)
        return -1;
    const uint64_t *work = m->steps[pass].layer_work[l->layer];
    ret->a = phase_args(p->over, &l->args);
    ret->steps = steps[pass];
    ret->steps.work += work[0];
    ret->steps.works = (u32)work[1];
    return 0;
}
