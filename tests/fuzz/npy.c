/* SPDX-License-Identifier: Apache-2.0 */
/* The input as a .npy file, whose array is then read as a dense mask (plain, threshold, keep), as DAM parameters and as an importance. */
#include "masks/readers/readers.h"
#include "tests/fuzz/check.h"
#include <math.h>
#include <stdlib.h>

/* Checks that an accepted file holds what importance.h promises. */
static void read_importance(const struct array_file *a, const struct mask_request *r)
{
    struct importance p = {0};
    struct error e = {0};
    if (importance_from_array(a, r, &p, &e)) {
        check_refusal(&e);
        return;
    }
    double sum = 0;
    for (size_t k = 0; k < (size_t)p.layers * p.heads * p.n * p.n; k++) {
        if (!(p.value[k] >= 0) || isinf(p.value[k]))
            abort();
        sum += p.value[k];
    }
    if (!(sum > 0))
        abort();
    importance_finish(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mask_request requests[] = {
        {.name = "FUZZ"},
        {.name = "FUZZ", .has_threshold = true, .threshold = 0.25},
        {.name = "FUZZ", .has_keep = true, .keep = 33},
        {.name = "FUZZ", .dam = true, .border = true},
    };
    static const struct mask_request importances[] = {
        {.name = "FUZZ", .layer = -1},
        {.name = "FUZZ", .layer = 0, .n = 3},
        {.name = "FUZZ", .layer = -1, .heads = 2},
        {.name = "FUZZ", .layer = -1, .dam = true},
        {.name = "FUZZ", .layer = -1, .dam = true, .border = true, .n = 2},
    };
    struct error e = {0};
    struct array_file a = {.name = (char *)"FUZZ"};
    if (npy_parse(data, size, "FUZZ", &a.array, &e) < 0) {
        check_refusal(&e);
        return 0;
    }
    for (size_t k = 0; k < sizeof requests / sizeof *requests; k++) {
        struct mask *m = (requests[k].dam ? dam_read : dense_read)(&a, &requests[k], &e);
        if (m)
            check_mask(m);
        else
            check_refusal(&e);
    }
    for (size_t k = 0; k < sizeof importances / sizeof *importances; k++)
        read_importance(&a, &importances[k]);
    return 0;
}
