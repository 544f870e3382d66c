# SPDX-License-Identifier: Apache-2.0
"""Cubins and launches out of a .mkb kernel file, and the mask's active entries."""
import dataclasses
import json
import pathlib
import struct

import cubin
from disassembly import Fatal

HALVES = ("bf16", "f16")
MAX_HEADER = 1 << 26  # bytes


@dataclasses.dataclass
class Launch:
    """A kernel as it is launched."""
    name: str
    target: str
    image: bytes       # its cubin
    registers: int     # of a thread
    threads: int       # of a block
    shared_bytes: int  # of a block, dynamic and static
    head_dim: int
    dtype: str = ""
    source: str = ""   # file


class KernelFile:
    """A .mkb: a safetensors container."""

    def __init__(self, path):
        self.path = path
        self.data = path.read_bytes()
        try:
            size, = struct.unpack_from("<Q", self.data)
            if size > MAX_HEADER:
                raise ValueError
            self.header = json.loads(self.data[8:8 + size])
            self.first, self.meta = 8 + size, self.header["__metadata__"]
            self.targets = json.loads(self.meta["targets"])
            self.features, self.mask = json.loads(self.meta["features"]), json.loads(self.meta["mask"])
        except (struct.error, ValueError, KeyError, TypeError):
            raise Fatal(2, f"{path}: neither a kernel file nor a cubin") from None

    def tensor(self, name):
        begin, end = self.header[name]["data_offsets"]
        return self.data[self.first + begin:self.first + end]

    def images(self, target):
        return [self.tensor(name) for name in sorted(self.header) if name.startswith(f"{target}/code")]

    def integers(self, name, form):
        data = self.tensor(name)
        return struct.unpack(f"<{len(data) // struct.calcsize(form)}{form}", data)

    def active_entries(self, layer=0):
        """Number of active entries of all heads of a layer, for one sequence."""
        rows, runs = self.integers("mask/rows", "Q"), self.integers("mask/runs", "I")
        shape = self.header["mask/rows"]["shape"]
        heads = self.header["mask/at"]["shape"][1]
        at = self.integers("mask/at", "I")[layer * heads:(layer + 1) * heads]
        ends = [sum(runs[2 * k + 1] - runs[2 * k] for k in range(rows[m * shape[1]], rows[(m + 1) * shape[1] - 1]))
                for m in range(shape[0])]
        return sum(ends[m] for m in at)

    def launches(self, wanted):
        """Launches of the targets in `wanted` (all where it is empty)."""
        made = []
        for target in self.targets:
            records = {r["entry"]: r for phase in ("forward", "backward") for r in target.get(phase, [])}
            if target["name"].startswith("sm_") and (not wanted or target["name"] in wanted):
                for image in self.images(target["name"]):
                    made += self.launches_of(image, target["name"], records)
        return made

    def launches_of(self, image, target, records):
        for name, said in cubin.kernels_of(image, self.path).items():
            record = records.get(name, {"threads": said["threads"], "shared_bytes": 0})
            yield Launch(name, target, image, said["registers"], record["threads"],
                         record["shared_bytes"] + said["static_bytes"], self.features["head_dim"],
                         self.features["dtype"], self.path.name)


def bare(path, head_dim, shared_bytes):
    """Launches of a cubin by itself."""
    image = path.read_bytes()
    return [Launch(name, "", image, said["registers"], said["threads"] or 128, shared_bytes + said["static_bytes"],
                   head_dim, source=path.name) for name, said in cubin.kernels_of(image, path).items()]


def read(path, wanted, head_dim, shared_bytes):
    """(launches, the KernelFile or None)."""
    path = pathlib.Path(path)
    try:
        with open(path, "rb") as f:
            elf = f.read(4) == b"\x7fELF"
        if elf:
            return bare(path, head_dim, shared_bytes), None
        opened = KernelFile(path)
    except OSError as e:
        raise Fatal(2, f"{path}: {e.strerror}") from None
    made = opened.launches(wanted)
    if not made:
        raise Fatal(2, f"{path}: no code for {' or '.join(wanted) or 'a GPU'} in it")
    return made, opened
