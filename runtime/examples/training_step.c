/* SPDX-License-Identifier: Apache-2.0 */
/* Some steps of gradient descent on Q, K and V: forward, loss, backward, update. The loss is half the
   squared distance of the output from a target; it must fall.                    */
#include "example.h"

enum { N = 256, HEADS = 4, D = 64, BATCH = 2, ELEMENTS = BATCH * N * HEADS * D, STEPS = 4 };

static struct maskc_kernel *compile(const char *mask)
{
    struct maskc_options options = {.struct_size = sizeof options, .length = N, .heads = HEADS};
    struct maskc_error error;
    struct maskc_bytes bytes;
    struct maskc_kernel *kernel;
    must(maskc_compile(mask, &options, &bytes, &error), &error);
    must(maskc_load_memory(bytes.data, bytes.size, NULL, &kernel, &error), &error);
    maskc_bytes_free(&bytes); /* the kernel has its own copy */
    return kernel;
}

/* The loss, and its gradient to the output: out - target. */
static double loss_of(const struct maskc_launch *launch, const float *target)
{
    const float *out = launch->out.data;
    float *grad_out = launch->grad_out.data;
    double loss = 0;
    for (int k = 0; k < ELEMENTS; k++) {
        grad_out[k] = out[k] - target[k];
        loss += 0.5 * (double)grad_out[k] * (double)grad_out[k];
    }
    return loss / ELEMENTS;
}

static void descend(struct maskc_tensor parameter, struct maskc_tensor gradient)
{
    const float rate = 0.5f, *g = gradient.data;
    float *x = parameter.data;
    for (int k = 0; k < ELEMENTS; k++)
        x[k] -= rate * g[k];
}

int main(void)
{
    struct maskc_kernel *kernel = compile("longformer(32,2)");
    struct maskc_tensor tensor[9];
    for (unsigned k = 0; k < 9; k++)
        tensor[k] = new_tensor(ELEMENTS, k < 4 ? k + 1 : 0);
    const float *target = tensor[3].data;
    struct maskc_launch launch = {
        .struct_size = sizeof launch,
        .batch = BATCH,
        .query = tensor[0],
        .key = tensor[1],
        .value = tensor[2],
        .out = tensor[4],
        .grad_out = tensor[5],
        .grad_query = tensor[6],
        .grad_key = tensor[7],
        .grad_value = tensor[8],
        .lse = allocate(BATCH * HEADS * N * sizeof(float)),
    };

    printf("loss:");
    for (int step = 0; step < STEPS; step++) {
        run(kernel, &launch, MASKC_FORWARD);
        printf(" %.6f", loss_of(&launch, target));
        run(kernel, &launch, MASKC_BACKWARD);
        descend(launch.query, launch.grad_query);
        descend(launch.key, launch.grad_key);
        descend(launch.value, launch.grad_value);
    }
    printf("\n");

    for (int k = 0; k < 9; k++)
        free(tensor[k].data);
    free(launch.lse);
    maskc_kernel_destroy(kernel);
    return 0;
}
