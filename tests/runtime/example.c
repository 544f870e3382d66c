/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of maskc.h in one program, as a user would write it: compile a mask, save and load the
   kernel file, run forward and backward on random data, print what came out; then learn a bias.
   Built by hand:

       cc example.c $(pkg-config --cflags --libs maskc) -o example && ./example          */
#include <maskc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 512, HEADS = 4, D = 64, BATCH = 2, ELEMENTS = BATCH * N * HEADS * D };

/* Ends the program with the library's own text. */
static void must(int code, const struct maskc_error *error)
{
    if (code == MASKC_OK)
        return;
    fprintf(stderr, "example: %s\n", error->text);
    exit(code);
}

static void *allocate(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p)
        exit(3);
    memset(p, 0, bytes);
    return p;
}

/* Numbers in -1 .. 1, the same on every machine. */
static struct maskc_tensor random_tensor(unsigned seed)
{
    struct maskc_tensor t = {0};
    float *x = allocate(ELEMENTS * sizeof(float));
    for (int k = 0; k < ELEMENTS; k++) {
        seed = seed * 1664525u + 1013904223u;
        x[k] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    t.data = x;
    return t;
}

static struct maskc_tensor empty_tensor(void)
{
    struct maskc_tensor t = {0};
    t.data = allocate(ELEMENTS * sizeof(float));
    return t;
}

static void run(const struct maskc_kernel *kernel, struct maskc_launch *launch,
                enum maskc_pass pass)
{
    struct maskc_error error;
    launch->pass = pass;
    launch->workspace_bytes = maskc_workspace_bytes(kernel, launch);
    launch->workspace = allocate(launch->workspace_bytes);
    must(maskc_run(kernel, launch, &error), &error);
    free(launch->workspace);
}

static double sum_of_squares(struct maskc_tensor t)
{
    const float *x = t.data;
    double sum = 0;
    for (int k = 0; k < ELEMENTS; k++)
        sum += (double)x[k] * (double)x[k];
    return sum;
}

static double dot(struct maskc_tensor a, struct maskc_tensor b)
{
    const float *x = a.data, *y = b.data;
    double sum = 0;
    for (int k = 0; k < ELEMENTS; k++)
        sum += (double)x[k] * (double)y[k];
    return sum;
}

/* Some steps of gradient descent on a bias X that make out . grad_out smaller. */
static void learn(struct maskc_launch launch)
{
    enum { STEPS = 3, ENTRIES = HEADS * N * N };
    const float rate = 0.5f;
    struct maskc_options options = {0};
    struct maskc_bytes bytes;
    struct maskc_kernel *kernel;
    struct maskc_error error;
    float *x = allocate(ENTRIES * sizeof(float)), *dx = allocate(ENTRIES * sizeof(float));

    options.length = N;
    options.heads = HEADS;
    options.soft = MASKC_SOFT_BIAS;
    must(maskc_compile("longformer(64,2)", &options, &bytes, &error), &error);
    must(maskc_load_memory(bytes.data, bytes.size, NULL, &kernel, &error), &error);
    maskc_bytes_free(&bytes);
    launch.soft = x;
    launch.grad_soft = dx;
    printf("learning:");
    for (int step = 0; step <= STEPS; step++) {
        run(kernel, &launch, MASKC_FORWARD);
        printf(" %.4f", dot(launch.out, launch.grad_out));
        run(kernel, &launch, MASKC_BACKWARD);
        for (int k = 0; k < ENTRIES; k++)
            x[k] -= rate * dx[k];
    }
    printf("\n");
    free(x);
    free(dx);
    maskc_kernel_destroy(kernel);
}

int main(int count, char **argument)
{
    const char *path = count > 1 ? argument[1] : "example.mkb";
    struct maskc_options options = {0};
    struct maskc_bytes bytes;
    struct maskc_kernel *kernel;
    struct maskc_error error;
    struct maskc_info info;

    options.length = N;
    options.heads = HEADS;
    must(maskc_compile("longformer(64,2)", &options, &bytes, &error), &error);
    must(maskc_bytes_save(&bytes, path, &error), &error);
    maskc_bytes_free(&bytes);

    must(maskc_load(path, NULL, &kernel, &error), &error);
    maskc_kernel_info(kernel, &info);
    printf("%u heads of %u x %u on %s (%s)\n", info.heads, info.length, info.length,
           info.device, info.target);

    struct maskc_launch launch = {0};
    launch.batch = BATCH;
    launch.query = random_tensor(1);
    launch.key = random_tensor(2);
    launch.value = random_tensor(3);
    launch.out = empty_tensor();
    launch.lse = allocate(BATCH * HEADS * N * sizeof(float));
    run(kernel, &launch, MASKC_FORWARD);
    printf("row 100 of head 1: lse %.5f\n", (double)launch.lse[N + 100]);

    launch.grad_out = random_tensor(4);
    launch.grad_query = empty_tensor();
    launch.grad_key = empty_tensor();
    launch.grad_value = empty_tensor();
    run(kernel, &launch, MASKC_BACKWARD);
    printf("norms squared: dq %.4f dk %.4f dv %.4f\n", sum_of_squares(launch.grad_query),
           sum_of_squares(launch.grad_key), sum_of_squares(launch.grad_value));

    learn(launch);

    struct maskc_tensor *tensors[] = {&launch.query,    &launch.key,        &launch.value,
                                      &launch.out,      &launch.grad_out,   &launch.grad_query,
                                      &launch.grad_key, &launch.grad_value, NULL};
    for (struct maskc_tensor **t = tensors; *t; t++)
        free((*t)->data);
    free(launch.lse);
    maskc_kernel_destroy(kernel);
    return 0;
}
