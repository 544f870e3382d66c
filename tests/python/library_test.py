#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the structs of the Python package those of maskc.h, do kernels compile, save, load and pickle, is what is wrong refused in
one line, and is attention on numpy arrays what its definition says in float64?"""
import concurrent.futures
import copy
import importlib.util
import os
import pathlib
import pickle
import re
import shlex
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

from common import Case, cmocka_count, cpu_only, has, needs_numpy
import maskc
from maskc import _library as library, hooks
from maskc.masks import mask_file

ROOT = pathlib.Path(__file__).resolve().parents[2]


class HeaderTest(Case):
    def test_structs_lie_as_in_c(self):
        lines = []
        for name, struct in library.STRUCTS.items():
            lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
            lines += [f'printf("{name}.{field} %zu\\n", offsetof(struct {name}, {field}));' for field, _ in struct._fields_]
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "layout.c"
            source.write_text('#include "runtime/maskc.h"\n#include <stdio.h>\nint main(void)\n{\n' + "\n".join(lines) + "\n}\n")
            cc = shlex.split(os.environ.get("CC", "cc"))
            subprocess.run([*cc, "-I", ROOT, source, "-o", source.with_suffix("")], check=True)
            made = subprocess.run([source.with_suffix("")], check=True, capture_output=True, text=True).stdout.split("\n")
        ours = []
        for name, struct in library.STRUCTS.items():
            ours.append(f"{name} {library.ctypes.sizeof(struct)}")
            ours += [f"{name}.{field} {getattr(struct, field).offset}" for field, _ in struct._fields_]
        self.assertEqual(made[:-1], ours)

    def test_every_function_is_declared(self):
        header = (ROOT / "runtime/maskc.h").read_text(encoding="utf-8")
        names = set(re.findall(r"^MASKC_API .*?\b(maskc_\w+)\(", header, re.M))
        self.assertGreater(len(names), 8)
        self.assertEqual(names, set(library.FUNCTIONS))


class KernelTest(Case):
    @classmethod
    def setUpClass(cls):
        cls.kernel = maskc.compile("window(3)", n=40, heads=2, head_dim=16)

    def test_says_what_it_is(self):
        info = self.kernel.info
        self.assertEqual((info["length"], info["heads"], info["head_dim"], info["dtype"]), (40, 2, 16, "f32"))
        self.assertIn("mask 0", self.kernel.plan)
        self.assertIn("40 tokens", repr(self.kernel))

    def test_saves_loads_pickles_and_copies(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "w.mkb"
            self.kernel.save(path)
            self.assertEqual(maskc.load(path).info, self.kernel.info)
            path.write_bytes(path.read_bytes()[:-1])
            self.refused("w.mkb", maskc.load, path)
        self.assertEqual(pickle.loads(pickle.dumps(self.kernel)).info, self.kernel.info)
        self.assertIs(copy.deepcopy(self.kernel), self.kernel)

    def test_a_kernel_while_another_thread_imports_the_operator(self):
        """It is left to the import, whose modules do not have all their names yet."""
        half = {name: types.ModuleType(name) for name in ("maskc.torch_op", "maskc.torch_numbers")}
        with unittest.mock.patch.dict(sys.modules, half):
            self.assertIn(pickle.loads(pickle.dumps(self.kernel)), maskc.kernel.ALIVE)

    def test_texts_of_several_threads(self):
        """Each text has a file of its own."""
        texts = [[f"length 8\nwindow({thread})\n# {k}\n" for k in range(30)] for thread in range(8)]
        kept = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with concurrent.futures.ThreadPoolExecutor(len(texts)) as threads:
                paths = list(threads.map(lambda those: [mask_file(text) for text in those], texts))
        finally:
            sys.setswitchinterval(kept)
        for text, path in zip(sum(texts, []), sum(paths, [])):
            self.assertEqual(pathlib.Path(path).read_text(encoding="utf-8"), text)

    def test_texts_after_a_fork_and_a_cleaner(self):
        program = ("import os, shutil, sys\nfrom maskc.masks import mask_file as made\nfirst = made('dense\\n')\nif not os.fork():\n"
                   "    assert os.path.isfile(made('dense\\n')) and made('dense\\n') != first\n    sys.exit()\n"
                   "os.wait()\nassert os.path.isfile(first)\nos.unlink(first)\nassert made('dense\\n') == first and os.path.isfile(first)\n"
                   "shutil.rmtree(os.path.dirname(first))\nassert os.path.isfile(made('dense\\n'))\nprint(made('dense\\n'))\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr, os.path.exists(os.path.dirname(done.stdout))), (0, "", False))

    def test_plans_without_compiling(self):
        self.assertIn("mask 0", maskc.plan("window(3)", n=64, heads=2))
        self.assertIn("machine", maskc.plan("window(3)", n=64, heads=2, json_=True))

    def test_wrong_input_is_one_line(self):
        c = maskc.compile
        self.refused("nonsense", c, "nonsense(", n=8)
        self.refused("dtype", c, "dense", n=8, dtype="int8")
        self.refused("head_dim", c, "dense", n=8, head_dim=-1)
        self.refused("transform", c, "dense", n=8, transform="hardmax")
        self.refused("bias", c, "dense", n=8, bias="times")
        self.refused("soft mask", c, "dense", n=8, kv_length=9, bias="add")
        self.refused("key heads", c, "dense", n=8, heads=6, kv_heads=4)
        self.refused("align", c, "dense", n=8, kv_length=9, align="middle")
        self.refused("align goes with kv_length", c, "dense", n=8, align="end")
        self.refused("target", c, "dense", n=8, target="z80")
        self.refused("mkb", maskc.load, "/nowhere.mkb")
        self.assertEqual(maskc.Error(2, "x").code, 2)


@needs_numpy
@cpu_only("arrays of numpy are on the CPU")
class ArraysTest(Case):
    def reference(self, q, k, v, active):
        import numpy
        s = numpy.where(active, q.astype(float) @ k.astype(float).swapaxes(-1, -2) / q.shape[-1] ** 0.5, -numpy.inf)
        most = s.max(-1, keepdims=True, initial=-1e300)
        p = numpy.exp(s - most)
        total = p.sum(-1, keepdims=True)
        return numpy.divide(p, total, out=numpy.zeros_like(p), where=total > 0) @ v.astype(float)

    def setUp(self):
        import numpy
        self.random = numpy.random.default_rng(3)
        self.q, self.k, self.v = (self.random.standard_normal((2, 3, 33, 16)).astype("f4") for _ in range(3))
        self.bits = self.random.random((3, 33, 33)) < 0.3
        self.bits[1, 5] = False
        self.kernel = maskc.compile(self.bits, head_dim=16)

    def close(self, a, b):
        import numpy
        self.assertTrue(numpy.isfinite(a).all())
        self.assertLess(numpy.linalg.norm(a - b) / max(numpy.linalg.norm(b), 0.1 * b.size ** 0.5), 1e-5)

    def test_is_the_definition(self):
        self.close(maskc.attention(self.q, self.k, self.v, self.kernel), self.reference(self.q, self.k, self.v, self.bits))

    def test_any_strides(self):
        q = self.q.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)
        k = self.k[..., ::-1].copy()[..., ::-1]
        self.close(maskc.attention(q, k, self.v, self.kernel), self.reference(self.q, self.k, self.v, self.bits))

    def test_lengths_starts_and_packed(self):
        out = maskc.attention(self.q, self.k, self.v, self.kernel, starts=[4, 0], lengths=[20, 33])
        part = self.reference(*(a[:1, :, 4:24] for a in (self.q, self.k, self.v)), self.bits[:, :20, :20])
        self.close(out[:1, :, 4:24], part)
        self.assertEqual(abs(out[0, :, :4]).max() + abs(out[0, :, 24:]).max(), 0)
        rows = [a.transpose(0, 2, 1, 3).reshape(66, 3, 16) for a in (self.q, self.k, self.v)]
        packed, lse = maskc.attention(*rows, self.kernel, offsets=[0, 33, 66], return_lse=True)
        whole = maskc.attention(self.q, self.k, self.v, self.kernel)
        self.assertTrue((packed == whole.transpose(0, 2, 1, 3).reshape(66, 3, 16)).all())
        self.assertEqual(lse.shape, (3, 66))

    def test_the_mask_comes_back(self):
        import numpy
        self.assertTrue(numpy.array_equal(self.kernel.mask[0], self.bits))
        self.assertTrue(maskc.show(self.kernel)._repr_png_().startswith(b"\x89PNG"))
        self.assertTrue(repr(maskc.show(self.bits)).startswith("mask: "))
        self.assertIn(": 33 x 33, 3 heads", repr(maskc.show(self.kernel)))
        self.refused("mask: n=100 is larger", maskc.show, self.bits, n=100)

    def test_orders_and_hops(self):
        import numpy
        order, truth = self.random.permutation(33), self.reference(self.q, self.k, self.v, self.bits)
        kernel = maskc.compile(self.bits, head_dim=16, order=order)
        self.assertTrue(numpy.array_equal(kernel.order, order) and numpy.array_equal(kernel.mask[0], self.bits))
        self.close(maskc.attention(self.q, self.k, self.v, kernel), truth)
        step, near = numpy.eye(33, k=1, dtype=bool), sum(numpy.eye(33, k=k) for k in range(3)) > 0
        for mask in step, "diagonal(1)":
            kernel = maskc.compile(mask, n=33, heads=3, head_dim=16, hops=2, order=order.tolist())
            self.assertTrue((kernel.mask == near).all() and numpy.array_equal(kernel.order, order))
            self.close(maskc.attention(self.q, self.k, self.v, kernel), self.reference(self.q, self.k, self.v, near))
        self.assertTrue((maskc.compile(maskc.runs.from_array(step[None, None]), head_dim=16, hops=0).mask == numpy.eye(33)).all())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "order.npy")
            numpy.save(path, order)
            self.assertTrue(numpy.array_equal(maskc.compile(self.bits, head_dim=16, order=path).order, order))
        self.assertIn("mask 0", maskc.plan(step, hops=3, order=order))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "order.npz")
            numpy.savez(path, order)
            self.refused("order: a .npz file", maskc.compile, self.bits, head_dim=16, order=path)
        for wrong in order[:-1], numpy.zeros(33, int), order + 1, order.astype(float), "/nowhere.npy", order[None]:
            self.refused("order", maskc.compile, self.bits, head_dim=16, order=wrong)
        self.refused("order", maskc.compile, "dense", n=33, kv_length=40, order=order)
        self.refused("hops", maskc.compile, "dense", n=33, hops=-1)

    def test_wrong_input_is_one_line(self):
        import numpy
        q, k, v, a = self.q, self.k, self.v, maskc.attention
        self.refused("float64", a, q.astype("f8"), k, v, self.kernel)
        self.refused("shaped alike", a, q, k[:, :, :5], v, self.kernel)
        self.refused("heads", a, q[:, :2], k[:, :2], v[:, :2], self.kernel)
        self.refused("rank", a, q[0], k[0], v[0], self.kernel)
        self.refused("lengths", a, q, k, v, self.kernel, lengths=[-1, 3])
        self.refused("lengths", a, q, k, v, self.kernel, lengths=[34, 3])
        self.refused("lengths", a, q, k, v, self.kernel, lengths=[1.5, 3])
        self.refused("layer", a, q, k, v, self.kernel, layer=1)
        self.refused("dropout", a, q, k, v, self.kernel, dropout_p=0.1)
        self.refused("bias", a, q, k, v, self.kernel, bias=numpy.zeros((3, 33, 33), "f4"))
        elsewhere = maskc.compile(self.bits, head_dim=16)
        elsewhere.device = "cuda:1"
        self.refused("loaded for cuda:1: compile with target='cpu'", a, q, k, v, elsewhere)
        self.refused("bool is expected", maskc.compile, numpy.full((8, 8), numpy.nan))
        self.refused("negative", maskc.compile, numpy.full((8, 8), -1))
        self.refused("shape", maskc.compile, numpy.ones((8, 9), bool))


@needs_numpy
class RunsTest(Case):
    def setUp(self):
        import numpy
        self.bits = numpy.random.default_rng(5).random((2, 3, 33, 33)) < 0.4
        self.bits[1, 2, 4], self.bits[0, 0, 5] = False, True

    def test_are_the_array(self):
        import numpy
        from maskc.runs import from_array, from_blocks
        made = from_array(self.bits)
        self.assertTrue((numpy.asarray(made) == self.bits).all())
        self.assertTrue((maskc.compile(made, head_dim=16).mask == self.bits).all())
        self.assertTrue((maskc.compile(made, n=20, head_dim=16).mask == self.bits[..., :20, :20]).all())
        self.assertTrue((numpy.asarray(from_blocks(self.bits, 4)) == self.bits.repeat(4, -1).repeat(4, -2)).all())

    def test_long_runs_have_a_plan_and_a_structure(self):
        """One head is written as its entries, unless an array is shorter; several heads as an array, up to a limit."""
        import numpy
        from maskc.runs import Runs, from_array
        n = 1 << 18
        own = numpy.arange(n)
        diagonal = Runs((1, 1, n, n), numpy.arange(n + 1), numpy.stack((own, own + 1), 1))
        self.assertIn(f"length {n}", maskc.plan(diagonal))
        shown = maskc.show(diagonal)
        self.assertIn(f"{n} of {n * n} entries", repr(shown))
        self.assertIsNone(shown._repr_png_())
        self.refused("maskc show -o", shown.save, "/dev/null")
        two = Runs((1, 2, n, n), numpy.arange(2 * n + 1), numpy.tile(diagonal.runs, (2, 1)))
        self.refused("too large", maskc.plan, two)
        self.refused("outside", maskc.plan, Runs((1, 1, 2, 2), [0, 1, 2], [[0, 3], [0, 1]]))
        sparse = numpy.eye(33, dtype=bool)[None, None]
        sparse[0, 0, 3, 3:9] = sparse[0, 0, 5] = False
        sparse[0, 0, 8, 7:20] = True
        for bits in self.bits, self.bits[:1, :1], sparse:
            with tempfile.TemporaryDirectory() as folder:
                path = from_array(bits).save(folder)
                self.assertEqual(path.endswith(".npz"), bits is sparse)
                self.assertTrue((maskc.kernel.read_mask(path).reshape(bits.shape) == bits).all())

    def test_pictures_are_made_on_demand(self):
        self.assertIn("window 3", repr(maskc.show("window(3)", n=131072)))
        shown = maskc.show("window(3)", n=1000, heads=3)
        self.assertIsNone(shown.png)
        with tempfile.TemporaryDirectory() as folder:
            shown.save(os.path.join(folder, "x.png"))
            self.assertGreater(os.path.getsize(os.path.join(folder, "x.png")), 500)

    def test_a_long_array_becomes_runs(self):
        import numpy
        n = 4100
        near = numpy.arange(n)
        bits = (near[:, None] - near <= 3) & (near - near[:, None] <= 3)
        bits[4099, 7] = True
        text, made = maskc.masks.mask_argument(bits)
        self.assertIsInstance(made, maskc.Runs)
        self.assertEqual(len(made.runs), n + 1)
        self.assertEqual((made.runs[-2:].tolist(), text), ([[7, 8], [4096, 4100]], None))
        self.assertEqual(maskc.compile(bits, head_dim=16).length, n)

    def test_wrong_input_is_one_line(self):
        import numpy
        rows = numpy.arange(5)
        self.refused("do not fit", maskc.Runs, (1, 1, 4, 4), rows, numpy.zeros((3, 2), int))
        self.refused("shape", maskc.Runs, (1, 4, 4), rows, numpy.zeros((4, 2), int))
        self.refused("outside", maskc.compile, maskc.Runs((1, 1, 4, 4), rows, [[0, 5]] * 4))
        self.refused("overlap", maskc.compile, maskc.Runs((1, 1, 4, 4), [0, 2, 2, 2, 2], [[0, 3], [2, 4]]))


class LoadTest(Case):
    def test_one_openmp_at_most(self):
        """The package's libmaskc brings none."""
        needed = subprocess.run(["ldd", library.library_path()], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("libgomp", needed)
        self.assertNotIn("libomp", needed)

    def test_a_watched_module_is_registered_when_it_is_imported(self):
        """Once, and not when somebody only asks for it. A finder that asks all others, as those of tracers do, changes nothing."""
        class Delegating:
            busy = False

            def find_spec(self, name, path=None, target=None):
                if self.busy:
                    return None
                self.busy = True
                try:
                    return importlib.util.find_spec(name)
                finally:
                    self.busy = False

        for delegating in ([], [Delegating()]):
            seen, name = [], f"maskc_watched_module_{len(delegating)}"
            with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(hooks.WATCHED, {name: seen.append}), \
                    unittest.mock.patch("sys.path", [folder, *sys.path]), unittest.mock.patch("sys.meta_path", delegating + sys.meta_path):
                (pathlib.Path(folder) / f"{name}.py").write_text("")
                before = list(sys.meta_path)
                sys.meta_path.insert(0, hooks.Finder({name}))
                self.assertTrue(importlib.util.find_spec(name))
                self.assertEqual(seen, [])
                module = importlib.import_module(name)
                self.assertEqual(seen, [module])
                self.assertEqual(sys.meta_path, before)

    def test_commands_of_a_build_folder(self):
        """They also look for CUDA libraries where this Python's packages are."""
        program = "import os, sys\nfrom maskc import _programs\nsys.argv = ['maskc', '--version']\nprint(os.environ['MASKC_PREFIX'], flush=True)\n_programs.maskc()"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertRegex(done.stdout, f"^{re.escape(sys.prefix)}\nmaskc ", done.stderr)

    @unittest.skipIf(has("torch"), "torch is here")
    def test_import_without_torch(self):
        self.assertFalse("torch" in __import__("sys").modules)


if __name__ == "__main__":
    cmocka_count.run_cases()
