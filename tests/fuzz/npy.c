/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: the header, then the data as a dense mask in each way and as DAM parameters. */
#include "masks/readers/readers.h"
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mask_request requests[] = {
        {.name = "FUZZ"},
        {.name = "FUZZ", .has_threshold = true, .threshold = 0.25},
        {.name = "FUZZ", .has_keep = true, .keep = 33},
        {.name = "FUZZ", .dam = true, .border = true},
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
    return 0;
}
