/* SPDX-License-Identifier: Apache-2.0 */
/* A target list as a person writes it: names of the table, and "cpu", "cuda" and "cuda:N", which depend on the
   machine. */
#include "gen/family/family.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/device/device.h"
#include "runtime/device/machine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Targets of "cuda" without a GPU: two common ones, and PTX for all others. */
static const char *const cuda_targets[] = {"sm_80", "sm_90a", "compute_80", NULL};

/* Without work for the matrix unit a target that has one would be the next one under another name. */
static bool suits(const struct target *t, const struct kernel_request *r)
{
    return t->kind == TARGET_CPU &&
           (!r || !t->matrix_machine ||
            family_is_matrix(t, &(struct kernel_config){.request = *r}));
}

const char *machine_cpu_target(const struct kernel_request *r)
{
    const char *best = "x86-64-v2";
    int most = 0;
    for (const struct target *t = targets; t->name; t++) {
        const int rank = suits(t, r) ? machine_rank(t->name) : 0;
        if (rank > most) {
            most = rank;
            best = t->name;
        }
    }
    return best;
}

/* The table's best row by the GPU's own preference among the kernel files it is shown. */
const char *machine_cuda_target(int ordinal)
{
    const char *best = NULL;
    int score = 0;
    if (device_cuda.unavailable()[0])
        return NULL;
    for (const struct target *t = targets; t->name; t++) {
        struct artifact_target made = {0};
        snprintf(made.name, sizeof made.name, "%s", t->name);
        int s = t->kind == TARGET_CUDA ? device_cuda.prefers(&made, ordinal) : 0;
        if (s > score) {
            score = s;
            best = t->name;
        }
    }
    return best;
}

struct list {
    const struct kernel_request *request;
    const struct target **target;
    uint32_t capacity, count;
};

static int add_row(struct list *list, const struct target *t, struct error *e)
{
    for (uint32_t k = 0; k < list->count; k++)
        if (list->target[k] == t)
            return 0;
    if (list->count == list->capacity)
        return error_set(e, ERROR_INPUT, "more than %u targets", list->capacity);
    list->target[list->count++] = t;
    return 0;
}

static int add(struct list *list, const char *name, struct error *e)
{
    const struct target *t = target_find(name, e);
    return t ? add_row(list, t, e) : -1;
}

/* A GPU of this machine: what its driver cannot do is not planned. */
static int add_here(struct list *list, const char *name, struct error *e)
{
    const struct target *t = target_find(name, e);
    if (!t)
        return -1;
    return add_row(list, cuda_has_tensor_maps() ? t : target_without_tensor_maps(t), e);
}

/* "cuda" or "cuda:N". */
static int add_cuda(struct list *list, const char *word, struct error *e)
{
    const struct device *ignored;
    int ordinal;
    if (device_find(word, &ignored, &ordinal, e) < 0 ||
        (ordinal >= 0 && cuda_must_have(ordinal, e) < 0))
        return -1;
    const char *here = machine_cuda_target(ordinal);
    if (here)
        return add_here(list, here, e);
    for (const char *const *name = cuda_targets; *name; name++)
        if (add(list, *name, e) < 0)
            return -1;
    return 0;
}

static int add_word(struct list *list, const char *word, struct error *e)
{
    if (!strcmp(word, "cpu"))
        return add(list, machine_cpu_target(list->request), e);
    return !strcmp(word, "cuda") || !strncmp(word, "cuda:", 5) ? add_cuda(list, word, e)
                                                               : add(list, word, e);
}

int targets_resolve(const char *list, const struct kernel_request *f, const struct target **ret,
                    uint32_t capacity, uint32_t *ret_count, struct error *e)
{
    struct list found = {f, ret, capacity, 0};
    if (machine_check_cap(e) < 0)
        return -1;
    char *copy = memory_text(list), *at = copy;
    int r = 0;
    for (char *word; r == 0 && (word = strsep(&at, ","));)
        r = add_word(&found, word, e);
    free(copy);
    if (r == 0)
        *ret_count = found.count;
    return r;
}
