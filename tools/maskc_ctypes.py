# SPDX-License-Identifier: Apache-2.0
"""libmaskc from Python, by ctypes alone: the structs of runtime/maskc.h, and with torch a function
attention(kernel, q, k, v) on the tensors' own memory, forward and backward.

    library = Library("build/runtime/libmaskc.so")
    kernel = library.compile("longformer(64,2)", length=512, heads=12, dtype="bf16")
    out = attention(kernel, q, k, v)        # [B, H, N, D] tensors, any strides with D contiguous

torch is imported only by what works on tensors.
"""
import ctypes
import functools
import threading
import time
from ctypes import POINTER, byref, c_char, c_char_p, c_float, c_int, c_int64, c_size_t, \
    c_uint8, c_uint32, c_uint64, c_void_p

DTYPES = ("f32", "bf16", "f16")  # by their number in enum maskc_dtype
TRANSFORMS = ("softmax", "sparsegen")
SOFTS = ("none", "bias", "scale")
FORWARD, BACKWARD = 0, 1


class Error(Exception):
    """What the library refused. code: 1 does not hold, 2 bad input, 3 this machine cannot."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class ErrorStruct(ctypes.Structure):
    _fields_ = [("code", c_int), ("text", c_char * 4096)]


class Versioned(ctypes.Structure):
    """A struct that begins with its own size."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class Options(Versioned):
    _fields_ = [("struct_size", c_size_t), ("targets", c_char_p), ("dtype", c_int), ("head_dim", c_uint32),
                ("transform", c_int), ("lambda", c_float), ("dropout", c_int),
                ("forward_only", c_int), ("length", c_uint32), ("heads", c_uint32),
                ("machine", c_char_p), ("cache_dir", c_char_p), ("soft", c_int)]


class Bytes(ctypes.Structure):
    _fields_ = [("data", POINTER(c_uint8)), ("size", c_size_t)]


class Info(Versioned):
    _fields_ = [("struct_size", c_size_t), ("length", c_uint32), ("heads", c_uint32), ("layers", c_uint32),
                ("head_dim", c_uint32), ("dtype", c_int), ("transform", c_int),
                ("lambda", c_float), ("dropout", c_int), ("backward", c_int),
                ("target", c_char_p), ("device", c_char_p), ("soft", c_int)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("batch", c_int64), ("row", c_int64), ("head", c_int64)]


class Launch(Versioned):
    _fields_ = [("struct_size", c_size_t), ("pass", c_int), ("batch", c_uint32), ("length", c_uint32), ("layer", c_uint32),
                ("scale", c_float), ("lengths", c_void_p), ("offsets", c_void_p),
                ("tokens", c_uint64), ("dropout", c_float), ("seed", c_uint64),
                ("query", Tensor), ("key", Tensor), ("value", Tensor), ("out", Tensor),
                ("grad_out", Tensor), ("grad_query", Tensor), ("grad_key", Tensor),
                ("grad_value", Tensor), ("lse", c_void_p), ("workspace", c_void_p),
                ("workspace_bytes", c_uint64), ("threads", c_uint32), ("stream", c_void_p),
                ("soft", c_void_p), ("grad_soft", c_void_p), ("grad_soft_diagonals", c_void_p), ("samples", c_void_p),
                ("parallel", c_void_p), ("pool", c_void_p), ("starts", c_void_p)]


# Names of the structs in the header: a test compares sizes and offsets with a C compiler's.
STRUCTS = {"maskc_error": ErrorStruct, "maskc_options": Options, "maskc_bytes": Bytes,
           "maskc_info": Info, "maskc_tensor": Tensor, "maskc_launch": Launch}

FUNCTIONS = {  # name: (result, arguments)
    "maskc_compile": (c_int, [c_char_p, POINTER(Options), POINTER(Bytes), POINTER(ErrorStruct)]),
    "maskc_compile_dense": (c_int, [c_void_p, c_uint32, c_uint32, c_uint32, POINTER(Options),
                                    POINTER(Bytes), POINTER(ErrorStruct)]),
    "maskc_bytes_save": (c_int, [POINTER(Bytes), c_char_p, POINTER(ErrorStruct)]),
    "maskc_bytes_free": (None, [POINTER(Bytes)]),
    "maskc_load": (c_int, [c_char_p, c_char_p, POINTER(c_void_p), POINTER(ErrorStruct)]),
    "maskc_load_memory": (c_int, [c_void_p, c_size_t, c_char_p, POINTER(c_void_p),
                                  POINTER(ErrorStruct)]),
    "maskc_kernel_destroy": (None, [c_void_p]),
    "maskc_kernel_info": (None, [c_void_p, POINTER(Info)]),
    "maskc_plan_text": (c_char_p, [c_void_p]),
    "maskc_workspace_bytes": (c_uint64, [c_void_p, POINTER(Launch)]),
    "maskc_run": (c_int, [c_void_p, POINTER(Launch), POINTER(ErrorStruct)]),
}


