# SPDX-License-Identifier: Apache-2.0
"""The masks of the rows as files in DIR/masks, made by maskc from the mask language, from P or from a run."""
import hashlib
import math
import random

import arrays


class Masks:
    def __init__(self, programs, settings):
        self.programs, self.s = programs, settings
        self.folder = settings.folder / "masks"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.shape = (settings.heads, settings.length, settings.length)

    def run(self, name):
        return self.s.folder / "runs" / name

    def importance(self):
        """P of the first seed: sigmoid(alpha), float32 [H,n,n]."""
        path = self.folder / "P.npy"
        if not path.exists():
            shape, alpha = arrays.read_safetensors(self.run("p-0") / "alpha.safetensors", "alpha")
            arrays.write_npy(path, "<f4", shape, [1 / (1 + math.exp(-a)) for a in alpha])
        return path

    def file(self, row):
        """The row's mask, with the diagonal taken out by the mask language where the row says so."""
        path = self.folder / f"{row.key}.npy"
        base = path if row.diagonal else self.folder / f"{row.key}.all.npy"
        if not base.exists():
            self.make(row, base)
        return base if row.diagonal else self.without_diagonal(base, path.with_suffix(".mask"))

    def digest(self, row):
        """Hash of the entries: rows with the same hash have the same mask."""
        base = self.file(row) if row.diagonal else self.folder / f"{row.key}.all.npy"
        values = bytearray(arrays.read_npy(base)[1].tobytes())
        size = self.s.length**2
        if not row.diagonal:
            for k in range(0, len(values), size):
                values[k:k + size:self.s.length + 1] = bytes(self.s.length)
        return hashlib.sha256(values).hexdigest()[:16]

    def without_diagonal(self, base, path):
        lines = [f'head {h}: file("{base.name}", head={h}) - diagonal(0)' for h in range(self.s.heads)]
        path.write_text("\n".join([f"length {self.s.length}", f"heads {self.s.heads}", *lines]) + "\n", encoding="utf-8")
        return path

    def make(self, row, path):
        kind, _, value = row.source.partition(":")
        makers = {"drop": self.dropped, "keep": self.kept, "random": self.sparse, "run": self.learned, "like": self.alike,
                  "snap": self.snapped, "equal": self.equal}
        if kind in makers:
            makers[kind](row, value, path)
        else:
            self.state(row.source, path)

    def state(self, mask, path, *more):
        """Any MASK as a dense array for all heads."""
        self.programs.run("maskc", "make", mask, "-n", self.s.length, "--heads", self.s.heads, *more, "-o", path)

    def keep(self, row, mask):
        """A mask that a run has made, which goes with its folder."""
        path = self.folder / f"{row.key}.npy"
        self.state(mask, path)
        return path

    def learned(self, _row, name, path):
        self.state(next(self.run(name).glob("mask.*")), path)

    def kept(self, _row, percent, path):
        self.programs.run("maskc", "make", self.importance(), "--keep", 100 - int(percent), "-o", path)

    # ---- random ones
    def write_random(self, counts, seed, path):
        """So many entries of each head, drawn anew for each."""
        size = self.s.length**2
        values = bytearray()
        for head, count in enumerate(counts):
            draw = random.Random(f"{seed} {head} {count}")
            one = bytearray(size)
            for k in draw.sample(range(size), count):
                one[k] = 1
            values += one
        arrays.write_npy(path, "|b1", self.shape, values)

    def dropped(self, row, _value, path):
        """As many entries as the diagonal has, at random places, of each head."""
        size = self.s.length**2
        self.write_random([size - self.s.length] * self.s.heads, self.s.seed + row.seed, path)

    def sparse(self, row, percent, path):
        size = self.s.length**2
        self.write_random([size - size * int(percent) // 100] * self.s.heads, self.s.seed + row.seed, path)

    def alike(self, row, name, path):
        """As many entries in each head as a learned mask has."""
        base = self.folder / f"{name}.npy"
        if not base.exists():
            self.learned(row, name, base)
        self.write_random(counts(base, self.s.heads), self.s.seed + row.seed, path)

    # ---- by predicted time
    def plan_options(self):
        threads = ["--threads", self.s.threads] if self.s.threads else []
        return ["--dtype", self.s.dtype, "--head-dim", self.s.head_dim, "--batch", self.s.batch, *threads]

    def snapped(self, _row, share, path):
        self.programs.run("maskc", "snap", self.importance(), "--budget", share, "--objective", "training", *self.plan_options(), "-o", path)

    def share(self, percent):
        """Ratio to dense's predicted time, forward and backward, where this percentage of P is kept."""
        found = self.programs.json("maskc", "plan", self.importance(), "--keep", percent, *self.plan_options())["masks"]
        return sum(m["predicted_s"] for m in found) / sum(m["dense_predicted_s"] for m in found)

    def equal(self, _row, share, path):
        """The largest threshold mask of P within the same predicted time, to a quarter of a percent of the entries."""
        low, high = 0.25, 100.0
        while high - low > 0.25:
            middle = (low + high) / 2
            low, high = (middle, high) if self.share(middle) <= float(share) else (low, middle)
        self.programs.run("maskc", "make", self.importance(), "--keep", low, "-o", path)


def counts(path, heads):
    """Active entries of each head."""
    _, values = arrays.read_npy(path)
    size = len(values) // heads
    return [sum(values[h * size:(h + 1) * size]) for h in range(heads)]
