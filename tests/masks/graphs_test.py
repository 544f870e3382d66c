#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are sparse matrices, handed over or saved by scipy, compiled as the entries that they store?"""
import pathlib
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "python")]
from common import Case, cmocka_count, has  # noqa: E402
import maskc  # noqa: E402

if has("scipy"):
    import numpy
    import scipy.sparse


@unittest.skipUnless(has("scipy"), "no scipy")
class SparseTest(Case):
    def matrices(self, count):
        random = numpy.random.default_rng(5)
        for k in range(count):
            n = int(random.integers(1, 40))
            stored = int(random.integers(0, n * n + 1))
            at = random.integers(0, n, (2, stored))
            value = random.integers(-1, 2, stored).astype(("f4", "i8", "c16", "f8")[k % 4])
            made = scipy.sparse.coo_matrix((value, at), (n, n))  # entries occur twice; some cancel
            yield getattr(made, ("tocsr", "tocsc", "tocoo", "tobsr", "tolil", "todok")[k % 6])(), made.toarray() != 0

    def test_matrices_are_their_entries(self):
        for matrix, dense in self.matrices(36):
            made = maskc.masks.mask_argument(matrix)[1]
            self.assertTrue((numpy.asarray(made)[0, 0] == dense).all())

    def test_files_are_their_entries(self):
        for k, (matrix, dense) in enumerate(self.matrices(24)):
            if matrix.format in ("lil", "dok"):
                continue
            if matrix.format == "coo":
                matrix.sum_duplicates()
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "m.npz"
                scipy.sparse.save_npz(path, matrix, compressed=bool(k % 4))
                made = maskc.kernel.read_mask(str(path)).reshape(dense.shape)
            self.assertTrue((made == dense).all(), matrix.format)

    def test_compiles(self):
        ring = scipy.sparse.csr_array(numpy.roll(numpy.eye(30, dtype=bool), 1, 1))
        kernel = maskc.compile(ring, heads=2, head_dim=16)
        self.assertTrue((kernel.mask == ring.toarray()).all())
        self.assertEqual((kernel.length, kernel.heads), (30, 2))

    def test_wrong_input_is_one_line(self):
        self.refused("square", maskc.compile, scipy.sparse.eye(3, 4))
        if has("torch"):
            import torch
            self.refused("sparse", maskc.compile, torch.eye(4).to_sparse())
        self.refused("lengths=", maskc.compile, numpy.ones((2, 1, 1, 4, 4), bool))


if __name__ == "__main__":
    cmocka_count.run_cases()
