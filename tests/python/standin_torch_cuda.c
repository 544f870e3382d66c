/* SPDX-License-Identifier: Apache-2.0 */
/* A libtorch_cuda.so for the tests: the current stream of device k is the address 4096 + k. */
#include <stdint.h>

__attribute__((visibility("default"))) int32_t aoti_torch_get_current_cuda_stream(
    int32_t device, void **ret);
int32_t aoti_torch_get_current_cuda_stream(int32_t device, void **ret)
{
    *ret = (void *)(intptr_t)(4096 + device);
    return device < 0;
}
