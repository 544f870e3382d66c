#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""width_test.py MASKC MASKBERT|-: does each command, on masks of many heads and long names, keep to 100 columns where stdout is no
terminal, without losing words? Closes with cmocka's lines, so that tools/count_tests adds it up."""
import contextlib
import io
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/compare"), str(ROOT / "tests/support")]
import cmocka_count  # noqa: E402
import peers_report  # noqa: E402
from common import terminal  # noqa: E402

MOST, LENGTH, LAYERS, HEADS = 100, 32, 12, 12
LONG = "longformer(4,1) | window(3) | blocks(4, shift=1) | columns(0, 5, 9) - diagonal(7)"
MASKC, MASKBERT = (str(pathlib.Path(p).resolve()) if p != "-" else None for p in sys.argv[1:3])


def entry(kind, offsets, i, j):
    return (j - i in offsets, abs(i - j) <= kind // 4 % 5, i // 8 == j // 8 or j in offsets, abs(i - j) < 2 or (i * 7 + j * 3) % 11 == kind % 11)[kind % 4]


def write_masks(path):
    """A boolean .npy [layers, heads, n, n] of different masks."""
    draw, places = random.Random(1), range(LENGTH)
    body = bytearray()
    for kind in range(LAYERS * HEADS):
        offsets = draw.sample(range(-20, 20), 6)
        body += bytes(entry(kind, offsets, i, j) for i in places for j in places)
    head = str({"descr": "|b1", "fortran_order": False, "shape": (LAYERS, HEADS, LENGTH, LENGTH)}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + body)


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="maskc-width-")
        cls.at = pathlib.Path(cls.folder.name)
        cls.environment = {"XDG_CACHE_HOME": str(cls.at / "cache")} | {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "ARGP_HELP_FMT")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_line(self, program, *words, given="", code=0):
        done = subprocess.run([program, *map(str, words)], input=given, capture_output=True, text=True, cwd=self.at, env=self.environment, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def narrow(self, program, *words, given=""):
        """The output, which has lines, none too long."""
        out = self.run_line(program, *words, given=given).stdout
        wide = [line for line in out.split("\n") if len(line) > MOST]
        self.assertTrue(out.strip(), words)
        self.assertEqual(wide, [], words)
        return out

    def check_help(self, program):
        names = re.findall(rf"^  {pathlib.Path(program).name} (\S+)", self.narrow(program), re.M)
        self.assertGreater(len(names), 10)
        for name in names:
            self.narrow(program, name, "--help")


class Maskc(Program):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_masks(cls.at / "many.npy")

    def test_help(self):
        self.check_help(MASKC)
        said = self.narrow(MASKC, "plan", "--help")
        titles = re.findall(r"^ (\w[\w ]*):$", said, re.M)
        self.assertEqual(titles, ["Most used", "Mask", "Kernel", "Output"])

    def test_show_and_plan_of_many_heads(self):
        for words in (), ("--layer", 1), ("--layer", 1, "--head", 2):
            for command in "show", "plan":
                said = self.narrow(MASKC, command, "many.npy", *words)
                self.assertLess(said.count("\n"), 140, command)
                self.assertEqual("--wide all" in said, "--head" not in words, (command, words))

    def test_every_head_is_in_one_group(self):
        said = self.narrow(MASKC, "plan", "many.npy", "--layer", 1)
        found = []
        for numbers in re.findall(r"^heads? ([\d,-]+)", said, re.M):
            for part in numbers.split(","):
                low, _, high = part.partition("-")
                found += range(int(low), int(high or low) + 1)
        self.assertEqual(sorted(found), list(range(HEADS)))

    def test_one_head_is_part_of_all(self):
        for command in "show", "plan":
            words = [command, "many.npy", "--layer", 1]
            one = self.narrow(MASKC, *words, "--head", 3)
            section = one.split("\n\n")[1].split("\n", 1)[1]
            everything = self.run_line(MASKC, *words, "--wide").stdout
            self.assertIn(" ".join(section.split()), " ".join(everything.split()))

    def test_refused(self):
        for words in ("plan", "many.npy", "--head", 3), ("plan", "many.npy", "--layer", 1, "--head", HEADS), ("show", "many.npy", "--head", HEADS), (
                "plan", "star", "-n", 32, "--head", 1, "--json"), ("show", "many.npy", "--head", 1, "--json"), ("show", "many.npy", "--head", 1, "-o", "x.svg"):
            done = self.run_line(MASKC, *words, code=2)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), words)

    def test_long_names(self):
        self.narrow(MASKC, "show", LONG, "-n", LENGTH)
        self.narrow(MASKC, "plan", LONG, "-n", LENGTH, "--target", "sm_90a", "--dtype", "bf16")
        self.narrow(MASKC, "order", "star", "-n", 16, "-o", "order.npy")
        self.narrow(MASKC, "gallery")
        self.narrow(MASKC, "devices")

    def test_kernels(self):
        self.narrow(MASKC, "compile", "many.npy", "--layer", 1, "--head-dim", 16, "--target", "x86-64-v2", "-o", "many.mkb")
        self.narrow(MASKC, "info", "many.mkb")
        self.narrow(MASKC, "info", "many.mkb", "--head", 3)
        self.narrow(MASKC, "cache", "list")
        said = self.narrow(MASKC, "bench", LONG, "-n", LENGTH, "--dtype", "f32", "--heads", 1, "--seconds", 0.001, "--threads", 1)
        self.assertIn("predicted", said)


