/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of libmaskc. */
#include "runtime/device/emulated/emulated.h"

const struct device *const devices[] = {&device_cuda, &device_cpu, &device_emulated, NULL};
const char devices_known[] = "cpu, cuda, cuda:N, emulated";
const char devices_advice[] = ", or run CUDA code on the device 'emulated'";
