/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel files from anywhere, signed anew so that the fuzzer gets past the checksum: one that is
   read must have tables that a kernel can walk. */
#include "masks/base/memory.h"
#include "tests/fuzz/check.h"
#include "tests/runtime/fixture.h"
#include "tests/runtime/walk.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct artifact *a;
    struct error e = {0};
    uint8_t *bytes = memory_copy(data, size);
    fixture_sign(bytes, size);
    if (artifact_read(bytes, size, "FILE", &a, &e) == 0) {
        walk_artifact(a);
        artifact_destroy(a);
    } else {
        check_refusal(&e);
    }
    free(bytes);
    return 0;
}
