/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of kernel files. The order decides which error is reported: the container first (another
   format, cut short, too long), then what kind of file and which version, then the checksum, then the
   content, of which nothing is believed: see check.c. */
#include "gen/family/cpu.h"
#include "gen/key_shape.h"
#include "masks/base/memory.h"
#include "masks/graph/order.h"
#include "masks/safetensors.h"
#include "runtime/artifact/tables.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_AT = 8 }; /* the JSON of the container */

/* Memory that a read artifact's pointers point into. */
struct storage {
    struct safetensors file;
    void *aligned; /* a copy of the bytes, where the caller's were not aligned to 8; or null */
};

/* ---- version and checksum ---- */

static int read_version(struct reader *r, const char *key, unsigned ours)
{
    const char *text = safetensors_metadata(r->file, key);
    char expected[16];
    snprintf(expected, sizeof expected, "%u", ours);
    if (text && !strcmp(text, expected))
        return 0;
    return error_set(r->e, ERROR_INPUT,
                     "%s: made by another version of maskc (%s %.16s, this one reads %s): "
                     "compile the mask again",
                     r->path, key, text ? text : "none", expected);
}

static int not_kernel_file(const char *path, struct error *e)
{
    return error_set(e, ERROR_INPUT,
                     "%s: not a kernel file (.mkb): `maskc compile` makes one from a mask, "
                     "`maskc show` describes a mask",
                     path);
}

static int parse(const uint8_t *bytes, uint64_t size, const char *path, struct safetensors *ret,
                 struct error *e)
{
    return size > HEADER_AT && bytes[HEADER_AT] == '{'
               ? safetensors_parse(bytes, size, path, ret, e)
               : not_kernel_file(path, e);
}

static int read_identity(struct reader *r, const uint8_t *bytes, uint64_t size)
{
    const char *format = safetensors_metadata(r->file, "format");
    if (!format || strcmp(format, "maskc kernel file"))
        return not_kernel_file(r->path, r->e);
    if (read_version(r, "version", ARTIFACT_VERSION) < 0 ||
        read_version(r, "abi", ABI_VERSION) < 0)
        return -1;
    char sum[CHECKSUM_DIGITS + 1];
    const uint8_t *digits = checksum_find(bytes, size);
    if (digits)
        checksum_compute(bytes, size, digits, sum);
    if (!digits || memcmp(digits, sum, CHECKSUM_DIGITS))
        return error_set(r->e, ERROR_INPUT, "%s: damaged: the checksum does not fit the bytes",
                         r->path);
    return 0;
}

/* ---- targets ---- */

/* Takes consecutive images: one after a gap is an unexpected tensor. */
static int take_images(struct reader *r, struct artifact_target *t)
{
    const uint32_t most =
        target_find(t->name, NULL)->kind == TARGET_CUDA ? ARTIFACT_MAX_IMAGES : 1;
    for (uint32_t k = 0; k < most; k++) {
        char name[IMAGE_NAME_BYTES];
        struct code_image *image = &t->image[k];
        image_name(t, k, name);
        if (artifact_take(r, name, "U8", 0, &image->bytes, &image->size) < 0)
            return -1;
        if (!image->size)
            break;
        t->n_images++;
    }
    return t->n_images ? 0
                       : error_set(r->e, ERROR_INPUT, "%s: no code for %s", r->path, t->name);
}

static int take_code(struct reader *r, struct artifact_target *t)
{
    char name[64];
    const void *source;
    uint64_t source_size;
    if (take_images(r, t) < 0)
        return -1;
    snprintf(name, sizeof name, "%s/source", t->name);
    if (artifact_take(r, name, "U8", 0, &source, &source_size) < 0)
        return -1;
    if (source) {
        t->source = memory_new(source_size + 1, 1);
        memcpy(t->source, source, source_size);
    }
    return 0;
}

/* Checks that the file has the tables that the target's kernels need. The CPU's have row blocks of
   one height. */
