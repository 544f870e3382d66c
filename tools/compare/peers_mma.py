# SPDX-License-Identifier: Apache-2.0
"""Measures this GPU's rate of mma.sync, the instruction of our kernels: the floor of an executed area. NVRTC
compiles a loop of it and the driver launches it, both by ctypes, as torch wraps neither. Where that fails, torch's
matmul stands in, which on newer chips has a faster instruction than mma.sync; `by` says which it was.
"""
import ctypes
import os
import pathlib
import sys

from peers_report import percentile

CHAINS = 8  # independent sums of a warp, so that no product waits for the one before
WARPS, BLOCKS = 8, 4  # of a block; blocks for each multiprocessor
ROUNDS = 16384
FLOPS = 2 * 16 * 8 * 16  # of one m16n8k16
SOURCE = f"""
extern "C" __global__ void mma_rate(float *out, int rounds)
{{
    unsigned a = 0x3c003c00u + threadIdx.x, b = 0x3c003c00u - threadIdx.x;
    float c[{CHAINS}][4] = {{}}, sum = 0;
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int k = 0; k < {CHAINS}; k++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                         "{{%0,%1,%2,%3}}, {{%4,%4,%4,%4}}, {{%5,%5}}, {{%0,%1,%2,%3}};"
                         : "+f"(c[k][0]), "+f"(c[k][1]), "+f"(c[k][2]), "+f"(c[k][3]) : "r"(a), "r"(b));
    for (int k = 0; k < {CHAINS}; k++)
        sum += c[k][0] + c[k][1] + c[k][2] + c[k][3];
    if (sum == 12345.0f) /* never: the products must not be left out */
        *out = sum;
}}
"""
NVRTC_NAMES = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2")


class Failed(Exception):
    pass


def nvrtc_paths():
    """maskc's own places, then those of pip's packages beside torch."""
    chosen = os.environ.get("MASKC_NVRTC")
    pip = [p for folder in sys.path if folder
           for p in sorted(map(str, pathlib.Path(folder).glob("nvidia/*/lib/libnvrtc.so*")))]
    return [*([chosen] if chosen else []), *NVRTC_NAMES, "/usr/local/cuda/lib64/libnvrtc.so", *pip]


def open_nvrtc():
    for path in nvrtc_paths():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise Failed("no NVRTC")


def must(code, what):
    if code:
        raise Failed(f"{what}: error {code}")


def compiled(arch, source=SOURCE):
    """A cubin for an architecture such as sm_90."""
    nvrtc, program, size = open_nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    must(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"mma.cu", 0, None, None), "create")
    option = (ctypes.c_char_p * 1)(f"--gpu-architecture={arch}".encode())
    must(nvrtc.nvrtcCompileProgram(program, 1, option), f"compile for {arch}")
    must(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "size")
    cubin = ctypes.create_string_buffer(size.value)
    must(nvrtc.nvrtcGetCUBIN(program, cubin), "cubin")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


def load(driver, cubin):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    must(driver.cuModuleLoadData(ctypes.byref(module), cubin), "load")
    must(driver.cuModuleGetFunction(ctypes.byref(function), module, b"mma_rate"), "find")
    return function


def launcher(torch):
    """A function that launches the loop on torch's stream, and the operations of one launch."""
    properties = torch.cuda.get_device_properties("cuda")
    out = torch.zeros(1, device="cuda")  # makes torch's context this thread's
    driver = ctypes.CDLL("libcuda.so.1")
    function = load(driver, compiled(f"sm_{properties.major}{properties.minor}"))
    blocks = BLOCKS * properties.multi_processor_count
    pointer, rounds = ctypes.c_void_p(out.data_ptr()), ctypes.c_int(ROUNDS)
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(rounds))
    kept = (out, pointer, rounds)  # what the arguments point at

    def launch(kept=kept):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        must(driver.cuLaunchKernel(function, blocks, 1, 1, 32 * WARPS, 1, 1, 0, stream, arguments, None), "launch")
    return launch, blocks * WARPS * ROUNDS * CHAINS * FLOPS


def matmul(torch, size=8192):
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return lambda: a @ b, 2 * size**3


def timed(torch, call, flops, warm=80, repeat=9):
    """Warm until clocks have risen: a call takes some milliseconds."""
    times = []
    for k in range(warm + repeat):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times += [begin.elapsed_time(end) / 1e3] if k >= warm else []
    return flops / percentile(times, 0.5)


def rate():
    """{"flops_per_s", "by"}, of bf16 with sums in f32."""
    import torch
    try:
        return {"flops_per_s": timed(torch, *launcher(torch)), "by": "mma.sync m16n8k16 bf16, a loop by NVRTC"}
    except (Failed, OSError, AttributeError) as e:
        return {"flops_per_s": timed(torch, *matmul(torch)), "by": f"torch.matmul of 8192, not mma.sync: {e}"}
