#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bert_peers_test.py BUILD [--long]: tools/bert-peers and tools/encoder-peers; --long: its contenders too, with transformers. What needs torch 2 and numpy is skipped, and counted as skipped, where
this Python lacks one of them. Closes with cmocka's lines, so that tools/count_tests adds it up."""
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
import cmocka_count  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
try:
    import numpy  # noqa: F401
    import torch
    has_torch = int(torch.__version__.split(".")[0]) >= 2
except ImportError:
    has_torch = False


def peers(*arguments):
    return subprocess.run([sys.executable, ROOT / "tools/bert-peers", "--build", BUILD, *arguments],
                          capture_output=True, text=True, check=False)


def load_program(name="bert-peers"):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class RowTest(unittest.TestCase):
    """The table's line of one case, from figures made up here."""

    def row(self, **seconds):
        program = load_program()
        case = type("Case", (), {"name": lambda self: "base"})()
        cell = [{"contender": name.replace("_", " "), "verdict": "ok", "median_s": s} for name, s in seconds.items()]
        return program.row_of(case, cell, "median_s", None)

    def test_best_of_the_others(self):
        row = self.row(ours=0.010, sdpa=0.030, sdpa_packed=0.024, compiled=0.025, f32_onnx=0.050)
        self.assertEqual(row[1:4], ["10.00", "24.00", "25.00"])
        self.assertEqual(row[-3:], ["2.40 x", "-", "all"])

    def test_our_other_forms_are_no_others(self):
        self.assertEqual(self.row(ours=0.010, ours_dense=0.001, ours_f32=0.002, sdpa=0.011)[-3], "1.10 x")

    def test_nothing_to_compare_with(self):
        self.assertEqual(self.row(ours=0.010)[-3], "-")


class TrainingRowTest(unittest.TestCase):
    """The same of --train: tokens a second."""

    def row(self, clock="wall", **seconds):
        program = load_program()
        case = program.training.Case("mini", None, 2, 8)
        cell = [{"contender": name.replace("_", " "), "dropout": 0.1, "tokens": 16, "verdict": "ok", "median_s": s,
                 "cpu_median_s": 2 * s * (1 + (name == "ours"))} for name, s in seconds.items()]
        o = type("Options", (), {"clock": clock, "statistic": "median"})()
        row = dict(zip(program.training.COLUMNS, program.training.row_of(case, cell, o)))
        self.assertTrue(program.training.line(list(row.values()), [case]).startswith("mini 2 x 8 dense      0.1  "))
        return row

    def test_ratios(self):
        row = self.row(ours=0.5, eager_sdpa=2, eager_plain=1, compiled_sdpa=0.75)
        self.assertEqual((row["ours"], row["eager plain"], row["flex"]), ("32", "16", "-"))
        self.assertEqual((row["vs eager"], row["vs compiled"], row["vs best"]), ("2.00 x", "1.50 x", "1.50 x"))

    def test_clock(self):
        self.assertEqual(self.row(clock="cpu", ours=0.5, eager_sdpa=1)["vs best"], "1.00 x")

    def test_nothing_to_compare_with(self):
        self.assertEqual(self.row(ours=0.5)["vs best"], "-")
        self.assertEqual(self.row(eager_sdpa=0.5)["vs best"], "-")