def encoded(text):
    return None if text is None else str(text).encode()


class Library:
    """The loaded shared library. OSError where it cannot be loaded."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments

    def call(self, name, *arguments):
        error = ErrorStruct()
        if getattr(self.lib, name)(*arguments, byref(error)):
            raise Error(error.code, error.text.decode(errors="replace"))

    def compile(self, mask, dtype="f32", transform="softmax", soft="none", device=None, **options):
        """mask: what the command line takes (str), or a torch bool tensor [L, H, N, N].
        options: the other fields of struct maskc_options. Returns a loaded Kernel."""
        names = {name for name, _ in Options._fields_} - {"struct_size"}
        unknown = set(options) - names
        if unknown:
            raise TypeError(f"no such option: {', '.join(sorted(unknown))}")
        texts = {"targets", "machine", "cache_dir"}
        o = Options(dtype=DTYPES.index(dtype), transform=TRANSFORMS.index(transform),
                    soft=SOFTS.index(soft), **{k: encoded(v) if k in texts else v for k, v in options.items()})
        made = Bytes()
        if isinstance(mask, str):
            self.call("maskc_compile", mask.encode(), byref(o), byref(made))
        else:
            bits = mask.to(device="cpu", dtype=mask.new_empty(0).bool().dtype).contiguous()
            layers, heads, n, _ = bits.shape
            self.call("maskc_compile_dense", bits.data_ptr(), layers, heads, n, byref(o),
                      byref(made))
        try:
            begin = time.perf_counter()
            kernel = self.load_memory(made.data, made.size, device)
            kernel.load_s = time.perf_counter() - begin
            return kernel
        finally:
            self.lib.maskc_bytes_free(byref(made))

    def load_memory(self, data, size, device=None):
        handle = c_void_p()
        self.call("maskc_load_memory", data, size, encoded(device), byref(handle))
        return Kernel(self, handle)

    def load(self, path, device=None):
        """A kernel file. It holds native code: loading one is running it."""
        handle = c_void_p()
        self.call("maskc_load", encoded(path), encoded(device), byref(handle))
        return Kernel(self, handle)


class Kernel:
    """A loaded kernel; freed with the object."""

    def __init__(self, library, handle):
        self.library, self.handle = library, handle
        self.load_s = None  # seconds, of what compile() loaded
        self.info = Info()
        library.lib.maskc_kernel_info(handle, byref(self.info))

    def __del__(self):
        if getattr(self, "handle", None):
            self.library.lib.maskc_kernel_destroy(self.handle)
            self.handle = None

    @property
    def dtype(self):
        return DTYPES[self.info.dtype]

    @property
    def soft(self):
        return SOFTS[self.info.soft]

    @property
    def target(self):
        return (self.info.target or b"").decode()

    def plan_text(self):
        return (self.library.lib.maskc_plan_text(self.handle) or b"").decode()

    def workspace_bytes(self, launch):
        return self.library.lib.maskc_workspace_bytes(self.handle, byref(launch))

    def run(self, launch):
        self.library.call("maskc_run", self.handle, byref(launch))


# ---- torch ----

def tensor_of(t):
    """A struct maskc_tensor on the memory of a [B, H, N, D] tensor."""
    if t.stride(3) != 1:
        raise ValueError("the last dimension must be contiguous")
    return Tensor(t.data_ptr(), t.stride(0), t.stride(2), t.stride(1))


def check_soft(kernel, soft):
    import torch
    n = kernel.info.length
    if (soft is None) != (kernel.soft == "none"):
        raise ValueError(f"the kernel was compiled with soft={kernel.soft}")
    if soft is not None and (soft.dtype != torch.float32 or not soft.is_contiguous()
                             or soft.shape != (kernel.info.heads, n, n)):
        raise ValueError(f"soft must be float32 [{kernel.info.heads}, {n}, {n}], contiguous")


def launch_of(kernel, q, k, v, soft=None, threads=0, scale=0.0, layer=0, lengths=None, dropout=0.0,
              seed=0):
    """What forward and backward share. Everything stays the caller's: keep the tensors alive."""
    import torch
    want = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[kernel.dtype]
    batch, heads, length, head_dim = q.shape
    if k.shape != q.shape or v.shape != q.shape:
        raise ValueError("query, key and value must be shaped alike, [B, H, N, D]")
    if {q.dtype, k.dtype, v.dtype} != {want}:
        raise ValueError(f"a kernel for {kernel.dtype} takes {want} tensors")
    if (heads, head_dim) != (kernel.info.heads, kernel.info.head_dim):
        raise ValueError(f"the kernel takes {kernel.info.heads} heads of {kernel.info.head_dim}")
    if lengths is not None and (lengths.dtype != torch.int32 or lengths.shape != (batch,)):
        raise ValueError(f"lengths must be int32 [{batch}]")
    check_soft(kernel, soft)
    return Launch(batch=batch, length=length, layer=layer, scale=scale, dropout=dropout, seed=seed,
                  lengths=lengths.data_ptr() if lengths is not None else None, query=tensor_of(q),
                  key=tensor_of(k), value=tensor_of(v), threads=threads,
                  soft=soft.data_ptr() if soft is not None else None,
                  stream=torch.cuda.current_stream(q.device).cuda_stream if q.is_cuda else None)


