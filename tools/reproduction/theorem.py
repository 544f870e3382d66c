# SPDX-License-Identifier: Apache-2.0
"""Contextual mapping without the diagonal (SparseBERT, Shi et al. 2021, 3.2 and appendix A), computed by our own kernels.

The paper's construction for d = 1: sequences of n distinct values of the grid 0, delta, .., 1 - delta. Each layer has two heads
of size 1 that see all tokens except their own; as the scores grow their softmax takes the largest or the smallest key:

    head(b)_i  = max_{j != i} Z_j where Z_i > b, min_{j != i} Z_j where Z_i < b          scores (Z_i - b) Z_j, values Z_j
    selective:   Z_i += 1/delta (head(l - delta/2)_i - head(l + delta/2)_i)              for l = 0, delta, .., in this order
    global:      Z_i += Delta max_{j != i} Z_j                                          scores Z_j, twice

After that tokens differ, and the values of different sequences lie in disjoint intervals: what universal approximation needs of
attention. Everything is in units of delta, so that all numbers are whole: each head's output is held to the exact one, with
no tolerance. Kernels take head dims from 16: dims 1 to 15 are zeros, the scale is given."""
import dataclasses
import itertools
import pathlib
import tempfile

import arrays

HEAD_DIM = 16
EXACT = 2**24  # whole numbers up to here are exact in float32
MASK = "dense - diagonal(0)"


@dataclasses.dataclass
class Case:
    n: int
    grid: int  # 1/delta

    @property
    def sequences(self):
        return [list(s) for s in itertools.permutations(range(self.grid), self.n)]

    @property
    def paper_shift(self):
        """Delta, the paper's for n = 3: (1/delta - 1)(delta^-n + 1/delta + 1)."""
        return (self.grid - 1) * (self.grid**self.n + self.grid + 1)


CASES = (Case(3, 3), Case(3, 4), Case(3, 5), Case(4, 4), Case(4, 5), Case(5, 5))
FAILS = Case(2, 3)


class Kernels:
    """The two heads of a layer, by maskc run on a kernel compiled for the mask."""

    def __init__(self, programs, mask, scale, folder):
        self.programs, self.mask, self.scale, self.folder = programs, mask, scale, pathlib.Path(folder)

    def compile(self, n):
        self.programs.run("maskc", "compile", self.mask, "-n", n, "--heads", 2, "--head-dim", HEAD_DIM, "--dtype", "f32",
                          "--forward-only", "-o", self.folder / "heads.mkb")

    def heads(self, queries, keys):
        """queries: two for each token of each sequence; keys: one for each, which are the values too. Two outputs a token."""
        shape = (len(keys), len(keys[0]), 2, HEAD_DIM)
        zeros = [0.0] * (HEAD_DIM - 1)
        padded = [x for row in queries for pair in row for q in pair for x in (q, *zeros)]
        both = [x for row in keys for z in row for x in (z, *zeros, z, *zeros)]
        assert max(map(abs, padded)) < EXACT and max(map(abs, both)) <= EXACT, "a number that float32 does not hold"
        arrays.write_npy(self.folder / "q.npy", "<f4", shape, padded)
        arrays.write_npy(self.folder / "k.npy", "<f4", shape, both)
        files = [f"--{name}={self.folder / file}.npy" for name, file in (("query", "q"), ("key", "k"), ("value", "k"))]
        self.programs.run("maskc", "run", self.folder / "heads.mkb", *files, f"--scale={self.scale}", "-o", self.folder / "out")
        out = arrays.read_npy(self.folder / "out/out.npy")[1][::HEAD_DIM]
        n = shape[1]
        return [[(out[2 * (s * n + i)], out[2 * (s * n + i) + 1]) for i in range(n)] for s in range(shape[0])]


def exact_heads(queries, keys):
    """The same in whole numbers: the other token's value with the largest score."""
    def pick(s, i, q):
        others = [z for j, z in enumerate(keys[s]) if j != i]
        return max(others) if q > 0 else min(others)
    return [[tuple(pick(s, i, q) for q in pair) for i, pair in enumerate(row)] for s, row in enumerate(queries)]


