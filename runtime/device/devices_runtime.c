/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of libmaskc-runtime: all but the emulated one, which compiles text. */
#include "runtime/device/device.h"

const struct device *const devices[] = {&device_cuda, &device_cpu, NULL};
const char devices_known[] = "cpu, cuda, cuda:N (emulated is a device of libmaskc)";
const char devices_advice[] = "";
