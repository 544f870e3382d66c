/* SPDX-License-Identifier: Apache-2.0 */
/* Learns a soft mask of the kind bias: P = softmax(S + X). The array X [H, n, n] is shared by the batch; the
   backward pass gives its gradient, summed over the batch. Each step must make out . grad_out smaller. */
#include "example.h"

enum { N = 256, HEADS = 4, D = 64, BATCH = 2, ELEMENTS = BATCH * N * HEADS * D };
enum { ENTRIES = HEADS * N * N, STEPS = 4 };

static struct maskc_kernel *compile(const char *mask)
{
    struct maskc_options options = {
        .struct_size = sizeof options, .length = N, .heads = HEADS, .soft = MASKC_SOFT_BIAS};
    struct maskc_error error;
    struct maskc_bytes bytes;
    struct maskc_kernel *kernel;
    must(maskc_compile(mask, &options, &bytes, &error), &error);
    must(maskc_load_memory(bytes.data, bytes.size, NULL, &kernel, &error), &error);
    maskc_bytes_free(&bytes);
    return kernel;
}

static double dot(struct maskc_tensor a, struct maskc_tensor b)
{
    const float *x = a.data, *y = b.data;
    double sum = 0;
    for (int k = 0; k < ELEMENTS; k++)
        sum += (double)x[k] * (double)y[k];
    return sum;
}

int main(void)
{
    const float rate = 0.5f;
    struct maskc_kernel *kernel = compile("longformer(32,2)");
    float *x = allocate(ENTRIES * sizeof(float)), *dx = allocate(ENTRIES * sizeof(float));
    struct maskc_tensor tensor[8];
    for (unsigned k = 0; k < 8; k++)
        tensor[k] = new_tensor(ELEMENTS, k < 4 ? k + 1 : 0);
    struct maskc_launch launch = {
        .struct_size = sizeof launch,
        .batch = BATCH,
        .query = tensor[0],
        .key = tensor[1],
        .value = tensor[2],
        .grad_out = tensor[3],
        .out = tensor[4],
        .grad_query = tensor[5],
        .grad_key = tensor[6],
        .grad_value = tensor[7],
        .lse = allocate(BATCH * HEADS * N * sizeof(float)),
        .soft = x,
        .grad_soft = dx,
    };

    printf("out . grad_out:");
    for (int step = 0; step < STEPS; step++) {
        run(kernel, &launch, MASKC_FORWARD);
        printf(" %.4f", dot(launch.out, launch.grad_out));
        run(kernel, &launch, MASKC_BACKWARD);
        for (int k = 0; k < ENTRIES; k++)
            x[k] -= rate * dx[k];
    }
    printf("\n");

    for (int k = 0; k < 8; k++)
        free(tensor[k].data);
    free(launch.lse);
    free(x);
    free(dx);
    maskc_kernel_destroy(kernel);
    return 0;
}