KEPT = threading.local()


def workspace(size, like):
    """Of that many bytes; allocators align to 64 or more, on either device. On the CPU the calling thread
    keeps its largest: so much memory would come fresh from the system each time, page by page (at n=2048 a third
    of what a star-shaped mask's forward pass takes)."""
    import torch
    if like.is_cuda:
        return torch.empty(size, dtype=torch.uint8, device=like.device)
    if not hasattr(KEPT, "space") or KEPT.space.numel() < size:
        KEPT.space = torch.empty(size, dtype=torch.uint8)
    return KEPT.space


def run_pass(kernel, launch, direction, like):
    """Runs with a workspace that no other thread has, so that any number of them may call."""
    setattr(launch, "pass", direction)
    size = kernel.workspace_bytes(launch)
    space = workspace(size, like)
    launch.workspace, launch.workspace_bytes = (space.data_ptr() or None), size
    kernel.run(launch)


@functools.cache
def function_class():
    """The autograd function; made at first use, as torch is needed to make it."""
    import torch

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, kernel, options, q, k, v, soft):
            out = torch.empty_like(q)
            lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
            launch = launch_of(kernel, q, k, v, soft, **options)
            launch.out, launch.lse = tensor_of(out), lse.data_ptr()
            run_pass(kernel, launch, FORWARD, q)
            ctx.kernel, ctx.options = kernel, options
            ctx.save_for_backward(q, k, v, soft, out, lse)
            return out

        @staticmethod
        def backward(ctx, grad_out):
            q, k, v, soft, out, lse = ctx.saved_tensors
            if grad_out.stride(3) != 1:
                grad_out = grad_out.contiguous()
            grads = [torch.empty_like(t) for t in (q, k, v)]
            grad_soft = torch.empty_like(soft) if ctx.needs_input_grad[5] else None
            launch = launch_of(ctx.kernel, q, k, v, soft, **ctx.options)
            launch.out, launch.lse = tensor_of(out), lse.data_ptr()
            launch.grad_out = tensor_of(grad_out)
            launch.grad_query, launch.grad_key, launch.grad_value = map(tensor_of, grads)
            if grad_soft is not None:
                launch.grad_soft = grad_soft.data_ptr()
            run_pass(ctx.kernel, launch, BACKWARD, q)
            return None, None, *grads, grad_soft

    return Attention


def attention(kernel, q, k, v, soft=None, **options):
    """O of [B, H, N, D] tensors, differentiable. soft: a float32 [H, N, N] tensor for a kernel compiled
    with a soft mask, differentiable too. options: threads, scale, layer, lengths (int32 [B] on the
    device), dropout, seed."""
    return function_class().apply(kernel, options, q, k, v, soft)
