# SPDX-License-Identifier: Apache-2.0
"""Cubins out of the fat binaries that nvcc puts into a library. A library's section .nv_fatbin is a row of
containers; each has a header and entries, an entry a header and a cubin or PTX, plain or compressed."""
import ctypes
import ctypes.util
import mmap
import struct

import cubin
from disassembly import Fatal

MAGIC = 0xBA55ED50
CONTAINER = struct.Struct("<IHHQ")  # magic, version, bytes of this header, bytes of the entries
ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
CUBIN = 2                           # kind of an entry; 1 is PTX
LZ4, ZSTD = 0x2000, 0x8000          # flags of an entry
MOST = 1 << 30                      # bytes of a cubin


class Entry:
    def __init__(self, data, at):
        (self.kind, _, self.head, self.padded, self.packed, _, _, _, self.arch, _, _, self.flags, _, self.size) = \
            ENTRY.unpack_from(data, at)
        self.at = at


def library(name, package):
    for file in (ctypes.util.find_library(name), f"lib{name}.so.1"):
        try:
            return ctypes.CDLL(file) if file else None
        except OSError:
            continue
    raise Fatal(3, f"the cubins are compressed: needs lib{name} (Debian's {package})")


def unpack_zstd(packed, size):
    call = library("zstd", "libzstd1").ZSTD_decompress
    call.restype = ctypes.c_size_t
    call.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(size)
    return out.raw if call(out, size, packed, len(packed)) == size else None


def unpack_lz4(packed, size):
    call = library("lz4", "liblz4-1").LZ4_decompress_safe
    out = ctypes.create_string_buffer(size)
    return out.raw if call(packed, out, len(packed), size) == size else None


def unpack(data, entry, path):
    begin = entry.at + entry.head
    if not entry.flags & (LZ4 | ZSTD):
        return data[begin:begin + entry.padded]
    if entry.size > MOST:
        raise Fatal(2, f"{path}: a fat binary says that it has {entry.size} bytes")
    how = unpack_zstd if entry.flags & ZSTD else unpack_lz4
    made = how(data[begin:begin + entry.packed], entry.size)
    if made is None:
        raise Fatal(2, f"{path}: a fat binary is damaged")
    return made


def entries(data, begin, end):
    """Those of all containers; between containers is padding."""
    at = begin
    while at + CONTAINER.size <= end:
        magic, _, head, size = CONTAINER.unpack_from(data, at)
        if magic != MAGIC:
            at += 8
            continue
        at, last = at + head, min(at + head + size, end)
        while at + ENTRY.size <= last:
            entry = Entry(data, at)
            yield entry
            at += max(8, entry.head + entry.padded)
        at = last


def cubins(path, arch):
    """Yields the cubins of a library for sm_<arch>, one after another."""
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            found = [s for name, s in cubin.sections(data).items() if "nv_fatbin" in name]
            for s in found:
                for entry in entries(data, s.offset, s.offset + s.size):
                    if entry.kind == CUBIN and entry.arch == arch:
                        yield unpack(data, entry, path)
        except (struct.error, IndexError, KeyError, ValueError, OverflowError):
            raise Fatal(2, f"{path}: not a shared library, or a damaged one") from None