def shift(case, sequences):
    """Delta of the two global shifts: the paper's, or the largest power of two whose sums float32 holds."""
    top = max(max(s) for s in sequences)
    delta = case.paper_shift
    return delta if top * (delta + 1) < EXACT else 1 << ((EXACT // top - 1).bit_length() - 1)


class Checker:
    """Runs a construction and counts heads that are not the exact ones."""

    def __init__(self, heads):
        self.heads, self.compared, self.wrong = heads, 0, 0

    def layer(self, queries, keys):
        """Outputs of the kernels, checked, as whole numbers; wrong ones are replaced, so that the rest can be judged."""
        found, exact = self.heads(queries, keys), exact_heads(queries, keys)
        for row, right in zip(found, exact):
            for pair, truth in zip(row, right):
                self.compared += 2
                self.wrong += sum(not a == b for a, b in zip(pair, truth))
        return exact

    def run(self, case):
        """The values before the global shifts, after them, and Delta."""
        values = case.sequences
        for level in range(case.grid):
            out = self.layer([[(z - level + 0.5, z - level - 0.5) for z in s] for s in values], values)
            values = [[z + case.grid * (int(a) - int(b)) for z, (a, b) in zip(s, o)] for s, o in zip(values, out)]
        selected, delta = values, shift(case, values)
        for _ in range(2):
            out = self.layer([[(1.0, 1.0)] * case.n for _ in values], values)
            values = [[z + delta * int(a) for z, (a, _) in zip(s, o)] for s, o in zip(values, out)]
        return selected, values, delta


def faults(case, selected, final):
    """Reasons why the result is not a contextual mapping, as text."""
    found = []
    ordered = [[row[i] for i in sorted(range(case.n), key=s.__getitem__)] for s, row in zip(case.sequences, selected)]
    if not all(0 < r[0] and all(a < b for a, b in zip(r, r[1:])) and r[-1] < case.grid**(case.n + 1) for r in ordered):
        found.append("shifted values do not rise within (0, delta^-n)")
    if not all(len(set(row)) == case.n for row in final):
        found.append("tokens of a sequence have equal values")
    spans, owners = {}, {}
    for s, row in zip(case.sequences, final):
        spans.setdefault(frozenset(s), set()).update(row)
    for span in spans.values():
        for value in span:
            owners[value] = owners.get(value, 0) + 1
    collisions = sum(count > 1 for count in owners.values())
    if collisions:
        found.append(f"{collisions} value{'s' * (collisions > 1)} of more than one sequence")
    ends = sorted((min(span), max(span)) for span in spans.values())
    if any(a[1] >= b[0] for a, b in zip(ends, ends[1:])):
        found.append("intervals of different sequences overlap")
    return found


def check_case(programs, case, mask, scale, print_line):
    """Is it a contextual mapping, computed by kernels without an error?"""
    with tempfile.TemporaryDirectory() as folder:
        kernels = Kernels(programs, mask, scale, folder)
        kernels.compile(case.n)
        checker = Checker(kernels.heads)
        selected, final, delta = checker.run(case)
    found = faults(case, selected, final)
    shown = f"n={case.n} 1/delta={case.grid}: {len(selected)} sequences, {case.grid + 2} layers, "
    shown += f"{checker.compared - checker.wrong} of {checker.compared} head outputs exact, "
    shown += f"Delta {delta}{'' if delta == case.paper_shift else ' (the paper has ' + str(case.paper_shift) + ')'}: "
    print_line(shown + ("a contextual mapping" if not found else "no contextual mapping: " + "; ".join(found)))
    return not checker.wrong, not found


def check(programs, mask=MASK, scale=1000, cases=CASES, print_line=print):
    """Prints a line for each case; does the theorem hold?"""
    print_line(f"mask '{mask}', scale {scale:g}, f32, head dim {HEAD_DIM} of which one is used; in units of delta")
    results = [check_case(programs, case, mask, scale, print_line) for case in cases]
    right, maps = check_case(programs, FAILS, mask, scale, print_line)
    print_line("n=2 fails as it must: the other token is both the largest and the smallest" if not maps else "n=2 should fail, and did not")
    holds = right and not maps and all(a and b for a, b in results)
    print_line("the theorem's construction holds" if holds else "it does not hold")
    return holds
