/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a kernel file and runs a forward pass. Links libmaskc-runtime alone: no compiler, no planner.
   Prints one number for each kernel file: the sum of the output's absolute values.

       load_only FILE.mkb ...          */
#include "example.h"
#include <math.h>

static void launch_file(const char *path)
{
    struct maskc_info info = {.struct_size = sizeof info};
    struct maskc_kernel *kernel;
    struct maskc_error error;
    must(maskc_load(path, NULL, &kernel, &error), &error);
    maskc_kernel_info(kernel, &info);
    if (info.dtype != MASKC_F32) {
        fprintf(stderr, "%s: this example has f32 tensors only\n", path);
        exit(MASKC_BAD_INPUT);
    }

    size_t elements = (size_t)info.length * info.heads * info.head_dim;
    struct maskc_launch launch = {
        .struct_size = sizeof launch,
        .query = new_tensor(elements, 1),
        .key = new_tensor(elements, 2),
        .value = new_tensor(elements, 3),
        .out = new_tensor(elements, 0),
        .lse = allocate((size_t)info.heads * info.length * sizeof(float)),
    };
    run(kernel, &launch, MASKC_FORWARD);

    const float *out = launch.out.data;
    double sum = 0;
    for (size_t k = 0; k < elements; k++)
        sum += fabs((double)out[k]);
    printf("%s: %u heads of %u x %u on %s (%s): %.17g\n", path, info.heads, info.length,
           info.length, info.device, info.target, sum);

    free(launch.query.data);
    free(launch.key.data);
    free(launch.value.data);
    free(launch.out.data);
    free(launch.lse);
    maskc_kernel_destroy(kernel);
}

int main(int count, char **argument)
{
    if (count < 2) {
        fprintf(stderr, "usage: load_only FILE.mkb ...\n");
        return MASKC_BAD_INPUT;
    }
    for (int k = 1; k < count; k++)
        launch_file(argument[k]);
    return 0;
}
