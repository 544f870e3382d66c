# SPDX-License-Identifier: Apache-2.0
"""Runs: a mask as the runs of keys that each query sees, for lengths at which n x n bytes are too many."""
import os

from ._library import Error
from .arguments import count_of

PIECE = 1 << 16  # entries that are looked at together: they and what is made of them stay in the cache
MOST_PART = 1 << 22  # entries of an array that are made together
MOST_FILE = 1 << 33  # bytes of a file for the program
MOST_ARRAY = 4096  # tokens; up to here from_flex() gives an array


def whole(name, values, dtype):
    """A contiguous array of whole numbers, none of which the dtype cuts."""
    import numpy
    array, limits = numpy.asarray(values), numpy.iinfo(dtype)
    if array.size and array.dtype.kind not in "iu":
        raise Error(2, f"{name}: {array.dtype}; whole numbers are expected")
    if array.size and not (limits.min <= int(array.min()) and int(array.max()) <= limits.max):
        raise Error(2, f"{name}: a number that is not in {limits.min}..{limits.max}")
    return numpy.ascontiguousarray(array, dtype)


class Runs:
    """A mask [layers, heads, n, n] as maskc_compile_runs takes it, and compile() and apply() do too. numpy.asarray makes the
    bool array of it.

    rows: uint64 [layers * heads * n + 1]; row r = (layer * heads + head) * n + query sees the keys runs[k, 0] .. runs[k, 1] - 1 for
        rows[r] <= k < rows[r + 1].
    runs: int32 [rows[-1], 2].
    """

    def __init__(self, shape, rows, runs):
        import numpy
        self.shape = tuple(count_of("shape", size) for size in shape)
        self.rows = whole("rows", rows, numpy.uint64).reshape(-1)
        self.runs = whole("runs", runs, numpy.int32)
        if self.runs.size % 2:
            raise Error(2, f"runs: shape {list(self.runs.shape)}; [rows[-1], 2] is expected")
        self.runs = self.runs.reshape(-1, 2)
        if len(self.shape) != 4 or self.shape[2] != self.shape[3]:
            raise Error(2, f"mask: shape {list(self.shape)}; [layers, heads, n, n] is expected")
        if len(self.rows) != self.shape[0] * self.shape[1] * self.shape[2] + 1 or self.rows[-1] != len(self.runs):
            raise Error(2, f"mask: {len(self.rows)} rows of {len(self.runs)} runs do not fit the shape {list(self.shape)}")

    def __repr__(self):
        return f"maskc.Runs({list(self.shape)}, {len(self.runs)} runs)"

    @property
    def ndim(self):
        return 4

    def part(self, begin, end):
        """Rows begin .. end - 1 of all layers, heads and queries: bool [end - begin, n]."""
        import numpy
        at = self.rows[begin:end + 1].astype(numpy.int64)
        edges, runs = numpy.zeros((end - begin, self.shape[3] + 1), numpy.int8), self.runs[at[0]:at[-1]]  # runs of a row may touch: then an edge is none
        row = numpy.repeat(numpy.arange(end - begin), numpy.diff(at))
        numpy.add.at(edges, (row, runs[:, 0]), 1)
        numpy.add.at(edges, (row, runs[:, 1]), -1)
        return numpy.cumsum(edges[:, :-1], 1, numpy.int8).astype(bool)

    def fill(self, bits):
        """bits: where the array of all rows goes."""
        n = self.shape[3]
        for begin in range(0, len(bits), -(-MOST_PART // n)):
            end = min(begin - (-MOST_PART // n), len(bits))
            bits[begin:end] = self.part(begin, end)

    def __array__(self, dtype=None, copy=None):
        import numpy
        bits = numpy.empty((len(self.rows) - 1, self.shape[3]), bool)
        self.fill(bits)
        return bits.reshape(self.shape).astype(dtype or bool, copy=False)

    def save(self, folder):
        """Returns the path of a file in the folder that the program reads: the entries of one head as scipy.sparse.save_npz stores them, or
        an array, whichever is shorter."""
        import numpy
        lengths = self.runs[:, 1] - self.runs[:, 0].astype(numpy.int64)
        layers, heads, n, _ = self.shape
        if lengths.size and (lengths.min() <= 0 or self.runs.min() < 0 or self.runs.max() > n):
            raise Error(2, "runs: a run has no key, or is outside of the keys 0..n - 1")
        dense, stored = layers * heads * n * n, 5 * int(lengths.sum()) + 8 * n
        sparse = layers * heads == 1 and stored < dense
        if (stored if sparse else dense) > MOST_FILE:
            raise Error(2, f"mask: shape {list(self.shape)} is too large for plan() and show(), which accept {MOST_FILE} entries, or "
                           f"{MOST_FILE // 5} active ones of one head; compile() accepts it, and Kernel.plan is its plan")
        if not sparse:
            path = os.path.join(folder, "mask.npy")
            self.fill(numpy.lib.format.open_memmap(path, "w+", bool, self.shape).reshape(-1, n))
            return path
        path, ends = os.path.join(folder, "mask.npz"), numpy.concatenate(([0], numpy.cumsum(lengths)))
        keys = numpy.arange(ends[-1], dtype=numpy.int64 if ends[-1] >> 31 else numpy.int32)
        keys += numpy.repeat((self.runs[:, 0] - ends[:-1]).astype(keys.dtype), lengths)
        numpy.savez(path, format=b"csr", shape=[n, n], indptr=ends[self.rows.astype(numpy.int64)], indices=keys, data=numpy.ones(len(keys), bool))
        return path


class Builder:
    """Rows of bits, in order, become Runs."""

    def __init__(self):
        self.counts, self.runs = [], []

    def add(self, bits):
        """bits: numpy bool [rows, n]."""
        import numpy
        rows, n = bits.shape
        padded = numpy.zeros((rows, n + 2), bool)
        padded[:, 1:-1] = bits
        at = numpy.flatnonzero(padded[:, 1:] != padded[:, :-1])  # a run's begin and its end, alternately
        self.counts.append(numpy.bincount(at[::2] // (n + 1), minlength=rows))
        self.runs.append((at % (n + 1)).astype(numpy.int32))

    def finish(self, shape):
        import numpy
        rows = numpy.zeros(shape[0] * shape[1] * shape[2] + 1, numpy.uint64)
        numpy.cumsum(numpy.concatenate(self.counts), out=rows[1:])
        return Runs(shape, rows, numpy.concatenate(self.runs))


def rows_together(n):
    return max(1, PIECE // n)


def from_array(array):
    """Makes runs from a numpy bool array [L, H, n, n], in pieces."""
    build, n = Builder(), array.shape[-1]
    for layer in array:
        for head in layer:
            for begin in range(0, n, rows_together(n)):
                build.add(head[begin:begin + rows_together(n)])
    return build.finish(array.shape)


def from_sparse(matrix):
    """Makes runs from a square matrix of scipy.sparse; stored zeros are off."""
    import numpy
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise Error(2, f"mask: shape {list(matrix.shape)}; a square matrix [n, n] is expected")
    if hasattr(matrix, "check_format"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as e:
            raise Error(2, f"mask: a sparse matrix that is not valid: {e}".split("\n", 1)[0]) from None
    csr = matrix.tocsr(copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    key, at = csr.indices.astype(numpy.int64), csr.indptr.astype(numpy.int64)
    begins = numpy.ones(len(key) + 1, bool)  # of entry k: a run begins with it; the last is no entry
    begins[1:-1] = key[1:] != key[:-1] + 1
    begins[at] = True
    rows = numpy.concatenate(([0], numpy.cumsum(begins[:-1])))[at]
    runs = numpy.stack((key[begins[:-1]], key[begins[1:]] + 1), 1)
    return Runs((1, 1, *matrix.shape), rows, runs)


def from_blocks(blocks, size):
    """Makes runs from a bool array [L, H, n / size, n / size] whose entries are blocks of size x
    size tokens."""
    import numpy
    coarse = from_array(blocks)
    layers, heads, n = *blocks.shape[:2], blocks.shape[-1] * size
    counts = numpy.diff(coarse.rows.astype(numpy.int64))
    rows = numpy.zeros(layers * heads * n + 1, numpy.uint64)
    numpy.cumsum(counts.repeat(size), out=rows[1:])
    pieces = [numpy.tile(piece, (size, 1)) for piece in numpy.split(coarse.runs * size, coarse.rows[1:-1].astype(numpy.int64))]
    return Runs((layers, heads, n, n), rows, numpy.concatenate(pieces))
