# SPDX-License-Identifier: Apache-2.0
"""libmaskc by ctypes: the structs and functions of maskc.h, and where its files lie."""
import ctypes
import os
import pathlib
import re
import shutil
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_float, c_int, c_int64, c_size_t, \
    c_uint8, c_uint32, c_uint64, c_void_p

HERE = pathlib.Path(__file__).resolve().parent


OPTION = re.compile(r"(?<![\w-])--?(n|heads|hops)(?: (?=N\b|\d)|(?=:))")  # as the library's texts name them


class Error(Exception):
    """Error of maskc. code: 1 a check found it false, 2 bad input, 3 unavailable on this machine. text: one
    line that says what, and what is expected. detail: more lines, where there are."""

    def __init__(self, code: int, text: str):
        text = OPTION.sub(lambda m: m[1] + "=" * m[0].endswith(" "), text)
        super().__init__(code, text)
        self.code, self.text, self.detail = code, text.split("\n")[0], text

    def __str__(self):
        return self.text


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
                ("machine", c_char_p), ("cache_dir", c_char_p), ("soft", c_int), ("unused", c_uint32),
                ("kv_heads", c_uint32), ("kv_length", c_uint32), ("align", c_int),
                ("order", POINTER(c_uint32)), ("order_length", c_uint32), ("has_hops", c_int), ("hops", c_uint32)]


class Bytes(ctypes.Structure):
    _fields_ = [("data", POINTER(c_uint8)), ("size", c_size_t)]


class Info(Versioned):
    _fields_ = [("struct_size", c_size_t), ("length", c_uint32), ("heads", c_uint32), ("layers", c_uint32),
                ("head_dim", c_uint32), ("dtype", c_int), ("transform", c_int),
                ("lambda", c_float), ("dropout", c_int), ("backward", c_int),
                ("target", c_char_p), ("device", c_char_p), ("soft", c_int), ("unused", c_uint32),
                ("kv_heads", c_uint32), ("kv_length", c_uint32), ("ordinal", c_uint32)]


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
                ("parallel", c_void_p), ("pool", c_void_p), ("starts", c_void_p),
                ("key_length", c_uint32), ("key_lengths", c_void_p), ("flags", c_uint32)]

SCALE_GIVEN = 1  # MASKC_SCALE_GIVEN


# Names of the structs in the header: a test compares sizes and offsets with a C compiler's.
STRUCTS = {"maskc_error": ErrorStruct, "maskc_options": Options, "maskc_bytes": Bytes,
           "maskc_info": Info, "maskc_tensor": Tensor, "maskc_launch": Launch}

FUNCTIONS = {  # name: (result, arguments)
    "maskc_compile": (c_int, [c_char_p, POINTER(Options), POINTER(Bytes), POINTER(ErrorStruct)]),
    "maskc_compile_dense": (c_int, [c_void_p, c_uint32, c_uint32, c_uint32, POINTER(Options),
                                    POINTER(Bytes), POINTER(ErrorStruct)]),
    "maskc_compile_runs": (c_int, [c_void_p, c_void_p, c_uint32, c_uint32, c_uint32, POINTER(Options),
                                   POINTER(Bytes), POINTER(ErrorStruct)]),
    "maskc_bytes_save": (c_int, [POINTER(Bytes), c_char_p, POINTER(ErrorStruct)]),
    "maskc_bytes_free": (None, [POINTER(Bytes)]),
    "maskc_load": (c_int, [c_char_p, c_char_p, POINTER(c_void_p), POINTER(ErrorStruct)]),
    "maskc_load_memory": (c_int, [c_void_p, c_size_t, c_char_p, POINTER(c_void_p),
                                  POINTER(ErrorStruct)]),
    "maskc_kernel_destroy": (None, [c_void_p]),
    "maskc_kernel_info": (None, [c_void_p, POINTER(Info)]),
    "maskc_kernel_order": (POINTER(c_uint32), [c_void_p]),
    "maskc_plan_text": (c_char_p, [c_void_p]),
    "maskc_workspace_bytes": (c_uint64, [c_void_p, POINTER(Launch)]),
    "maskc_run": (c_int, [c_void_p, POINTER(Launch), POINTER(ErrorStruct)]),
}


def first_file(*candidates):
    return next((path for path in candidates if path and path.is_file()), None)


def library_path():
    """MASKC_LIBRARY where it is set; beside this file as the wheel has it; in the build folder that holds this file."""
    if os.environ.get("MASKC_LIBRARY"):
        return pathlib.Path(os.environ["MASKC_LIBRARY"])
    found = first_file(HERE / "libmaskc.so.0", HERE.parent.parent / "libmaskc.so.0")
    if not found:
        raise ImportError(f"libmaskc.so.0 is not beside {HERE}: install the wheel, or set MASKC_LIBRARY")
    return found


def op_library_path():
    """The torch op, or None where the package was built without torch."""
    return first_file(HERE / "libmaskc_torch.so.0")


def without_operator():
    """One line: why the package has no operator, and the command that builds it."""
    try:
        from ._build import NO_OPERATOR as reason
    except ImportError:
        reason = ""
    return (f"this maskc was built without its operator of torch ({reason or 'a folder of sources, or a build that is not complete'}): install torch 2.10 or later and g++, then run in the checkout "
            f"MASKC_TORCH_PYTHON={sys.executable} {sys.executable} -m pip install --force-reinstall --no-deps .")


def own_program(name):
    """The program of this package, or of the build folder that holds it, as after `pip install -e`; None without one."""
    return first_file(HERE / "bin" / name, HERE.parent.parent.parent / "tools" / name / name)


def program_path(name="maskc"):
    """The program of this package; else the one on PATH."""
    path = own_program(name) or shutil.which(name)
    if not path:
        raise Error(3, f"the program {name} is not installed")
    return str(path)


def load():
    os.environ["MASKC_PREFIX"] = sys.prefix  # CUDA libraries of this Python's packages: runtime/base/toolkit.c, also of programs
    lib = ctypes.CDLL(str(library_path()))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


LIB = load()


def call(name, *arguments):
    """A function of maskc.h that takes a struct maskc_error last. Raises Error."""
    error = ErrorStruct()
    if getattr(LIB, name)(*arguments, byref(error)):
        raise Error(error.code, error.text.decode(errors="replace"))
