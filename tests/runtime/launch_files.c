/* SPDX-License-Identifier: Apache-2.0 */
/* DEVICE FILE ...: loads each kernel file and launches both passes on fixed data, through maskc.h alone.
   Prints a digest of every output: built twice, against libmaskc and against libmaskc-runtime, both
   must print the same. */
#include "runtime/examples/example.h"

enum { BATCH = 2 };

/* FNV-1a. */
static unsigned long long digest(const void *data, size_t bytes)
{
    const unsigned char *b = data;
    unsigned long long h = 0xcbf29ce484222325u;
    for (size_t k = 0; k < bytes; k++)
        h = (h ^ b[k]) * 0x100000001b3u;
    return h;
}

static void print_tensor(const char *name, const struct maskc_tensor *t, size_t elements)
{
    printf(" %s %016llx", name, digest(t->data, elements * sizeof(float)));
    free(t->data);
}

static void launch_kernel(const struct maskc_kernel *kernel, const struct maskc_info *info)
{
    size_t elements = (size_t)BATCH * info->length * info->heads * info->head_dim;
    size_t rows = (size_t)BATCH * info->length * info->heads;
    struct maskc_launch l = {.struct_size = sizeof l, .batch = BATCH};
    struct maskc_tensor *in[] = {&l.query, &l.key, &l.value, &l.grad_out};
    struct maskc_tensor *out[] = {&l.out, &l.grad_query, &l.grad_key, &l.grad_value};
    static const char *const names[] = {"out", "dq", "dk", "dv"};
    for (unsigned k = 0; k < 4; k++) {
        *in[k] = new_tensor(elements, k + 1);
        *out[k] = new_tensor(elements, 0);
    }
    l.lse = allocate(rows * sizeof(float));
    run(kernel, &l, MASKC_FORWARD);
    run(kernel, &l, MASKC_BACKWARD);
    printf(" lse %016llx", digest(l.lse, rows * sizeof(float)));
    for (int k = 0; k < 4; k++) {
        print_tensor(names[k], out[k], elements);
        free(in[k]->data);
    }
    printf("\n");
    free(l.lse);
}

int main(int count, char **argument)
{
    for (int k = 2; k < count; k++) {
        struct maskc_info info = {.struct_size = sizeof info};
        struct maskc_kernel *kernel;
        struct maskc_error error;
        must(maskc_load(argument[k], argument[1], &kernel, &error), &error);
        maskc_kernel_info(kernel, &info);
        const char *slash = strrchr(argument[k], '/');
        printf("%s %s:", slash ? slash + 1 : argument[k], info.target);
        launch_kernel(kernel, &info);
        maskc_kernel_destroy(kernel);
    }
    return 0;
}
