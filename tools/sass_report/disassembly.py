# SPDX-License-Identifier: Apache-2.0
"""The instructions of a cubin, as nvdisasm prints them, with what the control codes in the hex words say."""
import dataclasses
import functools
import pathlib
import re
import subprocess
import sys

FINDER = pathlib.Path(__file__).resolve().parent.parent / "find_nvdisasm"

# A line of text and the first of an instruction's two words; the second word stands on a line by itself.
FIRST = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/")
SECOND = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/")
LABEL = re.compile(r"(\.L_x_\d+|\$[^:\s]+):")
SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+),")
REGISTERS = re.compile(r'SHI_REGISTERS=(\d+)')
TARGET = re.compile(r"\s*\.target\s+(sm_\w+)")
REFERENCE = re.compile(r"`\(([^)]+)\)")

# The second word's control codes: first bit, width.
STALL = (41, 4)         # cycles before the warp's next instruction
WRITE_BARRIER = (46, 3)  # scoreboard that is freed when the result is there; 7: none
READ_BARRIER = (49, 3)   # the same when the operands are read
WAIT = (52, 6)           # scoreboards that must be free before it issues


class Fatal(Exception):
    """Ends the program with a code and one line."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


@dataclasses.dataclass(slots=True)
class Instruction:
    index: int        # in its kernel
    address: int      # bytes
    guard: str        # "@!P0", or nothing
    name: str         # "HMMA.16816.F32.BF16"
    operands: str
    label: str = ""   # that it refers to
    stall: int = 1    # cycles
    write_barrier: int = 7
    read_barrier: int = 7
    wait: int = 0     # bits
    goes_to: int = -1  # index of the label's instruction, if it is in this kernel

    @property
    def base(self):
        return self.name.split(".", 1)[0]

    @property
    def parts(self):
        return self.name.split(".")[1:]

    @property
    def never(self):
        """It issues and does nothing."""
        return self.guard in ("@!PT", "@!UPT")


@dataclasses.dataclass
class Kernel:
    name: str
    target: str
    registers: int
    code: list  # of Instruction


def field(word, where):
    first, width = where
    return word >> first & (1 << width) - 1


def set_control(i, word):
    i.stall, i.wait = field(word, STALL), field(word, WAIT)
    i.write_barrier, i.read_barrier = field(word, WRITE_BARRIER), field(word, READ_BARRIER)


def new_instruction(index, address, text):
    text, guard = text.strip("{} "), ""
    if text.startswith("@"):
        guard, text = text.split(None, 1)
    name, _, operands = text.partition(" ")
    refers = REFERENCE.search(operands)
    return Instruction(index, address, guard, name, operands.strip(), refers.group(1) if refers else "")


class Parser:
    """Reads a listing line by line."""

    def __init__(self):
        self.kernels, self.labels, self.target = {}, {}, ""
        self.kernel = self.last = None

    def section(self, name):
        self.labels = {}
        self.kernel = self.kernels[name] = Kernel(name, self.target, 0, [])

    def line(self, text):
        found = TARGET.match(text)
        if found:
            self.target = found.group(1)
        found = SECTION.match(text)
        if found:
            self.link()
            self.section(found.group(1))
        elif self.kernel:
            self.inside(text)

    def inside(self, text):
        first, label, registers = FIRST.match(text), LABEL.match(text), REGISTERS.search(text)
        if first:
            self.last = new_instruction(len(self.kernel.code), int(first.group(1), 16), first.group(2))
            self.kernel.code.append(self.last)
        elif label:
            self.labels[label.group(1)] = len(self.kernel.code)
        elif registers:
            self.kernel.registers = int(registers.group(1))
        elif self.last and SECOND.match(text):
            set_control(self.last, int(SECOND.match(text).group(1), 16))
            self.last = None

    def link(self):
        for i in self.kernel.code if self.kernel else ():
            i.goes_to = self.labels.get(i.label, -1)


def parse(text):
    """{name: Kernel} of what `nvdisasm -c -hex` printed."""
    parser = Parser()
    for line in text.splitlines():
        parser.line(line)
    parser.link()
    return parser.kernels


@functools.cache
def find_nvdisasm():
    made = subprocess.run([sys.executable, str(FINDER)], capture_output=True, text=True, check=False)
    if made.returncode:
        raise Fatal(made.returncode, made.stderr.strip().removeprefix("find_nvdisasm: "))
    return made.stdout.strip()


def disassemble(path):
    """{name: Kernel} of a cubin."""
    program = find_nvdisasm()
    made = subprocess.run([program, "-c", "-hex", str(path)], capture_output=True, text=True, check=False)
    if made.returncode:
        said = (made.stderr.strip().splitlines() or [f"exit status {made.returncode}"])[0]
        raise Fatal(2, f"{path}: nvdisasm does not take it: {said}")
    return parse(made.stdout)