static int check_kernels(const struct artifact *a, const struct artifact_target *t,
                         const char *where, struct error *e)
{
    const struct artifact_plan *p = &a->plan[t->plan];
    const struct target *target = target_find(t->name, NULL);
    const struct item_kernels kernels = cpu_item_kernels(target, &a->request);
    if (target->kind == TARGET_CPU && p->block_rows != target->block_rows)
        return error_set(e, ERROR_INPUT, "%s: row blocks of %u rows, where %s has %u", where,
                         p->block_rows, t->name, target->block_rows);
    return pass_check_kernels(&p->forward, &kernels, where, e) < 0 ||
                   pass_check_kernels(&p->transposed, &kernels, where, e) < 0
               ? -1
               : 0;
}

/* Kernels of sparsegen keep all columns of an item. */
static void count_panels(const struct artifact *a, const struct artifact_target *t,
                         struct artifact_plan *p)
{
    if (!t->launch.scratch_col || !cpu_has_matrix(target_find(t->name, NULL), &a->request))
        return;
    p->forward.panel_cols = cpu_panel_cols(&p->forward);
    p->transposed.panel_cols = cpu_panel_cols(&p->transposed);
}

/* Phases that receive steps have them, for as many warpgroups as they have threads. */
static int check_phases(const struct phase *phase, uint32_t count,
                        const struct artifact_plan *p, const char *where, struct error *e)
{
    enum { WARPGROUP = 128 };
    static const enum machine_pass pass_of[PHASE_ARGUMENTS] = {
        [PHASE_HOPPER_FORWARD] = PASS_FORWARD,
        [PHASE_HOPPER_DQ] = PASS_DQ,
        [PHASE_HOPPER_DKV] = PASS_DKV,
    };
    for (uint32_t k = 0; k < count; k++) {
        const struct plan_steps *t = &p->steps[pass_of[phase[k].arguments]];
        if (phase[k].arguments != PHASE_ARGS &&
            (!t->warpgroups || (phase[k].threads - 1) / WARPGROUP != t->warpgroups))
            return error_set(e, ERROR_INPUT, "%s: %s has no steps of its shape", where,
                             phase[k].entry);
    }
    return 0;
}

static int read_target(struct reader *r, const struct datum *j, struct artifact *a, uint32_t k)
{
    struct artifact_target *t = &a->target[k];
    char where[512];
    snprintf(where, sizeof where, "%.400s: target %u", r->path, k);
    if (target_read(j, &a->request, t, &(struct place){where, r->e}) < 0)
        return -1;
    for (uint32_t other = 0; other < k; other++)
        if (!strcmp(a->target[other].name, t->name))
            return error_set(r->e, ERROR_INPUT, "%s: %s is there twice", where, t->name);
    if (t->plan >= a->n_plans || t->launch.block_rows != a->plan[t->plan].block_rows)
        return error_set(r->e, ERROR_INPUT, "%s: %s has no plan of its row block height", where,
                         t->name);
    const struct artifact_plan *p = &a->plan[t->plan];
    if ((p->forward.uses | p->transposed.uses) & ABI_SPLIT && !t->launch.partial_row)
        return error_set(r->e, ERROR_INPUT, "%s: %s has no room for what partial items leave",
                         where, t->name);
    if (check_phases(t->launch.forward, t->launch.n_forward, p, where, r->e) < 0 ||
        check_phases(t->launch.backward, t->launch.n_backward, p, where, r->e) < 0 ||
        check_kernels(a, t, where, r->e) < 0)
        return -1;
    count_panels(a, t, &a->plan[t->plan]);
    return take_code(r, t);
}

static int read_targets(struct reader *r, struct artifact *a)
{
    struct datum *list = artifact_take_json(r, "targets");
    int result = list ? artifact_count_list(r, list, "targets", &a->n_targets) : -1;
    for (uint32_t k = 0; result == 0 && k < a->n_targets; k++)
        result = read_target(r, datum_at(list, k), a, k);
    datum_destroy(list);
    return result;
}

