# SPDX-License-Identifier: Apache-2.0
"""Kernels of attn_implementation="maskc" and apply(), compiled on first use."""
import threading

import torch

from . import torch_op
from ._library import Error
from .kernel import compile as compile_mask

DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
SHORTEST = 64
KERNELS, LOCK = {}, threading.Lock()


def kernel_for(mask, n, heads, kv_heads, head_dim, dtype, dropout, bias):
    """The kernel for these; compiled on first use."""
    key = (mask if isinstance(mask, str) else id(mask), n, heads, kv_heads, head_dim, dtype, dropout, bias)
    with LOCK:
        if key not in KERNELS:
            # An array fixes its own length.
            kernel = compile_mask(mask, n=n or None, heads=heads, head_dim=head_dim, dtype=dtype, dropout=dropout, bias=bias,
                                  kv_heads=kv_heads)
            torch_op.number(kernel)
            KERNELS[key] = (kernel, mask)  # the mask too, as its id must stay
        return KERNELS[key][0]


REPEATED = set()  # of kernel_for(): where there is no compiler for key heads of their own


@torch._dynamo.assume_constant_result
def key_heads(mask, n, heads, kv_heads, *more):
    """Those of the kernel that can be had: without a compiler there are kernels of as many key as query heads alone."""
    key = (mask if isinstance(mask, str) else id(mask), n, heads, kv_heads, *more)
    if kv_heads == heads or key in REPEATED:
        return heads
    try:
        kernel_for(mask, n, heads, kv_heads, *more)
    except Error as e:
        if e.code != 3:
            raise
        REPEATED.add(key)
        return heads
    return kv_heads


@torch._dynamo.assume_constant_result
def traced_kernel(*arguments):
    """While torch.compile traces: the kernel's number."""
    return kernel_for(*arguments)._op


class Traced:
    """What attend() reads of a kernel."""

    def __init__(self, op):
        self._op, self._name = op, str(op)


def bucket(n):
    """A kernel serves every length up to the next power of two."""
    return max(SHORTEST, 1 << (n - 1).bit_length())


def chosen_kernel(mask, n, query, kv_heads, dropout, bias):
    """The kernel, and how often heads of keys are to be repeated for it."""
    heads = query.shape[1]
    more = query.shape[-1], DTYPES[query.dtype], dropout > 0, bias
    arguments = mask, n, heads, key_heads(mask, n, heads, kv_heads, *more), *more
    kernel = Traced(traced_kernel(*arguments)) if torch.compiler.is_compiling() else kernel_for(*arguments)
    return kernel, arguments[3] // kv_heads
