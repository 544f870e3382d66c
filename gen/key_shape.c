/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/key_shape.h"
#include <stddef.h>

uint32_t key_shape_side(const struct key_shape *s, uint32_t n)
{
    return n && s->length > n ? s->length : n;
}

static int refuse_bias(struct error *e)
{
    return error_set(e, ERROR_INPUT,
                     "a soft mask beside other numbers of keys than queries is not supported");
}

static int check_heads(const struct key_shape *s, const struct mask *m, struct error *e)
{
    if (!s->heads || (s->heads <= m->heads && m->heads % s->heads == 0))
        return 0;
    return error_set(e, ERROR_INPUT,
                     "%u key heads do not divide the %u query heads; expected as many or a "
                     "part of them",
                     s->heads, m->heads);
}

/* A mask that has been cut already stays as it is: `align` had its effect then. */
static int keep_length(const struct key_shape *s, uint32_t n, const struct mask *m,
                       struct kernel_request *r, struct error *e)
{
    const uint32_t side = m->queries > m->keys ? m->queries : m->keys;
    if ((n && n != m->queries) || (s->length && s->length != m->keys) || m->n != side)
        return error_set(
            e, ERROR_INPUT,
            "%s: it is for %u queries and %u keys; these or no lengths are expected", m->source,
            m->queries, m->keys);
    if (r->bias)
        return refuse_bias(e);
    r->queries = m->queries;
    r->keys = m->keys;
    return 0;
}

static int apply_length(const struct key_shape *s, uint32_t n, struct mask **m,
                        struct kernel_request *r, struct error *e)
{
    if ((*m)->queries)
        return keep_length(s, n, *m, r, e);
    const uint32_t queries = n ? n : (*m)->n;
    if (!s->length || s->length == queries)
        return 0;
    if (r->bias)
        return refuse_bias(e);
    struct mask *between = mask_rectangle(*m, queries, s->length, s->align, e);
    if (!between)
        return -1;
    mask_destroy(*m);
    *m = between;
    r->queries = queries;
    r->keys = s->length;
    return 0;
}

int key_shape_apply(const struct key_shape *s, uint32_t n, struct mask **m,
                    struct kernel_request *r, struct error *e)
{
    r->kv_heads = r->queries = r->keys = 0;
    if (check_heads(s, *m, e) < 0 || apply_length(s, n, m, r, e) < 0) {
        mask_destroy(*m);
        *m = NULL;
        return -1;
    }
    r->kv_heads = s->heads == (*m)->heads ? 0 : s->heads;
    return 0;
}

static bool lengths_fit(const struct kernel_request *r, const struct mask *m)
{
    const uint32_t side = r->queries > r->keys ? r->queries : r->keys;
    if (!r->queries && !r->keys)
        return true;
    return r->queries && r->keys && r->queries != r->keys && side == m->n && !r->bias &&
           mask_within(m, r->queries, r->keys);
}

bool key_shape_fits(const struct kernel_request *r, const struct mask *m)
{
    const bool heads = !r->kv_heads || (r->kv_heads < m->heads && m->heads % r->kv_heads == 0);
    return heads && lengths_fit(r, m);
}

uint32_t request_kv_heads(const struct kernel_request *r, const struct mask *m)
{
    return r->kv_heads ? r->kv_heads : m->heads;
}

uint32_t request_queries(const struct kernel_request *r, const struct mask *m)
{
    return request_sides(r, m->n, false).rows;
}

uint32_t request_keys(const struct kernel_request *r, const struct mask *m)
{
    return request_sides(r, m->n, false).columns;
}
