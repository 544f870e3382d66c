#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peers_test.py MASKC PACKAGE: tools/peers.

What needs torch is skipped, and counted as skipped, where this Python has none. Closes with cmocka's
lines, so that tools/count_tests adds it up.
"""
import argparse
import importlib.machinery
import importlib.util
import io
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/compare"), str(ROOT / "tests/support")]
import cmocka_count  # noqa: E402
import peers_mma  # noqa: E402
import peers_options  # noqa: E402
import peers_plan  # noqa: E402
import peers_report as report  # noqa: E402

try:
    import numpy  # noqa: F401
    import torch
except ImportError:
    torch = None
MASKC, PACKAGE = (os.path.abspath(p) for p in sys.argv[1:3])
new_enough = torch and tuple(int(x) for x in torch.__version__.split(".")[:2]) >= (2, 10) and \
    os.path.exists(os.path.join(PACKAGE, "maskc/libmaskc_torch.so.0"))
needs_torch = unittest.skipUnless(new_enough, "this Python has no torch 2.10, or maskc was built without one")


def run(command, **environment):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          env=os.environ | environment)


def peers(*arguments, **environment):
    return run([sys.executable, ROOT / "tools/peers", *arguments], **environment)


def module_of(path):
    loader = importlib.machinery.SourceFileLoader(pathlib.Path(path).stem, str(ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class ReportTest(unittest.TestCase):
    def result(self, contender, median=None, verdict="ok", masked=True, **more):
        times = {"median_s": median, "p10_s": median, "p90_s": median} if median else {}
        return {"contender": contender, "verdict": verdict, "masked": masked, "mask": "star",
                "length": 64, "dtype": "f32", "pass": "forward", "sparsity": 95.0,
                "error_in_tolerances": 0.5} | times | more

    def test_percentiles(self):
        said = report.summary([5.0, 1.0, 4.0, 2.0, 3.0])
        self.assertEqual((said["median_s"], said["samples"]), (3.0, 5))
        self.assertAlmostEqual(said["p10_s"], 1.4)
        self.assertAlmostEqual(said["p90_s"], 4.6)
        self.assertEqual(report.percentile([7.0], 0.9), 7.0)

    def test_row(self):
        row = report.row_of([self.result("ours", 1e-3), self.result("sdpa", 2e-3, masked=False),
                             self.result("ours-dense", 7e-3, masked=False),
                             self.result("sdpa+mask", 6e-3), self.result("flex-128", 4e-3),
                             self.result("flex-16", 3e-3), self.result("eager", 9e-3)])
        self.assertEqual((row["ours"], row["dense"], row["flex"], row["(block)"]),
                         ("1.000", "2.000", "3.000", "(16)"))
        # The dense anchor computes no mask: it is not the best of those that do.
        self.assertEqual((row["vs dense"], row["vs best"]), ("2.00 x", "3.00 x"))
        self.assertEqual((row["vs own"], row["verified"]), ("7.00 x", "all"))

    def test_wrong_and_failed_are_named_and_not_timed(self):
        row = report.row_of([self.result("ours", 1e-3),
                             self.result("eager", verdict="wrong", error_in_tolerances=math.inf),
                             self.result("flex-16", verdict="failed", reason="no compiler"),
                             self.result("sdpa+mask", 6e-3, "loose", error_in_tolerances=1.6)])
        self.assertEqual((row["eager"], row["flex"], row["vs dense"], row["vs best"]),
                         ("-", "-", "-", "6.00 x"))
        self.assertEqual(row["verified"], "eager WRONG (inf x tolerance); flex-16 FAILED; "
                                          "sdpa+mask loose (1.6 x)")

    def test_a_printed_table_is_drawn(self):
        """Types stay apart; a table without our dense kernel, or without a rival, has no such ratio."""
        plot = module_of("tools/compare/benchmarks/plot_table.py")
        for wide in (False, True):
            with unittest.mock.patch("sys.stdout", io.StringIO()) as text:
                table = report.Table(["star"], wide)
                for dtype, ours, others in (("f32", 4e-3, [self.result("sdpa+mask", 8e-3)]), ("bf16", 1e-3, [])):
                    more = {"dtype": dtype, "pass": "both"}
                    table.line(report.row_of([r | more for r in (self.result("ours", ours), self.result("sdpa", 2e-3, masked=False), *others)]))
            (device, rows), = plot.tables(f"CPU, 2 threads; torch 2\n{text.getvalue()}")
            made = [plot.content(device, rows, 64, dtype) for dtype in (None, "bf16")]
            self.assertEqual([[s["values"][0] for s in m["series"]] for m in made], [[4.0, 8.0, 2.0], [1.0, None, 2.0]])
            self.assertEqual([m["rows"][0]["said"] for m in made], ["2 \N{MULTIPLICATION SIGN}", ""])
            self.assertIn(" bf16,", made[1]["note"])
            with self.assertRaises(plot.Missing):
                plot.content(device, rows, 64, "f16")

    def test_json_has_no_infinity(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.json"
            report.write_json(path, {"device": "x"}, [self.result("eager", error_in_tolerances=math.inf)])
            read = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual(os.listdir(folder), ["r.json"])
        self.assertIsNone(read["results"][0]["error_in_tolerances"])


class PlanTest(unittest.TestCase):
    case = {"length": 64, "dtype": "bf16", "head_dim": 64, "batch": 2, "heads": 3, "all_heads": 3, "device": "cuda",
            "threads": 1}

    def test_figures_of_a_plan(self):
        for direction, passes in (("forward", 1), ("backward", 1), ("both", 2)):
            made = peers_plan.read(MASKC, "dense", self.case, direction)
            self.assertEqual((made["executed_fraction"], made["lowerings"]), (1.0, ["dense"]))
            self.assertGreater(made["predicted_s"], 0)
        self.assertEqual(peers_plan.read(MASKC, "windw(2)", self.case, "forward"), {})

    def test_heads_and_passes_are_weighed(self):
        def row(name, heads, fraction):
            return {"pass": name, "at": [[0, 0]] * heads, "executed_fraction": fraction}
        plan = {"masks": [row("forward", 2, 0.5), row("forward", 1, 0.2), row("backward", 3, 1.0)]}
        self.assertAlmostEqual(peers_plan.executed(plan, "forward"), 0.4)
        self.assertAlmostEqual(peers_plan.executed(plan, "both"), (2 * 0.4 + 5 * 1.0) / 7)

    def test_floor_of_the_area(self):
        flops = 2 * 2 * 64 * 64 * 64 * 2 * 3
        self.assertAlmostEqual(peers_plan.area_floor(self.case, "forward", 0.5, flops), 0.5)
        for missing in ((None, flops), (0.5, None)):
            self.assertIsNone(peers_plan.area_floor(self.case, "forward", *missing))
        self.assertIsNone(peers_plan.area_floor(self.case | {"dtype": "f32"}, "forward", 0.5, flops))

    def test_the_loop_of_products_compiles(self):
        try:
            peers_mma.open_nvrtc()
        except peers_mma.Failed:
            self.skipTest("no NVRTC")
        self.assertEqual(peers_mma.compiled("sm_80")[:4], b"\x7fELF")
        with self.assertRaises(peers_mma.Failed):
            peers_mma.compiled("sm_80", "no program")


class CommandTest(unittest.TestCase):
    def test_help_needs_no_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            self.hide_torch(folder)
            said = peers("--help", PYTHONPATH=folder)
        self.assertEqual(said.returncode, 0, said.stderr)
        for word in ("needs:", "torch", "--threads", "dam-scattered", "exit codes"):
            self.assertIn(word, said.stdout)

    def hide_torch(self, folder):
        (pathlib.Path(folder) / "torch.py").write_text("raise ImportError('hidden')\n", encoding="utf-8")

    def test_without_torch_exit_3(self):
        with tempfile.TemporaryDirectory() as folder:
            self.hide_torch(folder)
            said = peers("-n", "64", PYTHONPATH=folder)
        self.assertEqual(said.returncode, 3)
        self.assertEqual(said.stderr.count("\n"), 1, said.stderr)
        self.assertIn("pip install torch", said.stderr)
        self.assertEqual(said.stdout, "")

    def test_bad_usage_exit_2(self):
        for arguments, word in ((["--dtype", "f64"], "f64"), (["-n", "0"], "0"),
                                (["--pass", "sideways"], "sideways"), (["--plot", "x.gif"], ".svg"),
                                (["--json", "/proc/nonexistent/r.json"], "/proc/nonexistent/r.json"),
                                (["--json", "/"], "cannot be written"),
                                (["--clock", "cpu", "--threads", "2"], "--threads 1"), (["--layers", "0"], "0"),
                                (["--layers", "2"], "--models")):
            said = peers(*arguments)
            self.assertEqual(said.returncode, 2, said.stderr)
            self.assertIn(word, said.stderr)

    def test_options_without_effect_are_refused(self):
        parser = peers_options.new_parser()
        for mode, *others in (("--models", ["--masks", "star"], ["--heads", "3"], ["--head-dim", "32"], ["--layout", "bhnd"], ["--statistic", "p10"],
                               ["--plot", "x.png"], ["--between"]),
                              ("--between", ["--plot", "x.png"], ["--pass", "forward"], ["--layout", "bhnd"], ["--contenders", "ours"]),
                              ("--overhead", ["--json", "x"], ["--between"], ["-n", "64"]), ("--wide", ["--layers", "2"])):
            for more in others:
                with self.assertRaisesRegex(peers_options.Fatal, more[0].replace("-n", "--length")):
                    peers_options.refuse_unused(parser, parser.parse_args([mode, *more]))


@needs_torch
class TorchTest(unittest.TestCase):
    arguments = ("--maskc", MASKC, "--package", PACKAGE, "--threads", "2", "--repeat", "2")

    def test_reference_against_autograd(self):
        import peers_reference
        torch.manual_seed(3)
        q, k, v, grad = (torch.randn(9, 8, dtype=torch.float64) for _ in range(4))
        mask = torch.rand(9, 9) < 0.4
        mask[4] = False
        out, *grads = peers_reference.attend_head(q, k, v, grad, mask, 0.3, lambda x: x)
        q, k, v = (t.requires_grad_() for t in (q, k, v))
        bias = torch.zeros(9, 9, dtype=torch.float64).masked_fill(~mask, -1e9)
        p = (0.3 * q @ k.T + bias).softmax(1) * mask
        truth = torch.autograd.grad(p @ v, (q, k, v), grad)
        self.assertTrue(torch.allclose(out, p @ v, atol=1e-12))
        self.assertTrue((out[4] == 0).all())
        for ours, theirs in zip(grads, truth):
            self.assertTrue(torch.allclose(ours, theirs, atol=1e-12))

    def test_measure(self):
        import peers_reference
        b = torch.full((100,), 2.0, dtype=torch.float64)
        self.assertAlmostEqual(peers_reference.measure(b * 1.01, b), 0.01)
        self.assertAlmostEqual(peers_reference.measure(b * 0 + 0.1, b * 0), 1.0)
        b[3] = math.nan
        self.assertEqual(peers_reference.measure(b, torch.ones_like(b)), math.inf)

    def test_all_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/r.json"
            said = peers("-n", "100", "--masks", "star", "dam-near", "--heads", "3", "--contenders",
                         "ours,ours-dense,sdpa,sdpa+mask,eager", "--pass", "forward,backward,both",
                         "--json", path, *self.arguments)
            self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
            with open(path, encoding="utf-8") as f:
                results = json.load(f)["results"]
        self.assertEqual(len(results), 2 * 2 * 3 * 5)
        for r in results:
            self.assertIn(r["verdict"], ("ok", "loose"), r)
            self.assertGreater(r["median_s"], 0)
            self.assertEqual(len(r["error"]), 1 if r["pass"] == "forward" else 4)
            self.assertEqual(r.get("predicted_s", 0) > 0, r["contender"] in ("ours", "ours-dense"), r)

    def test_a_wrong_contender_is_not_timed(self):
        # Eager softmax over a query without keys is not a number.
        said = peers("-n", "64", "--masks", "window(2)-rows(5)", "--dtype", "f32", "--contenders",
                     "ours,eager", *self.arguments)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn("eager WRONG", said.stdout)

    def test_the_mask_of_sdpa_is_made_once_and_additive(self):
        import peers_contenders
        options, seen = argparse.Namespace(batch=1, head_dim=8, heads=2, device="cpu", threads=1, layout="bnhd"), []
        case = peers_contenders.Case(torch.rand(1, 6, 6) < 0.5, "", options, 6, torch.bfloat16)
        attend = peers_contenders.build_sdpa_masked(case, False)
        with unittest.mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", lambda *x, attn_mask: seen.append(attn_mask)):
            for _ in range(2):
                attend(case.q, case.k, case.v)
        self.assertIs(seen[0], seen[1])
        self.assertEqual(seen[0].dtype, torch.bfloat16)
        self.assertTrue(torch.equal(seen[0] == 0, case.table[None]))

    @unittest.skipUnless(shutil.which(os.environ.get("CXX", "g++")), "no C++ compiler")
    def test_flex_compiles_once_for_all_masks(self):
        import peers_contenders
        import torch._dynamo
        options = argparse.Namespace(batch=1, head_dim=16, heads=2, device="cpu", threads=1,
                                     opened=None, layout="bnhd")
        compiled = torch._dynamo.utils.counters["stats"]
        counts = []
        for density in (0.2, 0.5, 0.8):
            torch.manual_seed(7)
            case = peers_contenders.Case(torch.rand(1, 48, 48) < density, "", options, 48, torch.float32)
            with torch.no_grad():
                ours = peers_contenders.build_flex(16)(case, False)(case.q, case.k, case.v)
                theirs = peers_contenders.build_sdpa_masked(case, False)(case.q, case.k, case.v)
            self.assertTrue(torch.allclose(ours, theirs, atol=1e-5))
            counts.append(compiled["unique_graphs"])
        self.assertEqual(counts, [counts[0]] * 3)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "this Python has no transformers")
    def test_models_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/r.json"
            said = peers("--models", "modernbert", "-n", "192", "--contenders", "sdpa", "--package", PACKAGE, "--threads", "1", "--repeat", "1",
                         "--json", path)
            self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
            with open(path, encoding="utf-8") as f:
                results = json.load(f)["results"]
        self.assertEqual([r["training"] for r in results], [False, True])
        for r in results:
            self.assertEqual(set(r["contenders"]), {"maskc", "sdpa", "nothing"})
            self.assertLess(r["errors"]["sdpa"], 1e-4)
        for arguments, word in ((("--models", "bort"), "bort"), (("--models", "--contenders", "eager"), "eager"),
                                (("--models", "--contenders", "maskc"), "sdpa, flex"), (("--models", "--contenders", "flex"), "no backward"),
                                (("--models", "--pass", "backward"), "forward and both")):
            said = peers(*arguments, "--package", PACKAGE)
            self.assertEqual((said.returncode, said.stderr.count("\n")), (2, 1), said.stderr)
            self.assertIn(word, said.stderr)

    def test_between_products_and_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/r.json"
            said = peers("--between", "-n", "64", "--masks", "star", "--threads", "1", "--repeat", "1", "--json", path, "--package", PACKAGE, "--maskc",
                         MASKC)
            self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
            with open(path, encoding="utf-8") as f:
                results = json.load(f)["results"]
        self.assertEqual([r["contender"] for r in results], ["maskc", "sdpa", "addcmul"])
        for r in results:
            self.assertAlmostEqual(r["ratio"], r["between"]["median_s"] / r["alone"]["median_s"])
            self.assertEqual([r[kind]["samples"] for kind in ("between", "alone", "cold")], [1, 1, 1])
            self.assertIn(f"{r['ratio']:.2f} x", said.stdout)

    def test_bad_masks_end_before_timing(self):
        said = peers("-n", "64", "--masks", "star", "windw(2)", *self.arguments)
        self.assertEqual((said.returncode, said.stdout), (2, ""))
        self.assertIn("windw", said.stderr)


if __name__ == "__main__":
    cmocka_count.run_cases()
