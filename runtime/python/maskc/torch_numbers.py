# SPDX-License-Identifier: Apache-2.0
"""The operators' library, and the numbers by which the operators know kernels.

A number is a hash of the kernel file, the device and a count of equal kernels. So a number that an exported program brings
from another process names the same kernel file here, or no kernel. A program that is traced again in another process has the
same numbers, and finds its compiled code in torch's caches.
"""
import contextlib
import ctypes
import hashlib
import threading
import weakref

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from . import _library as library
from ._library import Error
from .kernel import ALIVE, ALIVE_LOCK

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
LOCK = threading.Lock()
EQUAL = {}    # hash of a kernel file and a device: the kernels that have had it
BY_NUMBER = weakref.WeakValueDictionary()
RETAINED = {}  # number: a kernel that compiled code or a CUDA graph names


@contextlib.contextmanager
def apart():
    """Tensors that are made here have memory, on the CPU if no device is named, and serve a backward pass: modes of the caller, such as
    torch.device("meta"), fake tensors and torch.inference_mode(), are suspended."""
    with unset_fake_temporarily(), torch.inference_mode(False), torch.device("cpu"):
        yield


def load():
    """The operators, on the libmaskc that is loaded already."""
    path = library.op_library_path()
    if not path:
        raise Error(3, library.without_operator())
    try:
        torch.ops.load_library(str(path))
    except OSError as e:
        raise Error(3, f"the operator cannot be loaded beside torch {torch.__version__} (2.10 or later is needed): {e}") from None
    lib = ctypes.CDLL(str(path))
    lib.maskc_torch_add.restype, lib.maskc_torch_add.argtypes = ctypes.c_int, [ctypes.c_int64, ctypes.c_void_p]
    lib.maskc_torch_forget.restype, lib.maskc_torch_forget.argtypes = None, [ctypes.c_int64]
    return lib


LIB = load()


def new_number(kernel):
    """A new number of 63 bits, from a hash of device and file. Equal kernels of a process get different numbers."""
    content = hashlib.sha256(f"{kernel._device or kernel.device}\n".encode() + kernel._data).digest()
    EQUAL[content] = count = EQUAL.get(content, -1) + 1
    return int.from_bytes(hashlib.sha256(content + count.to_bytes(8, "little")).digest()[:8], "little") >> 1


def number(kernel):
    """The operators' name for a kernel. Kernels that are made after this module get it at once."""
    with LOCK:
        if kernel._op < 0:
            op = new_number(kernel)
            if LIB.maskc_torch_add(op, kernel._handle):
                raise Error(3, "two kernels have the same number")
            kernel.freed_by(LIB.maskc_torch_forget, op)
            kernel.torch_dtype, kernel._name, BY_NUMBER[op] = DTYPES[kernel.dtype], str(op), kernel
            if kernel.ordered:
                with apart():
                    order = torch.from_numpy(kernel.order)
                    kernel._order = order.to(kernel.device), order.argsort().to(kernel.device)
            kernel._op = op
    return kernel._op


def retain(op):
    """Keeps a kernel for the rest of the process: code that only holds its number needs it."""
    kernel = BY_NUMBER.get(op)
    if kernel is not None:
        RETAINED[op] = kernel


@torch._dynamo.assume_constant_result
def traced(name):
    """The number of a kernel in code that torch.compile makes. `name` is the number as text, which a trace takes as a constant."""
    retain(int(name))
    return int(name)


def number_all():
    """Numbers of kernels that were made before: a traced attention() must find them there."""
    with ALIVE_LOCK:
        kernels = list(ALIVE)
    for kernel in kernels:
        number(kernel)


number_all()
