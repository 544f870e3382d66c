# SPDX-License-Identifier: Apache-2.0
"""Kernel: a compiled mask that is loaded. compile() and load() make one."""
import contextlib
import ctypes
import json
import math
import os
import pathlib
import subprocess
import tempfile
import sys
import threading
import time
import weakref
from collections import deque
from ctypes import byref, c_void_p

from . import _library as library
from ._library import Error
from .arguments import count_of, dtype_number, encoded, number_of, optional_count, path_of, text_of, transform_of
from .hooks import is_capturing
from .masks import mask_argument, order_array
from .runs import Runs

DTYPES = ("f32", "bf16", "f16")  # by their number in enum maskc_dtype
SOFTS = {None: 0, "add": 1, "scale": 2}
ALIGNS = {None: 0, "start": 0, "end": 1}
ALIVE, ALIVE_LOCK = weakref.WeakSet(), threading.Lock()  # kernels that the torch operator has no number for yet
DROPPED = deque()  # (function, argument) that free native kernels whose objects are gone


def default_scale(head_dim):
    """1 / sqrt(head_dim), rounded as libmaskc does."""
    return ctypes.c_float(1 / ctypes.c_float(math.sqrt(head_dim)).value).value


def free_dropped():
    """Frees what DROPPED holds. While torch captures a CUDA graph it stays there, because freeing waits for the GPU, which would end the capture."""
    while DROPPED and not is_capturing():
        with contextlib.suppress(IndexError):  # another thread has taken the last one
            free, what = DROPPED.popleft()
            free(what)


def drop(free, what):
    DROPPED.append((free, what))
    free_dropped()


class Kernel:
    """A mask compiled for one dtype and head dimension, and loaded: what attention() runs.

    It holds native code: take kernel files, and pickled kernels, only from where you would take programs. Never written
    to: any number of threads may use it at once. It can be pickled; copy() returns the same object.
    """

    def __init__(self, data: bytes, device: str | None = None):
        """data: a kernel file. device: "cpu", "cuda" (the current GPU), "cuda:1", "emulated", or None: a GPU first, where the
        file has code for one and the machine has one."""
        if not isinstance(data, bytes):
            raise TypeError(f"data: {type(data).__name__}; the bytes of a kernel file are expected")
        self._mask, self._op, self._name, self.torch_dtype = None, -1, None, None
        self._order = None  # of a kernel in another order: (order, its inverse), of torch on the device once torch is there
        free_dropped()
        handle, began = c_void_p(), time.perf_counter()
        library.call("maskc_load_memory", data, len(data), encoded("device", device), byref(handle))
        self.load_s = time.perf_counter() - began
        self._handle, self._data, self._device = handle, data, device
        self._end = None
        self.freed_by(library.LIB.maskc_kernel_destroy, handle)
        i = library.Info()
        library.LIB.maskc_kernel_info(handle, byref(i))
        self.length, self.heads, self.layers, self.head_dim = i.length, i.heads, i.layers, i.head_dim
        self.dtype, self.dropout, self.backward = DTYPES[i.dtype], bool(i.dropout), bool(i.backward)
        self.bias = (None, "add", "scale")[i.soft]
        self.kv_heads, self.kv_length = i.kv_heads, i.kv_length
        self.transform = f"sparsegen={getattr(i, 'lambda'):g}" if i.transform else "softmax"
        self.target, self.device = i.target.decode(), i.device.decode()
        self.default_scale = default_scale(self.head_dim)
        self.ordered = bool(library.LIB.maskc_kernel_order(handle))
        if self.device == "cuda":
            self.device = f"cuda:{i.ordinal}"
        self.give_number()

    def give_number(self):
        """The operator's number, now or by the module of the numbers when its import, which may be under way in another thread, ends."""
        with ALIVE_LOCK:
            ALIVE.add(self)
        number = getattr(sys.modules.get("maskc.torch_numbers"), "number", None)
        if number:
            number(self)
            with ALIVE_LOCK:
                ALIVE.discard(self)

    def freed_by(self, free, what):
        """Makes free(what) the end of the native kernel, with this object. At the interpreter's exit nothing is freed."""
        if self._end:
            self._end.detach()
        self._end = weakref.finalize(self, drop, free, what)
        self._end.atexit = False

    def __reduce__(self):
        return Kernel, (self._data, self._device)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def to(self, device: str) -> "Kernel":
        """The same kernel file loaded for another device, or this kernel if it is loaded there: "cpu", "cuda:1", a torch.device."""
        return self if str(device) == self.device else Kernel(self._data, str(device))

    def __repr__(self):
        return (f"maskc.Kernel({self.length} tokens, {self.heads} heads, {self.layers} layers, head_dim={self.head_dim}, "
                f"{self.dtype}, {self.target}, on {self.device})")

    @property
    def handle(self):
        """The struct maskc_kernel, as ctypes has pointers."""
        return self._handle

    @property
    def plan(self) -> str:
        """The plan and its reasons, as `maskc plan` prints them."""
        return (library.LIB.maskc_plan_text(self._handle) or b"").decode()

    @property
    def order(self):
        """int64 [n], or None: position p of the kernel holds token order[p] (`maskc compile --order`). attention() takes tensors in the
        order of tokens."""
        if not self.ordered:
            return None
        import numpy
        return numpy.ctypeslib.as_array(library.LIB.maskc_kernel_order(self._handle), (self.length,)).astype(numpy.int64)

    @property
    def info(self) -> dict:
        """The properties that the kernel was compiled for."""
        names = ("length", "heads", "kv_length", "kv_heads", "layers", "head_dim", "dtype", "transform", "dropout", "bias", "backward", "target", "device")
        return {name: getattr(self, name) for name in names} | {"bytes": len(self._data)}

    @property
    def mask(self):
        """The mask, a numpy bool array [layers, heads, n, n], in the order of tokens; with other keys than queries [layers, heads, n, kv_length].
        It is kept: copy it before you change it."""
        if self._mask is None:
            with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
                path = os.path.join(folder, "kernel.mkb")
                self.save(path)
                side = max(self.length, self.kv_length)
                self._mask = read_mask(path).reshape(-1, self.heads, side, side)[..., :self.length, :self.kv_length]
        return self._mask

    def save(self, path: "str | os.PathLike") -> None:
        """Writes the kernel file (.mkb), whole or not at all."""
        data = (ctypes.c_uint8 * len(self._data)).from_buffer_copy(self._data)
        made = library.Bytes(ctypes.cast(data, ctypes.POINTER(ctypes.c_uint8)), len(self._data))
        library.call("maskc_bytes_save", byref(made), os.fsencode(path_of("path", path)))

    def workspace_bytes(self, launch):
        return library.LIB.maskc_workspace_bytes(self._handle, byref(launch))

    def run(self, launch):
        """One pass: a struct maskc_launch as maskc.h has it. attention() is what most want."""
        library.call("maskc_run", self._handle, byref(launch))


