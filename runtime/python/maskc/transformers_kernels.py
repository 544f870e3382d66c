# SPDX-License-Identifier: Apache-2.0
"""Kernels of attn_implementation="maskc" and apply(): compiled on first use for the device of the tensors, shared by equal
masks, freed with the last model that has the mask."""
import collections
import hashlib
import threading
import weakref

import torch

from . import torch_op
from ._library import Error
from .kernel import compile as compile_mask

DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
SHORTEST = 64
MOST = 512  # kernels of one Kept


class Kept(collections.OrderedDict):
    """The last MOST kernels, by what they were compiled for."""

    def find(self, key):
        kernel = self.get(key)
        if kernel is not None:
            self.move_to_end(key)
        return kernel

    def add(self, key, kernel):
        self[key] = kernel
        if len(self) > MOST:
            self.popitem(last=False)


LOCK = threading.Lock()
KERNELS = Kept()  # of masks that models state themselves
SHARED = weakref.WeakValueDictionary()  # name: Shared
REPEATED = set()  # arguments for which there is no compiler for key heads of their own


# ---- masks that were applied ----

class Shared:
    """A mask with its kernels. Equal masks share one, which dies with the last model that has it. name: text that torch.compile
    guards; the mask itself if that is text."""

    def __init__(self, name, mask):
        self.name, self.mask, self.kernels = name, mask, Kept()

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return share, (self.mask,)


def digest_of(mask):
    """Equal for equal masks: of an array of numpy, or of maskc.Runs."""
    parts = (mask.rows, mask.runs) if hasattr(mask, "runs") else (mask,)
    digest = hashlib.sha256(repr((type(mask).__name__, tuple(mask.shape), [str(part.dtype) for part in parts])).encode())
    for part in parts:
        digest.update(part.data if part.flags.c_contiguous else part.tobytes())
    return digest.hexdigest()


def share(mask):
    """The Shared of a mask: text, an array of numpy, or maskc.Runs."""
    name = mask if isinstance(mask, str) else f"#{digest_of(mask)}"
    with LOCK:
        found = SHARED.get(name)
        if found is None:
            found = SHARED[name] = Shared(name, mask)
        return found


# ---- kernels ----

def place_of(device):
    """The target and the device of a kernel for tensors there. Tensors without memory have the CPU's."""
    if device.type == "cuda":
        return f"cuda:{device.index}"
    if device.type in ("cpu", "meta"):
        return "cpu"
    raise Error(3, f"attn_implementation='maskc': tensors on {device.type} are not supported; cpu or cuda is expected")


def kernel_for(name, n, heads, kv_heads, head_dim, dtype, dropout, bias, transform, place):
    """The kernel for these; compiled on first use. name: of a Shared mask, or text."""
    key = name, n, heads, kv_heads, head_dim, dtype, dropout, bias, transform, place
    with LOCK:
        shared = SHARED.get(name)
        mask, kept = (shared.mask, shared.kernels) if shared is not None else (name, KERNELS)
        kernel = kept.find(key)
        if kernel is None:
            # An array fixes its own length.
            kernel = compile_mask(mask, n=n or None, heads=heads, head_dim=head_dim, dtype=dtype, dropout=dropout, bias=bias,
                                  kv_heads=kv_heads, transform=transform, target=place, device=place)
            torch_op.number(kernel)
            kept.add(key, kernel)
        return kernel


@torch._dynamo.assume_constant_result
def key_heads(name, n, heads, kv_heads, *more):
    """Key heads of the kernel. Without a compiler only kernels with as many key as query heads are available."""
    key = (name, n, heads, kv_heads, *more)
    if kv_heads == heads or key in REPEATED:
        return heads
    try:
        kernel_for(name, n, heads, kv_heads, *more)
    except Error as e:
        if e.code != 3:
            raise
        REPEATED.add(key)
        return heads
    return kv_heads


@torch._dynamo.assume_constant_result
def traced_kernel(*arguments):
    """While torch.compile traces: the kernel's number."""
    kernel = kernel_for(*arguments)
    torch_op.retain(kernel._op)
    return kernel._op


class Traced:
    """Properties of a kernel that attend() reads."""

    def __init__(self, op):
        self._op, self._name = op, str(op)


def bucket(n):
    """A kernel serves every length up to the next power of two. Comparisons only: a trace then holds for that range of lengths."""
    length = SHORTEST
    while length < n:
        length *= 2
    return length


def chosen_kernel(name, n, query, kv_heads, dropout, bias, transform="softmax"):
    """The kernel for the device of the tensors, and how often heads of keys are to be repeated for it."""
    heads = query.shape[1]
    more = query.shape[-1], DTYPES[query.dtype], dropout > 0, bias, transform, place_of(query.device)
    arguments = name, n, heads, key_heads(name, n, heads, kv_heads, *more), *more
    kernel = Traced(traced_kernel(*arguments)) if torch.compiler.is_compiling() else kernel_for(*arguments)
    return kernel, arguments[3] // kv_heads
