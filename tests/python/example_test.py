#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do runtime/python/examples run: faster_model.py, which draws what it says, mesh.py, whose ways agree, and onnx_attention.py and jax_attention.py, whose operators refuse what is wrong? Does the
line of masks/README.md export a checkpoint of SparseBERT?"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

from common import Case, cmocka_count, cpu_only, has, has_operator, maskc, needs_transformers

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "runtime/python/examples"
README = pathlib.Path(__file__).resolve().parents[2] / "masks/README.md"
ONNX = has("numpy") and has("onnx") and has("onnxruntime") and os.environ.get("ONNXRUNTIME_INCLUDE")


@needs_transformers
@cpu_only("the example runs on the CPU")
class ExampleTest(Case):
    def test_runs_and_draws(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, EXAMPLES / "faster_model.py", "--quick", folder], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("a training step: loss", done.stdout)
            # Two implementations round differently; 0 would be one model compared with itself.
            self.assertGreater(float(re.search(r"own mask differ by (\S+)", done.stdout)[1]), 0)
            for name in ["mask.png"] + ["times.png"] * has("matplotlib"):
                self.assertEqual((pathlib.Path(folder) / name).read_bytes()[:4], b"\x89PNG")


@cpu_only("the example runs on the CPU")
@unittest.skipUnless(has_operator() and has("numpy"), "no operator of torch, or no numpy")
class MeshTest(Case):
    def test_ways_agree(self):
        rivals = ["gather", "sparse", "dense"] + ["blocks"] * has("scipy")
        done = subprocess.run([sys.executable, EXAMPLES / "mesh.py", "--subdivide", "2", "--hops", "2", "--heads", "1", "--head-dim", "16",
                               "--repeats", "1", "--rivals", ",".join(rivals)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("162 tokens", done.stdout)
        for name in ["maskc, plain", "maskc, shuffled", "maskc, ordered", *rivals]:
            self.assertRegex(done.stdout, rf"(?m)^{name} +\d+\.\d +\d+\.\d ")

    def test_masks_of_torch_are_made_once_and_additive(self):
        import numpy
        import torch
        with unittest.mock.patch.object(sys, "path", [str(EXAMPLES), *sys.path]):
            import mesh_rivals
        problem = types.SimpleNamespace(rows=numpy.array([0, 2, 5, 7]), keys=numpy.array([0, 1, 0, 1, 2, 1, 2]), n=3, orders={})
        sdpa, tensors = torch.nn.functional.scaled_dot_product_attention, [torch.rand(1, 1, 3, 4) for _ in range(3)]
        for name in ["dense", "gather"] + ["blocks"] * has("scipy"):
            seen, attend = [], getattr(mesh_rivals.Rivals(problem), name)()[1]
            with unittest.mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", lambda *x, attn_mask: seen.append(attn_mask) or sdpa(*x, attn_mask)):
                attend(*tensors)
                attend(*tensors)
            self.assertEqual((name, seen[0].dtype, seen[0] is seen[1]), (name, torch.float32, True))


@cpu_only("the example runs on the CPU")
@unittest.skipUnless(has("torch") and has("numpy"), "this Python has no torch or no numpy")
class ExportTest(Case):
    def test_sparsebert_checkpoint(self):
        import argparse
        import numpy
        import torch
        if not hasattr(torch.serialization, "add_safe_globals"):
            self.skipTest("torch 2.4 is expected")
        line = re.search(r'^python3 -c "(import argparse, torch.*)"$', README.read_text(encoding="utf-8"), re.MULTILINE)[1]
        alphas = torch.rand(3, 8, 2)
        with tempfile.TemporaryDirectory() as folder:
            torch.save({"model": {"bert.encoder.init_alphas": alphas.half(), "bert.pooler.bias": torch.zeros(2)}, "epoch": 3,
                        "args": argparse.Namespace(learning_rate=1e-3, seed=None, device=torch.device("cpu"))}, pathlib.Path(folder, "ckpt.pt"))
            done = subprocess.run([sys.executable, "-c", line], cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue((numpy.load(pathlib.Path(folder, "alphas.npy")) == alphas.half().float().numpy()).all())


@cpu_only("the example runs on the CPU")
@unittest.skipUnless(has("numpy") and has("jax"), "this Python has no jax or no numpy")
class JaxTest(Case):
    def test_runs_and_refuses_wrong_buffers(self):
        """XLA's buffers have no bounds: types and shapes that the kernel was not compiled for are refused."""
        import numpy
        sys.path.insert(0, str(EXAMPLES))
        import jax_attention
        self.assertEqual(jax_attention.main(), 0)
        kernel = maskc.compile("window(8)", n=64, heads=4, head_dim=16, kv_heads=2)
        good = {"q": numpy.ones((2, 48, 4, 16), "f4"), "k": numpy.ones((2, 48, 2, 16), "f4"), "v": numpy.ones((2, 48, 2, 16), "f4"), "lengths": numpy.array([48, 3], "i4")}
        self.assertEqual(jax_attention.attention(*good.values(), kernel).shape, (2, 48, 4, 16))
        for words, wrong in [("N of at most", {"q": numpy.ones((2, 65, 4, 16), "f4")}), ("q: [B, N, H, D]", {"q": good["q"][:, :, :3]}), ("q: [B, N, H, D]", {"q": good["q"].astype("f2")}),
                             ("k, v: ", {"k": good["k"][:1]}), ("k, v: ", {"v": good["v"][:, :40]}), ("k, v: ", {"v": good["v"].astype("i4")}),
                             ("lengths: int32 [B]", {"lengths": good["lengths"][:1]}), ("lengths: int32 [B]", {"lengths": good["lengths"].astype("f4")}),
                             ("lengths[1]", {"lengths": numpy.array([48, 49], "i4")})]:
            with self.assertRaisesRegex(Exception, re.escape(words)):
                jax_attention.attention(*{**good, **wrong}.values(), kernel).block_until_ready()


@cpu_only("the example runs on the CPU")
@unittest.skipUnless(ONNX, "this Python has no onnx, onnxruntime or numpy, or ONNXRUNTIME_INCLUDE is not set")
class OnnxTest(Case):
    def setUp(self):
        sys.path.insert(0, str(EXAMPLES))
        import onnx_attention
        self.example = onnx_attention
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.library = pathlib.Path(folder.name), onnx_attention.build(folder.name)

    def compiled(self, **options):
        self.kernel = maskc.compile("window(8)|global(0)", n=64, heads=4, head_dim=16, forward_only=True, **options)
        self.kernel.save(self.folder / "kernel.mkb")
        return self.folder / "kernel.mkb"

    def test_shapes_and_lengths(self):
        self.compiled(kv_heads=2)
        run = self.example.session(self.library, self.example.model(self.folder / "kernel.mkb"), threads=2).run
        for n in (64, 40, 1):
            given = self.example.inputs(3, n, 4, 16)
            given["k"], given["v"] = given["k"][:, :, ::2].copy(), given["v"][:, :, 1::2].copy()
            grown = {name: t.repeat(2, axis=2) if name in "kv" else t for name, t in given.items()}
            wanted = self.example.reference(*grown.values(), self.kernel.mask[0][:, :n, :n])
            self.assertLess(abs(run(None, given)[0] - wanted).max(), 1e-5)

    def test_wrong_input(self):
        run = self.example.session(self.library, self.example.model(self.compiled())).run
        good = self.example.inputs(2, 64, 4, 16)
        for words, wrong in [("q: [B, N, 4, 16] with N of at most 64 is expected", self.example.inputs(2, 65, 4, 16)),
                             ("q: [B, N, 4, 16]", self.example.inputs(2, 64, 3, 16)), ("k, v: [2, 64, 4, 16] is expected", {"k": good["k"][:1]}),
                             ("k, v: [2, 64, 4, 16] is expected", {"v": good["v"][:, :, :2]}),
                             ("lengths: [2] is expected", {"lengths": good["lengths"][:1]}),
                             ("lengths[1] = -1", {"lengths": good["lengths"] * [1, 0] - [0, 1]}),
                             ("expected: (tensor(float))", {"q": good["q"].astype("float64")})]:
            self.refused(words, run, None, {name: t.astype("int32") if name == "lengths" else t for name, t in {**good, **wrong}.items()},
                         kind=Exception)

    def test_wrong_file(self):
        (self.folder / "empty.mkb").write_bytes(b"")
        for words, path in [("nothing.mkb", self.folder / "nothing.mkb"), ("empty.mkb", self.folder / "empty.mkb"),
                            ("kernel.mkb: a kernel of one layer, f32", self.compiled(dtype="bfloat16"))]:
            self.refused(words, self.example.session, self.library, self.example.model(path), kind=Exception)


if __name__ == "__main__":
    cmocka_count.run_cases()
