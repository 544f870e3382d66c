/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a mask for this CPU, saves the kernel file, loads it and runs one forward pass.

       compile_and_launch [MASK [FILE.mkb]]          */
#include "example.h"

enum { N = 512, HEADS = 4, D = 64, ELEMENTS = N * HEADS * D };

static void compile(const char *mask, const char *path)
{
    struct maskc_options options = {.struct_size = sizeof options, .length = N, .heads = HEADS};
    struct maskc_error error;
    struct maskc_bytes bytes;
    must(maskc_compile(mask, &options, &bytes, &error), &error);
    must(maskc_bytes_save(&bytes, path, &error), &error);
    maskc_bytes_free(&bytes);
}

int main(int count, char **argument)
{
    const char *mask = count > 1 ? argument[1] : "longformer(64,2)";
    const char *path = count > 2 ? argument[2] : "example.mkb";
    struct maskc_info info = {.struct_size = sizeof info};
    struct maskc_kernel *kernel;
    struct maskc_error error;

    compile(mask, path);
    must(maskc_load(path, NULL, &kernel, &error), &error);
    maskc_kernel_info(kernel, &info);
    printf("%u heads of %u x %u on %s (%s)\n", info.heads, info.length, info.length,
           info.device, info.target);

    struct maskc_launch launch = {
        .struct_size = sizeof launch,
        .query = new_tensor(ELEMENTS, 1),
        .key = new_tensor(ELEMENTS, 2),
        .value = new_tensor(ELEMENTS, 3),
        .out = new_tensor(ELEMENTS, 0),
        .lse = allocate(HEADS * N * sizeof(float)),
    };
    run(kernel, &launch, MASKC_FORWARD);
    printf("row 100 of head 1: lse %.5f\n", (double)launch.lse[N + 100]);

    free(launch.query.data);
    free(launch.key.data);
    free(launch.value.data);
    free(launch.out.data);
    free(launch.lse);
    maskc_kernel_destroy(kernel);
    return 0;
}