class CommandTest(unittest.TestCase):
    def refused(self, code, *arguments):
        r = peers(*arguments)
        self.assertEqual((r.returncode, r.stdout), (code, ""), r.stderr)
        self.assertRegex(r.stderr, r"^bert-peers: [^\n]+\n$")

    def test_bad_input(self):
        self.assertEqual(peers("--threads", "0").returncode, 2)
        self.refused(2, "--json", "/nonexistent/x.json")
        self.refused(3, "--build", "/nonexistent")
        self.refused(3, "--train", "--build", "/nonexistent")

    def test_encoders(self):
        for code, arguments in ((2, ("--family", "bert")), (2, ("-n", "0")), (2, ("--contenders", "f32")), (3, ("--build", "/nonexistent"))):
            r = subprocess.run([sys.executable, ROOT / "tools/encoder-peers", "--build", BUILD, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((r.returncode, r.stdout), (code, ""), r.stderr)
            self.assertRegex(r.stderr.splitlines()[-1], r"^encoder-peers: ")

    def test_encoders_keep_what_was_measured(self):
        """An interrupt in the second family."""
        program, done = load_program("encoder-peers"), [{"contender": "ours f32", "dtype": "f32", "verdict": "ok", "median_s": 1.0, "p10_s": 1.0, "p90_s": 1.0}]
        work = types.SimpleNamespace(run=unittest.mock.Mock(side_effect=[done, KeyboardInterrupt]))
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(sys.modules, encoder_peers=types.SimpleNamespace(Family=lambda *_: work)), \
                unittest.mock.patch.multiple(program.bert, import_torch=lambda o: None, print_header=lambda o, torch: {}), \
                unittest.mock.patch("sys.stdout", io.StringIO()):
            path = pathlib.Path(folder) / "x.json"
            code = program.compare(program.new_parser().parse_args(["--build", BUILD, "-n", "8", "--json", str(path)]))
            self.assertEqual((code, json.loads(path.read_text(encoding="utf-8"))["results"]), (130, done))

    @unittest.skipUnless("--long" in sys.argv and has_torch and importlib.util.find_spec("transformers"), "without --long, torch or transformers")
    def test_encoders_train(self):
        """Right ones pass, a model with other keys does not; the head computes the masked rows only."""
        import torch
        program = load_program("encoder-peers")
        import encoder_peers as work_of
        for family in work_of.GRADIENTS:
            o = program.new_parser().parse_args(["--train", "--quick", "--repeat", "1", "--tokens", "64", "--threads", "1", "--contenders", "ours f32,ours bf16,eager f32,eager bf16"])
            with tempfile.TemporaryDirectory() as folder:
                work = work_of.Family(o, family, pathlib.Path(folder), pathlib.Path(BUILD, "tools/libbert_train.so"))
                self.assertEqual([(r["contender"], r["verdict"], r.get("reason")) for r in work.run(32)], [(c, "ok", None) for c in work.contenders(None)])
                batch, seen = work_of.Batch(2, 32, work.config.vocab_size), []
                reference, one = work.reference(batch), work_of.TorchSteps(work.load(), torch.float32, batch)
                one.model.get_output_embeddings().register_forward_hook(lambda m, x, out: seen.append(len(out)))
                self.assertLessEqual(reference.error(*one.gradients(reference.shapes), torch.float32), 1)
                self.assertEqual(seen, [len(batch.rows)])
                frozen, base = [], one.model.base_model
                with unittest.mock.patch.object(torch, "compile", lambda m, **_: lambda **x: frozen.append(torch._inductor.config.freezing) or m(**x)):
                    first = [work_of.Torch(base, torch.float32, batch, compiled) for compiled in (True, False)][0]
                    first()
                self.assertEqual(frozen, [True])
                for name, x in one.model.named_parameters():  # other keys: the loss stays near ln V
                    if name.endswith((".k.weight", ".key.weight", "Wqkv.weight")):
                        with torch.no_grad():
                            (x[64:128] if "Wqkv" in name else x).neg_()
                loss, found = one.gradients(reference.shapes)
                self.assertLess(abs(loss / reference.loss - 1), work_of.LOSS_TOLERANCE)
                self.assertGreater(reference.error(loss, found, torch.bfloat16), 1)

    @unittest.skipIf(has_torch, "this Python has torch 2 and numpy")
    def test_without_torch(self):
        self.refused(3, "--quick")

    @unittest.skipUnless(has_torch, "this Python lacks torch 2 or numpy")
    def test_names(self):
        self.refused(2, "--quick", "--cases", "nosuch")
        self.refused(2, "--quick", "--contenders", "nosuch")
        self.refused(2, "--train", "--contenders", "flex-64")

    @unittest.skipUnless(has_torch, "this Python lacks torch 2 or numpy")
    def test_quick(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "x.json"
            names = ["ours", "ours f32", "ours dense", "sdpa", "sdpa packed", "eager", "f32 sdpa"]
            r = peers("--quick", "--repeat", "2", "--contenders", ",".join(names), "--json", out)
            self.assertEqual(r.returncode, 0, r.stderr)
            results = json.loads(out.read_text(encoding="utf-8"))["results"]
        self.assertEqual({x["contender"] for x in results}, set(names))
        for x in results:
            self.assertIn(x["verdict"], ("unjudged",) if x["contender"] == "ours dense" else ("ok", "loose"), x)
            self.assertGreater(x["median_s"], 0)
        self.assertEqual(r.stdout.count("\ntiny "), 2)

    @unittest.skipUnless(has_torch, "this Python lacks torch 2 or numpy")
    def test_quick_training(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "x.json"
            names = ["ours", "eager sdpa", "eager plain"]
            r = peers("--train", "--quick", "--repeat", "1", "--contenders", ",".join(names), "--json", out)
            self.assertEqual(r.returncode, 0, r.stderr)
            results = json.loads(out.read_text(encoding="utf-8"))["results"]
        self.assertEqual(len(results), 3 * 2 * 2)  # contenders, cases, with dropout and without
        for x in results:
            self.assertIn(x["verdict"], ("ok",) if x["contender"] == "ours" else ("ok", "loose"), x)
            self.assertGreater(min(x["median_s"], x["cpu_median_s"]), 0)
        self.assertEqual(r.stdout.count("\ntiny "), 4)


if __name__ == "__main__":
    cmocka_count.run_cases()
