# SPDX-License-Identifier: Apache-2.0
"""Reads the properties of kernels from a cubin's ELF, except their instructions."""
import struct

from disassembly import Fatal

SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, align, entry
SYMBOL = struct.Struct("<IBBHQQ")       # name, info, other, section, value, size
MAX_THREADS, REGISTERS = 0x05, 0x2f     # attributes in .nv.info
NO_BITS = 8                             # a section without bytes in the file
RESERVED_BYTES = 1024                   # of shared memory, by the driver, of each block


class Section:
    def __init__(self, data, where):
        (self.name_at, self.type, _, _, self.offset, self.size, self.link, self.info, _, _) = \
            SECTION.unpack_from(data, where)
        self.data = data

    @property
    def bytes(self):
        return self.data[self.offset:self.offset + (0 if self.type == NO_BITS else self.size)]


def text_at(strings, at):
    return strings[at:strings.index(b"\0", at)].decode()


def sections(data):
    """{name: Section}"""
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3a)
    found = [Section(data, offset + k * size) for k in range(count)]
    strings = found[names].bytes
    return {text_at(strings, s.name_at): s for s in found}


def attributes(data):
    """(attribute, its bytes) of a .nv.info section."""
    at = 0
    while at + 4 <= len(data):
        form, name, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:  # `value` bytes follow
            yield name, data[at:at + value]
            at += value


def registers_of(found):
    """{kernel: registers of a thread}"""
    symbols, strings = found[".symtab"].bytes, found[".strtab"].bytes
    made = {}
    for name, value in attributes(found[".nv.info"].bytes):
        if name == REGISTERS:
            symbol, registers = struct.unpack("<II", value)
            made[text_at(strings, SYMBOL.unpack_from(symbols, symbol * SYMBOL.size)[0])] = registers
    return made


def threads_of(found, kernel):
    """Threads of a block, if the kernel was compiled for a fixed number; else 0."""
    info = found.get(f".nv.info.{kernel}")
    for name, value in attributes(info.bytes) if info else ():
        if name == MAX_THREADS:
            x, y, z = struct.unpack("<III", value)
            return x * y * z
    return 0


def static_bytes(found, kernel):
    """Bytes of shared memory, without the driver's own share of each block, which later targets list too."""
    listed = getattr(found.get(f".nv.shared.{kernel}"), "size", 0)
    return max(0, listed - (RESERVED_BYTES if ".nv.shared.reserved.0" in found else 0))


def kernels_of(data, path):
    """{kernel: {"registers", "threads", "static_bytes" of shared memory}}"""
    try:
        found = sections(data)
        return {kernel: {"registers": registers, "threads": threads_of(found, kernel),
                         "static_bytes": static_bytes(found, kernel)}
                for kernel, registers in registers_of(found).items() if f".text.{kernel}" in found}
    except (struct.error, IndexError, KeyError, ValueError, OverflowError):
        raise Fatal(2, f"{path}: not a cubin, or a damaged one") from None