/* ---- the whole ---- */

static int read_request(struct reader *r, struct artifact *a)
{
    struct datum *j = artifact_take_json(r, "features");
    int result = j ? kernel_request_read(j, &a->request, &(struct place){r->path, r->e}) : -1;
    datum_destroy(j);
    return result;
}

static int take_order(struct reader *r, struct artifact *a)
{
    uint64_t rows;
    if (artifact_take(r, "mask/order", "U32", 0, &a->order, &rows) < 0)
        return -1;
    bool square = request_queries(&a->request, a->mask) == request_keys(&a->request, a->mask);
    if (!a->order ||
        (rows == a->mask->n && square && order_is_permutation(a->order, a->mask->n)))
        return 0;
    return error_set(r->e, ERROR_INPUT, "%s: 'mask/order' is no order of the mask", r->path);
}

static int read_all(struct reader *r, struct artifact *a, const uint8_t *bytes, uint64_t size)
{
    if (read_identity(r, bytes, size) < 0 || read_request(r, a) < 0)
        return -1;
    a->mask = artifact_take_mask(r);
    if (!a->mask)
        return -1;
    if (!key_shape_fits(&a->request, a->mask))
        return error_set(r->e, ERROR_INPUT,
                         "%s: its numbers of keys and key heads do not fit the mask", r->path);
    a->request.length = a->mask->n;
    if (take_order(r, a) < 0)
        return -1;
    if (artifact_read_plans(r, a) < 0 || read_targets(r, a) < 0)
        return -1;
    if (r->taken != r->file->n_tensors)
        return error_set(r->e, ERROR_INPUT, "%s: holds tensors that no kernel file has",
                         r->path);
    return 0;
}

int artifact_read(const uint8_t *bytes, uint64_t size, const char *path, struct artifact **ret,
                  struct error *e)
{
    struct artifact *a = memory_new(1, sizeof *a);
    struct storage *s = memory_new(1, sizeof *s);
    a->storage = s;
    if ((uintptr_t)bytes % 8) {
        s->aligned = memory_aligned(size, 1);
        memcpy(s->aligned, bytes, size);
        bytes = s->aligned;
    }
    if (parse(bytes, size, path, &s->file, e) < 0)
        goto fail;
    struct reader r = {.file = &s->file, .path = path, .e = e};
    if (read_all(&r, a, bytes, size) < 0)
        goto fail;
    *ret = a;
    return 0;
fail:
    artifact_destroy(a);
    return -1;
}

void artifact_destroy(struct artifact *a)
{
    if (!a)
        return;
    struct storage *s = a->storage;
    mask_destroy(a->mask);
    for (uint32_t k = 0; k < a->n_targets; k++)
        free(a->target[k].source);
    safetensors_finish(&s->file);
    free(s->aligned);
    free(s);
    free(a);
}

/* The mask in the order of tokens. A kernel with an order has as many keys as queries. */
static struct mask *take_tokens(struct artifact *a, struct error *e)
{
    struct mask *m = a->mask;
    if (a->order) {
        uint32_t *position = order_invert(a->order, m->n);
        m = mask_permute(m, position, e);
        free(position);
    } else {
        a->mask = NULL;
        m->queries = a->request.queries;
        m->keys = a->request.keys;
    }
    return m;
}

struct mask *artifact_read_tokens(const char *path, bool *ret_ordered, struct error *e)
{
    struct file file;
    struct artifact *a;
    struct mask *m = NULL;
    if (file_open(path, &file, e) < 0)
        return NULL;
    if (artifact_read(file.bytes, file.size, path, &a, e) == 0) {
        *ret_ordered = a->order != NULL;
        m = take_tokens(a, e);
        artifact_destroy(a);
    }
    file_close(&file);
    return m;
}

struct mask *artifact_read_mask(const char *path, struct error *e)
{
    bool ordered;
    return artifact_read_tokens(path, &ordered, e);
}
