# SPDX-License-Identifier: Apache-2.0
"""`tools/peers --overhead`: what maskc.attention costs over maskc_run on the same memory, on a problem so small that the call
is all there is. One thread, the CPU's clock, interleaved; ctypes calls maskc_run, and an empty ctypes call is taken off.
"""
import ctypes
import gc
import statistics
import time

import torch

import maskc
from maskc import _library as library

N, HEADS, D = 16, 4, 32
CALLS, ROUNDS = 300, 21


def tensor_of(t):
    return library.Tensor(t.data_ptr(), t.stride(0), t.stride(2), t.stride(1))


def c_call(kernel, direction, tensors, kept):
    """A function that runs one pass, with everything made before."""
    names = ("query", "key", "value", "out", "grad_out", "grad_query", "grad_key", "grad_value")
    launch = library.Launch(batch=1, length=N, threads=1, **{n: tensor_of(t) for n, t in zip(names, tensors)})
    lse = torch.empty(1, HEADS, N)
    setattr(launch, "pass", direction)
    launch.lse, launch.workspace_bytes = lse.data_ptr(), kernel.workspace_bytes(launch)
    space = torch.empty(launch.workspace_bytes + 64, dtype=torch.uint8)
    launch.workspace = (space.data_ptr() + 63) // 64 * 64
    error = library.ErrorStruct()
    kept += [launch, lse, space, error, tensors]
    run, handle, at, wrong = library.LIB.maskc_run, kernel.handle, ctypes.byref(launch), ctypes.byref(error)
    return lambda: run(handle, at, wrong)


class Empty(torch.autograd.Function):
    """Time of torch's autograd for a Python function that computes nothing."""
    made = [torch.empty(1, N, HEADS, D).transpose(1, 2) for _ in range(4)]

    @staticmethod
    def forward(ctx, q, k, v):
        return Empty.made[3].detach()

    @staticmethod
    def backward(ctx, grad):
        return tuple(Empty.made[:3])


def calls(kernel, kept):
    """{label: a call}."""
    q, k, v, grad = (torch.randn(1, N, HEADS, D).transpose(1, 2) for _ in range(4))
    others = [torch.empty(1, N, HEADS, D).transpose(1, 2) for _ in range(4)]
    wanted = [t.detach().clone().requires_grad_() for t in (q, k, v)]
    empty, handle, tensors = library.LIB.maskc_plan_text, kernel.handle, (q, k, v, others[0], grad, *others[1:])
    sdpa, both = torch.nn.functional.scaled_dot_product_attention, torch.autograd.grad
    return {"ctypes": lambda: empty(handle),
            "C forward": c_call(kernel, 0, tensors, kept), "C backward": c_call(kernel, 1, tensors, kept),
            "attention": lambda: maskc.attention(q, k, v, kernel), "sdpa": lambda: sdpa(q, k, v),
            "attention, grad": lambda: both(maskc.attention(*wanted, kernel), wanted, grad),
            "sdpa, grad": lambda: both(sdpa(*wanted), wanted, grad),
            "empty, grad": lambda: both(Empty.apply(*wanted), wanted, grad),
            "addcmul, grad": lambda: both(torch.addcmul(*wanted), wanted, grad)}


def interleaved(made):
    """Median seconds of each call."""
    times = {name: [] for name in made}
    for turn in range(ROUNDS + 2):
        for name, call in made.items():
            begin = time.process_time()
            for _ in range(CALLS):
                call()
            if turn >= 2:
                times[name].append((time.process_time() - begin) / CALLS)
    return {name: 1e6 * statistics.median(samples) for name, samples in times.items()}


def show(options):
    torch.set_num_threads(1)
    kernel, kept = maskc.compile("diagonal(0)", n=N, heads=HEADS, head_dim=D), []
    maskc.attention(*(torch.zeros(1, HEADS, N, D) for _ in range(3)), kernel)
    gc.disable()
    t = interleaved(calls(kernel, kept))
    forward = t["C forward"] - t["ctypes"]
    both = forward + t["C backward"] - t["ctypes"]
    print(f"n={N}, {HEADS} heads, D={D}, f32, one thread, CPU time in us, medians of {ROUNDS} rounds of {CALLS} calls; torch {torch.__version__}")
    print(f"{'':24}{'call':>8}{'in C':>8}{'over C':>8}{'sdpa':>8}")
    print(f"{'inference':24}{t['attention']:8.1f}{forward:8.1f}{t['attention'] - forward:8.1f}{t['sdpa']:8.1f}")
    print(f"{'forward and backward':24}{t['attention, grad']:8.1f}{both:8.1f}{t['attention, grad'] - both:8.1f}{t['sdpa, grad']:8.1f}")
    print(f"forward and backward of an empty autograd.Function {t['empty, grad']:.1f}, of torch.addcmul {t['addcmul, grad']:.1f}")
    return 0
