/* SPDX-License-Identifier: Apache-2.0 */
/* alpha.safetensors of a run that learned a mask, as maskc --dam reads it: the mask that it says, and P as an importance. */
#include "masks/readers/readers.h"
#include "tests/fuzz/check.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void hold(int promise)
{
    if (!promise)
        abort();
}

static char folder[] = "/tmp/fuzz-alpha-XXXXXX", path[64];

static void remove_link(void)
{
    unlink(path);
    rmdir(folder);
}

/* The reader goes by the suffix, so one file in memory is read by a link with one. */
static int make_file(void)
{
    char target[64];
    int file = memfd_create("alpha", 0);
    hold(file >= 0 && mkdtemp(folder));
    snprintf(path, sizeof path, "%s/alpha.safetensors", folder);
    snprintf(target, sizeof target, "/proc/self/fd/%d", file);
    hold(symlink(target, path) == 0 && atexit(remove_link) == 0);
    return file;
}

static int open_bytes(const uint8_t *data, size_t size, struct array_file *ret, struct error *e)
{
    static int file = -1;
    if (file < 0)
        file = make_file();
    hold(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    return array_open(path, NULL, ret, e);
}

/* P lies between 0 and 1. */
static void read_importance(const struct array_file *a, const struct mask_request *r)
{
    struct importance p = {0};
    struct error e = {0};
    if (dam_importance(a, r, &p, &e) < 0) {
        check_refusal(&e);
        return;
    }
    for (size_t k = 0; k < (size_t)p.layers * p.heads * p.n * p.n; k++)
        hold(p.value[k] >= 0 && p.value[k] <= 1);
    importance_finish(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mask_request requests[] = {
        {.name = "FUZZ", .dam = true, .layer = -1},
        {.name = "FUZZ", .dam = true, .border = true, .layer = -1},
        {.name = "FUZZ", .dam = true, .layer = -1, .n = 3},
    };
    struct error e = {0};
    struct array_file a;
    if (open_bytes(data, size, &a, &e) < 0) {
        check_refusal(&e);
        return 0;
    }
    for (size_t k = 0; k < sizeof requests / sizeof *requests; k++) {
        struct mask *m = dam_read(&a, &requests[k], &e);
        if (m)
            check_mask(m);
        else
            check_refusal(&e);
        read_importance(&a, &requests[k]);
    }
    array_close(&a);
    return 0;
}