@unittest.skipUnless(MASKBERT, "maskbert is not built")
class Maskbert(Program):
    def test_help(self):
        self.check_help(MASKBERT)

    def test_model(self):
        text = "a line of text\nthe second line is longer\nthird\nthe last of four lines\n" * 2
        self.narrow_or_silent("vocab", "--size", 60, "-o", "vocab.txt", given=text)
        self.narrow_or_silent("init", "--size", "1x32x16", "--vocab", "vocab.txt", "--positions", 16, "-o", "model")
        (self.at / "text.txt").write_text(text)
        self.narrow(MASKBERT, "info", "model")
        self.narrow(MASKBERT, "memory", "model", "--batch", 2)
        said = self.narrow(MASKBERT, "bench", "model", "--batch", 1, "-n", 8, "--mask", LONG, "--seconds", 0.001, "--threads", 1)
        self.assertIn("diagonal(7)", said.replace("\n", " "))
        self.narrow(MASKBERT, "prune", "model", "--input", "text.txt", "--keep", "12.5", "--drop-diagonal", "-o", "pruned", "--threads", 1)

    def narrow_or_silent(self, *words, given=""):
        for line in self.run_line(MASKBERT, *words, given=given).stdout.split("\n"):
            self.assertLessEqual(len(line), MOST, words)


class Tables(unittest.TestCase):
    """The printer of the Python tools, and tables made by it."""

    def check(self, text):
        self.assertEqual([line for line in text.split("\n") if len(line) > MOST], [])

    def test_table(self):
        row = [LONG, "forward", *(f"{1.5 * k:.3f}" for k in range(25))]
        head = ["mask", "pass", *(f"figure {k}" for k in range(25))]
        for count in 4, 12, 27:
            text = terminal.table(head[:count], [row[:count]] * 2, 2)
            self.check(text)
            for cell in row[2:count]:
                self.assertIn(f" {cell}", text)
        self.assertEqual(len(terminal.table(head, [row], 2, None).split("\n")), 2)
        folded = terminal.fold("word, " * 60)
        self.check(folded)
        self.assertEqual(folded.split(), ["word,"] * 60)

    def test_rows_of_peers(self):
        row = dict.fromkeys(peers_report.COLUMNS, "1234.567") | {"mask": LONG, "sparsity": "97.3 %", "n": "16384", "dtype": "bf16", "pass": "forward", "verified": "all"}
        for verdict in "all", "sdpa+mask FAILED; " * 12:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                peers_report.Table([LONG]).line(row | {"verified": verdict})
            self.check(said.getvalue())
            self.assertIn("diagonal(7)", said.getvalue())

    def test_quickstart(self):
        mask, result = "longformer(64,2)", {"pass": "forward", "lowering": "tiles+columns+diagonal+rows", "predicted_s": 0.012345, "median_s": 0.012345, "dense_s": 0.123456,
                                            "speedup": 10, "length": 2048, "heads": 12, "head_dim": 64, "dtype": "f32", "batch": 1, "cpu_share": 0.5}
        plan = {"machine": "x86-avx512", "masks": [{"pass": "forward", "reason": "a reason of many words; " * 12}]}
        files = {"show": {"masks": [{"heads": [0], "sparsity": 97.25}]}, "plan": plan, "verify": {"ok": True, "checks": [{"error": 0, "tolerance": 1}] * 26},
                 "bench": {"device": "cpu (x86-64-amx)", "threads": 2, "busy": True, "results": [result, result | {"pass": "backward"}]}}
        script = ROOT / "tools/quickstart_table"
        with tempfile.TemporaryDirectory() as folder:
            for kind, content in files.items():
                (pathlib.Path(folder) / f"longformer-64-2.{kind}.json").write_text(json.dumps(content))
            said = subprocess.run([sys.executable, str(script), folder, mask], capture_output=True, text=True, check=True).stdout
        self.check(said)
        self.assertIn("123.456", said)


if __name__ == "__main__":
    sys.argv[1:] = []
    cmocka_count.run_cases()
