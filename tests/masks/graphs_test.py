#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are sparse matrices, handed over or saved by scipy, compiled as the entries that they store? Does `maskc order` find a faster
order, and is attention with a kernel of `compile --order` that of the mask in the order of tokens, forward and every gradient?"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "python")]
from common import Case, cmocka_count, has, has_operator  # noqa: E402
import maskc  # noqa: E402

if has("numpy"):
    import numpy
if has("scipy"):
    import scipy.sparse
run = maskc.kernel.run_program


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
        matrix = scipy.sparse.csr_array(numpy.eye(40, dtype=bool))
        self.refused("mask in memory: n=50 is larger", maskc.compile, matrix, n=50)
        self.refused("a sparse matrix is the mask of one head, ", maskc.compile, [matrix, matrix])
        matrix.indices[7] = 77
        self.refused("a sparse matrix that is not valid", maskc.compile, matrix)
        if has("torch"):
            import torch
            self.refused("mask: a sparse_coo tensor; a dense one is expected, as .to_dense() gives, or a matrix of scipy.sparse", maskc.compile, torch.eye(4).to_sparse())
        self.refused("lengths=", maskc.compile, numpy.ones((2, 1, 1, 4, 4), bool))


@unittest.skipUnless(has("numpy"), "no numpy")
class OrderTest(Case):
    @classmethod
    def setUpClass(cls):
        """A grid of 12 x 12 cells and their 3 x 3 windows, shuffled."""
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.shuffle = numpy.random.default_rng(7).permutation(144)
        run("make", "neighborhood(12,12,3,3)", "-n", "144", "-o", str(cls.path / "grid.npy"))
        cls.grid = numpy.load(cls.path / "grid.npy").reshape(144, 144) != 0
        cls.mask = cls.grid[cls.shuffle][:, cls.shuffle]
        numpy.save(cls.path / "mask.npy", cls.mask)
        numpy.save(cls.path / "cells.npy", numpy.stack(numpy.divmod(cls.shuffle, 12), 1))
        cls.report = json.loads(run("order", str(cls.path / "mask.npy"), "--coordinates", str(cls.path / "cells.npy"), "--json",
                                    "-o", str(cls.path / "order.npy")))
        cls.order = numpy.load(cls.path / "order.npy")
        for name, options in (("plain", []), ("bias", ["--soft", "bias"])):
            run("compile", str(cls.path / "mask.npy"), "--order", str(cls.path / "order.npy"), "--heads", "2", "--head-dim", "16", *options,
                "-o", str(cls.path / (name + ".mkb")))
        cls.kernel = maskc.load(cls.path / "plain.mkb")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_order_is_faster(self):
        self.assertEqual((self.order.dtype, sorted(self.order)), (numpy.int64, list(range(144))))
        self.assertLess(self.report["after"]["predicted_s"], self.report["before"]["predicted_s"])
        self.assertEqual([c["method"] for c in self.report["candidates"]], ["none", "curve", "rcm", "bisection"])
        self.assertEqual(self.report["after"]["predicted_s"], min(c["predicted_s"] for c in self.report["candidates"]))

    def test_make_permutes(self):
        run("make", str(self.path / "mask.npy"), "--order", str(self.path / "order.npy"), "-o", str(self.path / "made.npy"))
        made = numpy.load(self.path / "made.npy").reshape(144, 144) != 0
        self.assertTrue((made == self.mask[self.order][:, self.order]).all())

    def test_kernel_file_keeps_the_order(self):
        self.assertTrue((self.kernel.order == self.order).all())
        self.assertTrue((self.kernel.mask == self.mask).all())
        self.assertIs(json.loads(run("info", str(self.path / "plain.mkb"), "--json"))["order"], True)
        self.assertIsNone(maskc.compile("window(3)", n=40, head_dim=16).order)
        self.assertIn("hold", run("verify", str(self.path / "plain.mkb")))

    def test_the_order_of_a_kernel_file_is_not_taken_over(self):
        for options, noted in ((["--order", str(self.path / "order.npy")], False), ([], True)):
            done = subprocess.run([maskc._library.program_path(), "plan", str(self.path / "plain.mkb"), *options], capture_output=True, text=True,
                                  check=True)
            self.assertEqual(re.findall("order of this kernel is not taken over.*--order", done.stderr) != [], noted)
            self.assertEqual(done.stderr.count("\n"), noted)

    def reference(self, q, k, v, x=0):
        s = numpy.where(self.mask, q.astype(float) @ k.astype(float).swapaxes(-1, -2) / 4 + x, -numpy.inf)
        p = numpy.exp(s - s.max(-1, keepdims=True))
        return (p / p.sum(-1, keepdims=True)) @ v.astype(float), numpy.log(p.sum(-1)) + s.max(-1)

    def arrays(self):
        random = numpy.random.default_rng(9)
        return [random.standard_normal((2, 2, 144, 16)).astype("f4") for _ in range(4)] + [random.standard_normal((2, 144, 144)).astype("f4")]

    def close(self, a, b):
        self.assertLess(numpy.linalg.norm(a - b) / numpy.linalg.norm(b), 1e-5)

    def test_attention_on_arrays(self):
        q, k, v, _, x = self.arrays()
        for kernel, bias in ((self.kernel, None), (maskc.load(self.path / "bias.mkb"), x)):
            made = maskc.attention(q, k, v, kernel, bias=bias, return_lse=True)
            for a, b in zip(made, self.reference(q, k, v, 0 if bias is None else x)):
                self.close(a, b)
            self.assertTrue((maskc.attention(q, k, v, kernel, bias=bias) == made[0]).all())

    @unittest.skipUnless(has_operator(), "no operator of torch")
    def test_attention_and_gradients_of_torch(self):
        import torch
        kernel, plain = maskc.load(self.path / "bias.mkb"), maskc.compile(self.mask, heads=2, head_dim=16, bias="add")
        *given, x = (torch.from_numpy(a) for a in self.arrays())
        results = []
        for k in (kernel, plain):
            leaves = [t.clone().requires_grad_() for t in (*given[:3], x)]
            out, lse = maskc.attention(*leaves[:3], k, bias=leaves[3], return_lse=True)
            out.backward(given[3])
            results.append([out.detach(), lse] + [t.grad for t in leaves])
        for a, b in zip(*results):
            self.close(a.numpy(), b.numpy())

        @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
        def traced(q, k, v):
            return maskc.attention(q, k, v, self.kernel)
        self.close(traced(*given[:3]).numpy(), maskc.attention(*given[:3], self.kernel).numpy())

    def test_parts_of_sequences_are_refused(self):
        q, k, v, *_ = self.arrays()
        tensors = []
        if has_operator():
            import torch
            tensors = [[torch.from_numpy(a) for a in (q, k, v)]]
        for q, k, v in [(q, k, v), *tensors]:
            self.refused("lengths", maskc.attention, q, k, v, self.kernel, lengths=[3, 4])
            self.refused("starts", maskc.attention, q, k, v, self.kernel, starts=[3, 4])
            self.refused("takes all 144", maskc.attention, q[:, :, :9], k[:, :, :9], v[:, :, :9], self.kernel)

    def test_wrong_orders_are_refused(self):
        short, twice = self.path / "short.npy", self.path / "twice.npy"
        numpy.save(short, self.order[:9])
        numpy.save(twice, numpy.zeros(144, int))
        for path in (short, twice):
            self.refused("no order of this mask", run, "make", str(self.path / "mask.npy"), "--order", str(path), "-o", "/dev/null.npy")
        numpy.save(short, numpy.full((144, 2), numpy.nan))
        for options in (["--coordinates", str(short)], ["--coordinates", str(twice)], ["--method", "curve"], ["--method", "best of all"]):
            self.refused("", run, "order", str(self.path / "mask.npy"), *options, "-o", str(self.path / "x.npy"))
        self.refused("kv-length", run, "compile", "dense", "-n", "144", "--kv-length", "9", "--order", str(self.path / "order.npy"), "-o", "x.mkb")


if __name__ == "__main__":
    cmocka_count.run_cases()
