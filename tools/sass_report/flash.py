# SPDX-License-Identifier: Apache-2.0
"""FlashAttention-2's kernels out of a torch CUDA library: bf16, head dimension 64, without dropout, mask or
bias, lengths that are multiples of the block; by mma.sync on all GPUs."""
import contextlib
import pathlib
import re
import tempfile
import zipfile

import cubin
import fatbin
from disassembly import Fatal
from kernel_file import Launch

LIBRARY = "torch/lib/libtorch_cuda.so"
HEAD_DIM, HALF = 64, 2
ARCHES = (80, 90)
# In a mangled name: head dimension, rows and columns of a block, warps; later its flags: no dropout, not causal,
# no window, no slopes, whole blocks, whole D, and what newer versions add.
SHAPES = {"flash_fwd": (b"flash_fwd_kernelI\\d+Flash_fwd_kernel_traits", b"Li64ELi(128)ELi(128)ELi(4)E"),
          "flash_bwd": (b"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI\\d+Flash_bwd_kernel_traits",
                        b"Li64ELi(128)ELi(128)ELi(8)E")}
FLAGS = b"bfloat16_t\\w*EELb0ELb0ELb0ELb0ELb1ELb1E(?:Lb0E)*EEv"
KERNELS = {family: re.compile(rb"_Z\w*" + name + b"I" + shape + rb"\w*" + FLAGS + rb"\w*")
           for family, (name, shape) in SHAPES.items()}


def shared_of(family, rows, columns):
    """Bytes, as the traits of the kernels add them up: Q, K, V; backward Q twice, dO, K, V, P and dS."""
    if family == "flash_fwd":
        return HALF * HEAD_DIM * (rows + 2 * columns)
    return HALF * (HEAD_DIM * (3 * rows + 2 * columns) + 2 * rows * columns)


@contextlib.contextmanager
def opened(path):
    """The library's path; out of a wheel it is unpacked for the time being."""
    path = pathlib.Path(path)
    if path.is_dir():
        found = next((p for p in (path / LIBRARY, path / "libtorch_cuda.so", path / "lib/libtorch_cuda.so")
                      if p.is_file()), None)
        if not found:
            raise Fatal(2, f"{path}: no {LIBRARY} in it")
        yield found
    elif path.suffix == ".whl":
        with tempfile.TemporaryDirectory(prefix="sass-") as folder:
            try:
                yield pathlib.Path(zipfile.ZipFile(path).extract(LIBRARY, folder))
            except (OSError, KeyError, zipfile.BadZipFile):
                raise Fatal(2, f"{path}: not a wheel with {LIBRARY}") from None
    elif path.is_file():
        yield path
    else:
        raise Fatal(2, f"{path}: no such file or folder")


def version_of(path):
    """That a wheel's name says, or a site-packages folder's torch/version.py."""
    path = pathlib.Path(path)
    named = re.search(r"torch-([^-]+)-", path.name)
    said = next((p for p in (path / "torch/version.py", path.parent.parent / "version.py") if p.is_file()), None)
    text = re.search(r"__version__ = '([^']+)'", said.read_text(encoding="utf-8")) if said else None
    return named.group(1) if named else text.group(1) if text else "unknown"


def launches(path):
    """One Launch each of the forward and the backward, for each of ARCHES."""
    with opened(path) as file:
        return [x for arch in ARCHES for x in launches_for(path, file, arch)]


def launches_for(path, file, arch):
    made = {}
    for image in fatbin.cubins(file, arch):
        for family, pattern in KERNELS.items():
            found = None if family in made else pattern.search(image)
            if found:
                made[family] = launch_of(family, found, image, file, arch)
        if len(made) == len(KERNELS):
            return [made[family] for family in KERNELS]
    missing = " and ".join(family for family in KERNELS if family not in made)
    raise Fatal(2, f"{path}: no {missing} for bf16, D=64, sm_{arch} in it")


def launch_of(family, found, image, file, arch):
    rows, columns, warps = map(int, found.groups())
    name = found.group(0).decode()
    said = cubin.kernels_of(image, file)[name]
    return Launch(name, f"sm_{arch}", image, said["registers"], 32 * warps,
                  shared_of(family, rows, columns) + said["static_bytes"], HEAD_DIM, "bf16", file.name)
