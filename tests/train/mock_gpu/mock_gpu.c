/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/mock_gpu/mock_gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int begin_again(char **argv)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/libcuda.so.1", argv[1]);
    setenv("MASKC_TEST_FAKE_GPU", "1", 1);
    setenv("MASKC_CUBLASLT", path, 1);
    setenv("MASKC_NCCL", argv[2], 1);
    setenv("FAKE_NCCL_FOLDER", "/tmp", 1);
    setenv("LD_LIBRARY_PATH", argv[1], 1);
    execv("/proc/self/exe", argv);
    return 1;
}

int mock_gpu_begin(int argc, char **argv)
{
    if (argc == 3 && !getenv("MASKC_TEST_FAKE_GPU"))
        return begin_again(argv);
    if (!device_begin_fake() || !random_begin())
        return 77;
    device_name = "cuda";
    return 0;
}

int mock_gpu_end(int failed)
{
    device_end_fake();
    return random_end() || failed;
}

bool mock_gpu_holds_nothing(void)
{
    return !device_fake->contexts && !device_fake->modules && !device_fake->allocations &&
           !device_fake->streams && !device_fake->events && !device_fake->pinned &&
           !device_fake->graphs && !device_fake->handles && !device_fake->descriptions &&
           !device_fake->pushed && !device_fake->early;
}

void mock_gpu_subject(struct train_subject *s, uint32_t layers, enum element dtype)
{
    random_restart();
    random_model(layers, MOCK_HIDDEN, 2, 2, "gelu");
    subjects_are_on("cuda");
    device_use_ops(dtype, MOCK_HIDDEN, true);
    subject_begin(s, &(struct subject_options){"longformer(5,2)", "softmax", dtype, 2});
    device_use_attention(s->engine);
}
