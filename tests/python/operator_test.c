/* SPDX-License-Identifier: Apache-2.0 */
/* Does the operator of torch launch on the device of its tensors, on torch's current stream of that device, with new tensors
   there, and refuse a kernel of another device in one line? The driver, torch and libtorch_cuda.so are mocks. */
#include "tests/kernels/driver/cuda_fake.h"
#include "tests/python/fake_torch.h"
#include "tests/support/test.h"
#include <dlfcn.h>
#include <string.h>

enum { BATCH = 2, HEADS = 12, ROWS = 70, DIM = 16, SIZE = BATCH * HEADS * ROWS * DIM };
static _Alignas(64) float memory[4][SIZE];
static int32_t counts[BATCH] = {ROWS, 9};
static const char *standin;

/* The k-th operand, [B, H, N, D] in memory [B, N, H, D]. */
static struct fake_tensor operand(int k, int32_t device, int32_t index)
{
    return (struct fake_tensor){memory[k],
                                FAKE_FLOAT32,
                                device,
                                index,
                                4,
                                {BATCH, HEADS, ROWS, DIM},
                                {ROWS * HEADS * DIM, DIM, HEADS * DIM, 1}};
}

static const char *forward_on(int64_t kernel, int32_t device, int32_t index)
{
    const struct fake_tensor q = operand(0, device, index), k = operand(1, device, index),
                             v = operand(2, device, index),
                             lengths = {counts, FAKE_INT32, device, index, 1, {BATCH}, {1}};
    return fake_forward(kernel, &q, &k, &v, &lengths);
}

static struct maskc_kernel *must_load(const char *device)
{
    struct error e = {0};
    struct maskc_kernel *k = cuda_load_example(device, &e);
    if (!k)
        fail_msg("%s", e.text);
    return k;
}

/* Gives the kernel to the operator under a new number. maskc_torch_forget() ends both. */
static int64_t add(struct maskc_kernel *k)
{
    static int64_t last;
    assert_int_equal(maskc_torch_add(++last, k), 0);
    return last;
}

/* Without libtorch_cuda.so; from here on it is loaded, as Python loads it. */
static void test_no_stream(void **state)
{
    (void)state;
    struct maskc_kernel *k = must_load("cuda:1");
    const int64_t id = add(k);
    assert_non_null(strstr(forward_on(id, FAKE_CUDA, 1), "no library of torch"));
    maskc_torch_forget(id);
    fake_torch_reset();
    if (!dlopen(standin, RTLD_LAZY | RTLD_LOCAL))
        fail_msg("%s", dlerror());
}

static void must_be_launched(const struct fake *f, const char *text, int ordinal)
{
    if (text)
        fail_msg("%s", text);
    assert_int_equal(f->entered, ordinal);
    assert_int_equal((intptr_t)f->stream, 4096 + ordinal);
    assert_int_equal(fake_torch.device, FAKE_CUDA);
    assert_int_equal(fake_torch.index, ordinal);
    assert_int_equal(fake_torch.other, 0);
    assert_int_equal(fake_torch.handles, 0);
}

static void test_each_gpu(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    assert_int_equal(fake_torch.libraries_of_cuda, 2);
    for (int ordinal = 0; ordinal < 2; ordinal++) {
        struct maskc_kernel *k = must_load(ordinal ? "cuda:1" : "cuda:0");
        const int64_t id = add(k);
        f->entered = -1;
        fake_torch_reset();
        must_be_launched(f, forward_on(id, FAKE_CUDA, ordinal), ordinal);
        assert_int_equal(fake_torch.made, 3); /* out, lse, the workspace */
        assert_ptr_equal(f->args.q.data, memory[0]);
        assert_ptr_equal(f->args.k.data, memory[1]);
        assert_ptr_equal(f->args.v.data, memory[2]);
        assert_ptr_equal(f->args.length, counts);
        const struct fake_tensor q = operand(0, FAKE_CUDA, ordinal);
        const int launches = f->launches;
        fake_torch_reset();
        must_be_launched(f, fake_backward(id, &q), ordinal);
        assert_true(f->launches > launches);
        maskc_torch_forget(id);
    }
    fake_torch_reset();
    cuda_must_hold_nothing(f);
}

/* Strides that no kernel reads. */
static void test_copies_stay_on_the_gpu(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    struct maskc_kernel *k = must_load("cuda:1");
    const int64_t id = add(k);
    struct fake_tensor q = operand(0, FAKE_CUDA, 1), v = operand(2, FAKE_CUDA, 1);
    q.data = memory[0] + 1;
    fake_torch_reset();
    must_be_launched(f, fake_forward(id, &q, &v, &v, NULL), 1);
    assert_int_equal(fake_torch.copied, 1);
    assert_ptr_not_equal(f->args.q.data, q.data);
    maskc_torch_forget(id);
    fake_torch_reset();
}

static void test_other_devices_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        int32_t device, index;
        const char *text;
    } cases[] = {
        {"cuda:0", FAKE_CUDA, 1,
         "maskc[2]: q: on cuda:1, but the kernel was loaded for cuda:0: kernel.to('cuda:1') "
         "loads it there"},
        {"cuda:1", FAKE_CUDA, 0,
         "maskc[2]: q: on cuda:0, but the kernel was loaded for cuda:1: kernel.to('cuda:0') "
         "loads it there"},
        {"cuda:1", FAKE_CPU, -1,
         "maskc[2]: q: on cpu, but the kernel was loaded for cuda:1: compile with "
         "target='cpu'"},
        {"emulated", FAKE_CUDA, 1,
         "maskc[2]: q: on cuda:1, but the kernel was loaded for emulated: compile with "
         "target='cuda:1'"},
    };
    struct fake *f = cuda_fake();
    f->launches = 0;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct maskc_kernel *k = must_load(cases[c].kernel);
        const int64_t id = add(k);
        assert_string_equal(forward_on(id, cases[c].device, cases[c].index), cases[c].text);
        maskc_torch_forget(id);
    }
    struct maskc_kernel *k = must_load("cuda:1");
    const int64_t id = add(k);
    const struct fake_tensor q = operand(0, FAKE_CUDA, 1), other = operand(1, FAKE_CUDA, 0),
                             host = {counts, FAKE_INT32, FAKE_CPU, -1, 1, {BATCH}, {1}};
    assert_string_equal(fake_forward(id, &q, &other, &q, NULL),
                        "maskc[2]: k: on cuda:0, but q is on cuda:1");
    assert_string_equal(fake_forward(id, &q, &q, &q, &host),
                        "maskc[2]: lengths: on cpu, but q is on cuda:1");
    maskc_torch_forget(id);
    assert_int_equal(f->launches, 0);
    assert_int_equal(fake_torch.handles, 0);
    fake_torch_reset();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_stream),
        cmocka_unit_test(test_each_gpu),
        cmocka_unit_test(test_copies_stay_on_the_gpu),
        cmocka_unit_test(test_other_devices_are_refused),
    };
    if (argc != 3) {
        print_error("usage: operator_test FOLDER LIBRARY: where the fake libcuda.so.1 is; a "
                    "stand-in libtorch_cuda.so\n");
        return 2;
    }
    standin = argv[2];
    if (!cuda_has_fake())
        return cuda_run_with_fake(argv, argv[1]);
    return cmocka_run_group_tests_name("operator on CUDA tensors", tests, NULL, NULL);
}