def run_program(*arguments):
    done = subprocess.run([library.program_path(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        line = done.stderr.strip().removeprefix("maskc: ") or f"maskc {arguments[0]} failed"
        raise Error(done.returncode if done.returncode in (1, 2, 3) else 3, line)
    return done.stdout


def read_mask(mask, *options):
    """Returns the array that `maskc make` writes: bool, of rank 2 to 4."""
    import numpy
    with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
        path = os.path.join(folder, "mask.npy")
        run_program("make", *options, "-o", path, "--", mask)
        return numpy.load(path) != 0


def named_gpu(target):
    """The GPU that a list of targets names by number, if there is one."""
    named = {word for word in target.split(",") if word.startswith("cuda:")}
    return named.pop() if len(named) == 1 else None


def compile(mask, n: int | None = None, heads: int | None = None, head_dim: int = 64, dtype="float32",
            transform: str = "softmax", dropout: bool = False, bias: str | None = None, target: str = "cpu", *,
            forward_only: bool = False, kv_heads: int | None = None, kv_length: int | None = None, align: str | None = None,
            machine: str | None = None, cache_dir: str | None = None, device: str | None = None, order=None, hops: int | None = None) -> Kernel:
    """Compiles a mask and loads the kernel.

    mask: what the command line takes (an expression, a gallery name, a file), a bool array [n, n], [H, n, n] or
    [L, H, n, n] of numpy or torch (L are layers: the sequences of a batch share the mask, and lengths or offsets of
    attention() tell them apart), a matrix of scipy.sparse, maskc.Runs, or FlexAttention's mask_mod or BlockMask. n: length; it crops a mask that has one.
    heads: repeats a one-head mask. dtype: a name, or a dtype of torch or numpy. transform: "softmax" or
    "sparsegen=LAMBDA". dropout: the kernel can drop out probabilities. bias: "add" (scores + X) or "scale"
    (probabilities x X), with X [H, n, n] handed to attention(). target: "cpu", "cuda", "x86-64-v3,sm_90a", ...
    forward_only: no backward pass. kv_heads: heads of k and v where they are fewer, a divisor of q's; each query head keeps a
    mask of its own. kv_length: keys, where they are not as many as the queries n; the mask then has the larger length. A kv_length of n
    gives an ordinary kernel, for which attention() refuses key_lengths.
    align: the smaller side stands at the mask's "start" or "end"; at the end query i stands at i + kv_length - n. machine,
    cache_dir: as in struct maskc_options. order: whole numbers [n], or the ORDER.npy of `maskc order`: position p of the kernel holds
    token order[p]; attention() still takes tensors in the order of tokens. hops: the mask is a graph, in which a query sees all
    that this many steps or fewer reach, itself among them; n crops a stored graph afterwards, an expression is made at n first.
    device: where the kernel is loaded, as in Kernel(); by default the GPU that the target names.
    """
    number, lam = transform_of(transform)
    options = library.Options(
        targets=encoded("target", target), dtype=dtype_number(dtype), head_dim=count_of("head_dim", head_dim), transform=number,
        dropout=bool(dropout), forward_only=bool(forward_only), length=optional_count("n", n), heads=optional_count("heads", heads),
        machine=encoded("machine", machine), cache_dir=encoded("cache_dir", cache_dir),
        soft=number_of(SOFTS, "bias", bias), kv_heads=optional_count("kv_heads", kv_heads),
        kv_length=optional_count("kv_length", kv_length), align=number_of(ALIGNS, "align", align), **{"lambda": lam})
    encoded("device", device)
    ordered = order_array(order)  # lives until the call is over
    if ordered is not None:
        options.order, options.order_length = ctypes.cast(ordered.ctypes.data, ctypes.POINTER(ctypes.c_uint32)), len(ordered)
    if hops is not None:
        options.has_hops, options.hops = 1, count_of("hops", hops, least=0)
    made = library.Bytes()
    text, bits = mask_argument(mask, max(n, kv_length) if n and kv_length else n, heads)
    if text is not None:
        library.call("maskc_compile", encoded("mask", text), byref(options), byref(made))
    elif isinstance(bits, Runs):
        library.call("maskc_compile_runs", bits.rows.ctypes.data, bits.runs.ctypes.data, *bits.shape[:3], byref(options), byref(made))
    else:
        library.call("maskc_compile_dense", bits.ctypes.data, *bits.shape[:3], byref(options), byref(made))
    try:
        return Kernel(ctypes.string_at(made.data, made.size), device or named_gpu(target))
    finally:
        library.LIB.maskc_bytes_free(byref(made))


def load(path: "str | os.PathLike", device: str | None = None) -> Kernel:
    """Loads a kernel file (.mkb). It contains native code: loading one is running it."""
    try:
        data = pathlib.Path(path_of("path", path)).read_bytes()
    except OSError as e:
        raise Error(2, f"{path}: {e.strerror}") from None
    try:
        return Kernel(data, device)
    except Error as e:
        raise Error(e.code, f"{path}: {e.text.removeprefix('kernel in memory: ')}") from None


def write_argument(made, folder):
    """A mask for the program: text, or a file in the folder. made: of mask_argument(), or (None, a Kernel)."""
    text, bits = made
    if text is not None:
        return text
    if isinstance(bits, Runs):
        return bits.save(folder)
    path = os.path.join(folder, "mask.mkb" if isinstance(bits, Kernel) else "mask.npy")
    if isinstance(bits, Kernel):
        bits.save(path)
    else:
        import numpy
        numpy.save(path, bits.view(bool))
    return path


def run_for_mask(argument, folder, *words):
    """The program's output for a mask. An array, which is a file in the folder here, has the name "mask" there and in errors."""
    def named(text):
        return text.replace(argument, "mask") if argument.startswith(folder) else text
    try:
        return named(run_program(*words, "--", argument))
    except Error as e:
        raise Error(e.code, named(e.text)) from None


def shape_words(n, heads):
    """Command-line options that give maskc the length and the heads."""
    return [word for option, name, value in (("-n", "n", n), ("--heads", "heads", heads)) if value is not None
            for word in (option, str(count_of(name, value)))]


def order_words(order, folder):
    """Command-line options that give maskc the order."""
    array = order_array(order)
    if array is None:
        return []
    import numpy
    path = os.path.join(folder, "order.npy")
    numpy.save(path, array.astype(numpy.int64))
    return ["--order", path]


def plan(mask, n: int | None = None, heads: int | None = None, *, head_dim: int = 64, dtype="float32", target: str = "cpu",
         batch: int = 1, threads: int | None = None, machine: str | None = None, json_: bool = False, order=None, hops: int | None = None):
    """Returns the output of `maskc plan` for a mask, without compiling. json_: a dict instead of text. order, hops: as for compile()."""
    words = ["--dtype", DTYPES[dtype_number(dtype)], "--head-dim", str(count_of("head_dim", head_dim)),
             "--target", text_of("target", target), "--batch", str(count_of("batch", batch))]
    words += shape_words(n, heads)
    words += [] if threads is None else ["--threads", str(count_of("threads", threads))]
    words += [] if machine is None else ["--machine", text_of("machine", machine)]
    words += [] if hops is None else ["--hops", str(count_of("hops", hops, least=0))]
    with tempfile.TemporaryDirectory(prefix="maskc-") as folder:
        words += order_words(order, folder)
        argument = write_argument(mask_argument(mask, n, heads), folder)
        out = run_for_mask(argument, folder, "plan", *words, *(["--json"] if json_ else []))
    return json.loads(out) if json_ else out
