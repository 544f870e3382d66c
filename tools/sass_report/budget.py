# SPDX-License-Identifier: Apache-2.0
"""Most issue slots per score entry that kernels may take: lines of kernel, target, dtype, D, slots."""
import dataclasses
import pathlib

from disassembly import Fatal

SLACK = 0.0005  # the file has three digits


@dataclasses.dataclass
class Line:
    number: int
    kernel: str
    target: str
    dtype: str
    head_dim: int
    most: float

    def is_for(self, kernel):
        return ((self.kernel, self.target, self.head_dim) == (kernel["kernel"], kernel["target"], kernel["head_dim"])
                and kernel["dtype"] in ("", self.dtype))


def line_of(path, number, text):
    words = text.split()
    try:
        kernel, target, dtype, head_dim, most = words
        return Line(number, kernel, target, dtype, int(head_dim), float(most))
    except ValueError:
        raise Fatal(2, f"{path}:{number}: expected kernel, target, dtype, head dimension, slots per entry") from None


def read(path):
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise Fatal(2, f"{path}: {getattr(e, 'strerror', None) or 'not text'}") from None
    lines = [(k, x.split("#", 1)[0].strip()) for k, x in enumerate(text.splitlines(), 1)]
    return [line_of(path, k, x) for k, x in lines if x]


def check(lines, kernels):
    """(lines of the budget that were compared, what to say of each overrun)."""
    compared, said = 0, []
    for line in lines:
        for kernel in filter(line.is_for, kernels):
            found = (kernel["together"] or {}).get("slots_per_entry")
            compared += 1
            if found is None or found > line.most + SLACK:
                slots = "no main loop" if found is None else f"{found:.3f} slots per entry"
                said.append(f"{line.kernel} {line.target} {line.dtype} D={line.head_dim}: {slots}, at most {line.most:g}")
    return compared, said
