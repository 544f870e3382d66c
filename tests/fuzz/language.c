/* SPDX-License-Identifier: Apache-2.0 */
/* The mask language: first as a .mask file of a fixed length, then as one expression. */
#include "masks/language/language.h"
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t lengths[] = {1, 7, 66};
    for (int k = 0; k < 4; k++) {
        struct error e = {0};
        struct language_input in = {.name = "FUZZ",
                                    .text = (const char *)data,
                                    .length = size,
                                    .folder = "/no-such-folder/",
                                    .n = lengths[k % 3],
                                    .expression = k == 3};
        struct mask *m = language_read(&in, &e);
        if (m)
            check_mask(m);
        else
            check_refusal(&e);
    }
    return 0;
}
