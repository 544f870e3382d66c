# SPDX-License-Identifier: Apache-2.0
"""The rows of a comparison: a mask, with the diagonal or without, a transform, a start. Masks become .npy files in DIR/masks."""
import dataclasses
import hashlib
import pathlib
import random
import re

import arrays
from programs import Fatal

HEADS = 12  # that the papers' shares of heads are of


@dataclasses.dataclass(frozen=True)
class Variant:
    """mask: dense, a gallery name, blocks:K:A:B.., random:PERCENT, like:MASK (as many entries in each head), file:PATH, keep:PERCENT:PATH (the most of P)."""
    name: str
    group: str
    mask: str = "dense"
    diagonal: bool = True
    transform: str = ""
    start: str = "model"
    digest: str = ""  # of a file that is not made in DIR: another one is another cell

    @property
    def label(self):
        return self.name if self.diagonal else f"{self.name} - diagonal(0)"

    @property
    def key(self):
        return re.sub(r"[^A-Za-z0-9.=-]", "_", self.name) + (f"-{self.digest}" if self.digest else "") + ("" if self.diagonal else "-off")


def without(variants):
    return [dataclasses.replace(v, diagonal=False) for v in variants]


def shares(heads, parts):
    """Number of a model's heads with each shift, nearest to the parts of 12 and at least one where a part is not 0; None where heads are too few."""
    shifted = [max(1, round(heads * p / sum(parts))) if p else 0 for p in parts[1:]]
    first = heads - sum(shifted)
    return [first, *shifted] if first >= 1 else None


def blocks(count, parts, heads):
    """A row of BlockBERT; its name says the model's shares where they are not the paper's."""
    found, asked = shares(heads, parts), ":".join(map(str, parts))
    if not found:
        return None
    mine = ":".join(map(str, found))
    return Variant(f"blockbert-{count} {asked}" + (f" (here {mine})" if mine != asked else ""), "blocks", f"blocks:{count}:{mine}")


def blocks_text(count, found, n):
    lines, first = [f"length {n}", f"heads {sum(found)}"], 0
    for shift, heads in enumerate(found):
        if heads:
            lines.append(f"head {first}-{first + heads - 1}: blocks({count}, shift={shift})")
        first += heads
    return "\n".join(lines) + "\n"


def digest_of(path):
    """Hash of a mask's file; empty where none is there."""
    path = pathlib.Path(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def is_drawn(mask):
    """Is it another mask for another seed?"""
    return mask.startswith(("random:", "like:"))


def counts(path, heads):
    _, values = arrays.read_npy(path)
    size = len(values) // heads
    return [sum(values[h * size:(h + 1) * size]) for h in range(heads)]


class Masks:
    def __init__(self, programs, folder, heads):
        self.programs, self.folder, self.heads = programs, folder, heads
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, mask, n, seed):
        """The file of a mask at length n."""
        name = re.sub(r"[^A-Za-z0-9.-]", "_", mask.rpartition("/")[2] if "/" in mask else mask)
        kind = mask.partition(":")[0] if "/" in mask else ""
        percent = mask.split(":")[1] if kind == "keep" else ""
        parent = mask.split("/")[-2] if "/" in mask else ""
        content = digest_of(mask[mask.index("/"):]) if "/" in mask else ""
        return self.folder / ("-".join(filter(None, (kind, percent, parent, name, content, f"n{n}", f"seed{seed}" if is_drawn(mask) else ""))) + ".npy")

    def file(self, mask, n, seed=0):
        path = self.path(mask, n, seed)
        if not path.exists():
            self.make(mask, n, seed, path)
        return path

    def make(self, mask, n, seed, path):
        kind, _, value = mask.partition(":")
        if kind == "random":
            return self.write_random([n * n - n * n * int(value) // 100] * self.heads, n, seed, path)
        if kind == "like":
            return self.write_random(counts(self.file(value, n), self.heads), n, seed, path)
        if kind == "keep":
            percent, _, source = value.partition(":")
            return self.programs.run("maskc", "make", source, "--keep", percent, "-o", path)
        if kind == "blocks":
            count, *found = map(int, value.split(":"))
            text = path.with_suffix(".mask")
            text.write_text(blocks_text(count, found, n), encoding="utf-8")
            value = text
        return self.programs.run("maskc", "make", value or mask, "-n", n, "--heads", self.heads, "-o", path)

    def write_random(self, each, n, seed, path):
        """So many entries of each head, drawn anew for each."""
        values = bytearray()
        for head, count in enumerate(each):
            one = bytearray(n * n)
            for k in random.Random(f"{seed} {head} {count}").sample(range(n * n), count):
                one[k] = 1
            values += one
        arrays.write_npy(path, "|b1", (self.heads, n, n), values)

    def sparsity(self, variant, n, seed=0):
        """Percent of the entries that are off, mean of the heads."""
        if variant.mask == "dense":
            return 0.0 if variant.diagonal else 100 / n
        _, values = arrays.read_npy(self.file(variant.mask, n, seed))
        active = sum(values)
        if not variant.diagonal:
            active -= sum(sum(values[h * n * n:(h + 1) * n * n:n + 1]) for h in range(self.heads))
        return 100 * (1 - active / (self.heads * n * n))


def check_learned(path, programs, n, heads):
    """A learned mask must serve the comparison's length and the model's heads."""
    try:
        shown = programs.json("maskc", "show", path, "-n", n)
    except Fatal as e:
        raise Fatal(2, f"--learned {path}: no mask of length {n}: {e}") from None
    if shown["heads"] not in (1, heads) or shown["layers"] != 1:
        raise Fatal(2, f"--learned {path}: a mask of {heads} heads for all layers is expected, not of {shown['heads']} heads and {shown['layers']} layers")
