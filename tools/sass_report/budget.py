# SPDX-License-Identifier: Apache-2.0
"""Most issue slots per score entry that kernels may take: lines of kernel, target, dtype, D, and the slots of
whole and of partial groups."""
import dataclasses
import pathlib

from disassembly import Fatal

SLACK = 0.0005  # the file has three digits
KINDS = {"slots_per_entry": "whole", "partial_per_entry": "partial"}


@dataclasses.dataclass
class Line:
    number: int
    kernel: str
    target: str
    dtype: str
    head_dim: int
    most: dict  # of a kernel's summary

    def is_for(self, kernel):
        return ((self.kernel, self.target, self.head_dim) == (kernel["kernel"], kernel["target"], kernel["head_dim"])
                and kernel["dtype"] in ("", self.dtype))


def line_of(path, number, text):
    words = text.split()
    try:
        kernel, target, dtype, head_dim, *most = words
        most = dict(zip(KINDS, map(float, most), strict=True))
        return Line(number, kernel, target, dtype, int(head_dim), most)
    except ValueError:
        raise Fatal(2, f"{path}:{number}: expected kernel, target, dtype, D, slots of whole, of partial groups") from None


def read(path):
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise Fatal(2, f"{path}: {getattr(e, 'strerror', None) or 'not text'}") from None
    lines = [(k, x.split("#", 1)[0].strip()) for k, x in enumerate(text.splitlines(), 1)]
    return [line_of(path, k, x) for k, x in lines if x]


def overruns(line, kernel):
    found = kernel["summary"]
    where = f"{line.kernel} {line.target} {line.dtype} D={line.head_dim}"
    if not found:
        return [f"{where}: no main loop was found"]
    return [f"{where}: {found[key]:.3f} slots per entry of {KINDS[key]} groups, at most {most:g}"
            for key, most in line.most.items() if found[key] > most + SLACK]


def check(lines, kernels):
    """(lines of the budget that were compared, what to say of each overrun)."""
    pairs = [(line, kernel) for line in lines for kernel in kernels if line.is_for(kernel)]
    return len(pairs), [said for line, kernel in pairs for said in overruns(line, kernel)]
