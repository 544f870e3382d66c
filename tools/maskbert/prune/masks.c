/* SPDX-License-Identifier: Apache-2.0 */
/* The masks of the table: the greatest entries of each head, and what fits into shares of dense's time. */
#include "masks/base/folder.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/readers/keep.h"
#include "masks/write.h"
#include "model/checkpoint/json.h"
#include "tools/maskbert/prune/prune.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct prune_row prune_row_new(const char *kind, double keep, double share)
{
    const double unknown = (double)NAN;
    return (struct prune_row){.kind = kind,
                              .keep = keep,
                              .share = share,
                              .density = unknown,
                              .retained = unknown,
                              .predicted = unknown,
                              .measured = unknown,
                              .cosine = unknown,
                              .neighbours = unknown};
}

static double density_of(const struct mask *m)
{
    double active = 0;
    for (uint32_t k = 0; k < m->layers * m->heads; k++)
        active += (double)m->pattern[m->at[k]]->active;
    return active / m->layers / m->heads / m->n / m->n;
}

static char *file_of(const char *kind, double percent)
{
    struct text name = {0};
    text_add(&name, "%s-%g.npy", kind, percent);
    return text_take(&name);
}

/* Numbers that differ behind the sixth digit have the same name. `factor`: from a number to percent. */
static int check_names(const char *option, const char *kind, const double *number,
                       uint32_t count, double factor, struct error *e)
{
    for (uint32_t k = 1; k < count; k++)
        for (uint32_t i = 0; i < k; i++) {
            char *a = file_of(kind, factor * number[i]), *b = file_of(kind, factor * number[k]);
            const bool same = !strcmp(a, b);
            if (same)
                error_set(e, ERROR_INPUT,
                          "%s: %.9g and %.9g would both be %s; numbers that differ in their "
                          "first six digits are expected",
                          option, number[i], number[k], a);
            free(a);
            free(b);
            if (same)
                return -1;
        }
    return 0;
}

int prune_check_names(const struct prune *p, struct error *e)
{
    return check_names("--keep", "keep", p->keep, p->keeps, 1, e) < 0
               ? -1
               : check_names("--snap", "snap", p->share, p->shares, 100, e);
}

/* Takes the mask, which may be null. */
static void add_row(struct prune *p, struct prune_row row, struct mask *m)
{
    row.mask = m;
    row.file = file_of(row.kind, isnan(row.share) ? row.keep : 100 * row.share);
    if (m) {
        row.density = density_of(m);
        row.retained = snap_retained(&p->importance, m);
    }
    *MEMORY_PUSH(p->row, p->rows, p->capacity) = row;
}

/* ---- a percentage of each head ---- */

enum kind { KIND_KEEP, KIND_NO_DIAGONAL, KIND_RANDOM, KIND_COUNT };
static const char *const kinds[KIND_COUNT] = {"keep", "no-diagonal", "random"};

static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static void rank(const struct prune *p, enum kind kind, size_t head, double *value)
{
    const size_t n = p->n, all = n * n;
    const float *from = p->importance.value + head * all;
    uint64_t state = p->o->seed * 1000003 + head + 1;
    for (size_t k = 0; k < all; k++)
        value[k] = kind == KIND_RANDOM ? draw(&state) : (double)from[k];
    for (size_t i = 0; i < n && kind == KIND_NO_DIAGONAL; i++)
        value[i * n + i] = -1;
}

static struct mask *keep_share(const struct prune *p, enum kind kind, double keep)
{
    const struct importance *from = &p->importance;
    const size_t heads = (size_t)from->layers * from->heads;
    struct pattern **given = memory_new(heads, sizeof *given);
    double *value = memory_new((size_t)p->n * p->n, sizeof *value);
    for (size_t k = 0; k < heads; k++) {
        rank(p, kind, k, value);
        given[k] = keep_greatest(value, p->n, keep);
    }
    struct mask *m = mask_new(from->layers, from->heads, given, kinds[kind]);
    free(given);
    free(value);
    return m;
}

static void add_keeps(struct prune *p)
{
    const bool wanted[KIND_COUNT] = {
        [KIND_KEEP] = true,
        [KIND_NO_DIAGONAL] = p->o->drop_diagonal,
        [KIND_RANDOM] = p->o->random,
    };
    for (uint32_t k = 0; k < p->keeps; k++)
        for (int kind = 0; kind < KIND_COUNT; kind++)
            if (wanted[kind])
                add_row(p, prune_row_new(kinds[kind], p->keep[k], (double)NAN),
                        keep_share(p, (enum kind)kind, p->keep[k]));
}

/* ---- a share of dense's time ---- */

static void tell(void *context, double done, const char *what)
{
    char line[96];
    const double *share = context;
    snprintf(line, sizeof line, "snap %g %%: %3.0f %% %s", 100 * *share, 100 * done, what);
    session_tell(done < 1 ? line : NULL);
}

/* ERROR_FALSE: no mask is within the share, which leaves rows without masks. */
static int miss(struct prune *p, double share, const struct error *why, struct error *e)
{
    if (why->kind != ERROR_FALSE)
        return error_set(e, why->kind, "%s", why->text);
    text_add(&p->missed, "%s%g", text_get(&p->missed)[0] ? "," : "", share);
    p->why = *why;
    return 0;
}

/* The best of all kinds goes by snap's name; each other kind is a row to compare it with. */
static int add_share(struct prune *p, double share, struct error *e)
{
    struct snap_request request;
    struct snap_result result = {0};
    if (prune_request(p, &request, e) < 0)
        return -1;
    request.share = share;
    request.progress = tell;
    request.progress_context = &share;
    struct error why = {0};
    int r = snap_solve(&p->importance, &request, &result, &why);
    session_tell(NULL);
    if (r < 0)
        r = miss(p, share, &why, e);
    for (int k = 0; k < SNAP_KINDS && r == 0; k++) {
        struct mask *m = k == SNAP_ROW_BLOCKS ? result.best.mask : result.kind[k].mask;
        struct prune_row row = prune_row_new(snap_kind_names[k], (double)NAN, share);
        row.won = k == SNAP_ROW_BLOCKS && m ? snap_kind_names[result.best.kind] : NULL;
        add_row(p, row, m ? mask_crop(m, m->n, e) : NULL);
    }
    snap_result_finish(&result);
    return r;
}

int prune_make_masks(struct prune *p, struct error *e)
{
    add_keeps(p);
    for (uint32_t k = 0; k < p->shares; k++)
        if (add_share(p, p->share[k], e) < 0)
            return -1;
    return 0;
}

static bool has_masks(const struct prune *p)
{
    for (uint32_t k = 0; k < p->rows; k++)
        if (p->row[k].mask)
            return true;
    return false;
}

int prune_write_masks(const struct prune *p, struct error *e)
{
    struct folder folder = {0};
    int r = has_masks(p) ? folder_begin(p->o->output, &folder, e) : 0;
    for (uint32_t k = 0; k < p->rows && r == 0; k++) {
        const struct prune_row *row = &p->row[k];
        if (!row->mask)
            continue;
        char *path = path_join(folder.aside, row->file);
        r = mask_write_npy(row->mask, path, e);
        free(path);
    }
    return folder_end(&folder, r, e);
}
