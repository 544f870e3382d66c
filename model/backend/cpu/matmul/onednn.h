/* SPDX-License-Identifier: Apache-2.0 */
/* The differences between oneDNN 2.x (Debian 12) and 3.x (Ubuntu 24.04): layouts of matrices, and how products
   are described. For the files behind matmul.h alone. */
#pragma once
#include <oneapi/dnnl/dnnl.h>
#include <stddef.h>

struct layout {
    dnnl_memory_desc_t md;
};

/* y = x w + b */
struct product_layouts {
    const struct layout *x, *w, *b, *y;
};

#if DNNL_VERSION_MAJOR >= 3

static inline dnnl_status_t layout_make(struct layout *l, const dnnl_dims_t dims,
                                        dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(&l->md, 2, dims, type, tag);
}

static inline dnnl_status_t layout_strided(struct layout *l, const dnnl_dims_t dims,
                                           dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return dnnl_memory_desc_create_with_strides(&l->md, 2, dims, type, strides);
}

static inline dnnl_status_t layout_query(struct layout *l, const_dnnl_primitive_desc_t pd,
                                         dnnl_query_t what)
{
    return dnnl_memory_desc_clone(&l->md, dnnl_primitive_desc_query_md(pd, what, 0));
}

static inline void layout_finish(struct layout *l)
{
    if (l->md)
        dnnl_memory_desc_destroy(l->md);
}

static inline size_t layout_bytes(const struct layout *l)
{
    return dnnl_memory_desc_get_size(l->md);
}

static inline dnnl_status_t memory_make(dnnl_memory_t *ret, const struct layout *l,
                                        dnnl_engine_t engine, void *data)
{
    return dnnl_memory_create(ret, l->md, engine, data);
}

static inline dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_f32);
}

static inline dnnl_status_t append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind,
                                           float alpha)
{
    return dnnl_post_ops_append_eltwise(ops, kind, alpha, 0);
}

/* b null: there is no bias. */
static inline dnnl_status_t describe(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                     const struct product_layouts *l,
                                     const_dnnl_primitive_attr_t attributes)
{
    return dnnl_matmul_primitive_desc_create(ret, engine, l->x->md, l->w->md,
                                             l->b ? l->b->md : NULL, l->y->md, attributes);
}

static inline dnnl_status_t describe_reorder(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                             const struct layout *from, const struct layout *to)
{
    return dnnl_reorder_primitive_desc_create(ret, from->md, engine, to->md, engine, NULL);
}

#else

static inline dnnl_status_t layout_make(struct layout *l, const dnnl_dims_t dims,
                                        dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(&l->md, 2, dims, type, tag);
}

static inline dnnl_status_t layout_strided(struct layout *l, const dnnl_dims_t dims,
                                           dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return dnnl_memory_desc_init_by_strides(&l->md, 2, dims, type, strides);
}

static inline dnnl_status_t layout_query(struct layout *l, const_dnnl_primitive_desc_t pd,
                                         dnnl_query_t what)
{
    l->md = *dnnl_primitive_desc_query_md(pd, what, 0);
    return dnnl_success;
}

static inline void layout_finish(struct layout *l)
{
    (void)l;
}

static inline size_t layout_bytes(const struct layout *l)
{
    return dnnl_memory_desc_get_size(&l->md);
}

static inline dnnl_status_t memory_make(dnnl_memory_t *ret, const struct layout *l,
                                        dnnl_engine_t engine, void *data)
{
    return dnnl_memory_create(ret, &l->md, engine, data);
}

static inline dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1);
}

static inline dnnl_status_t append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind,
                                           float alpha)
{
    return dnnl_post_ops_append_eltwise(ops, 1, kind, alpha, 0);
}

static inline dnnl_status_t describe(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                     const struct product_layouts *l,
                                     const_dnnl_primitive_attr_t attributes)
{
    dnnl_matmul_desc_t d;
    dnnl_status_t s =
        dnnl_matmul_desc_init(&d, &l->x->md, &l->w->md, l->b ? &l->b->md : NULL, &l->y->md);
    return s ? s : dnnl_primitive_desc_create(ret, &d, attributes, engine, NULL);
}

static inline dnnl_status_t describe_reorder(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                             const struct layout *from, const struct layout *to)
{
    return dnnl_reorder_primitive_desc_create(ret, &from->md, engine, &to->md, engine, NULL);
}

#endif
