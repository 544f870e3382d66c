#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""program_test.py MASKC [--update]: tools/sass as it is called and, where nvdisasm and NVRTC are, on kernels and their budgets.
Kernels whose text, compiler and budgets are those of known.txt kept to them before and are not compiled again; --update and
MASKC_ALL_CASES compile all, --update writes the file. Closes with cmocka's lines, so that tools/count_tests adds it up.
"""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from sass_report_help import BUDGETS, only_loop, program  # noqa: E402
import budget  # noqa: E402
import cmocka_count  # noqa: E402
import figures  # noqa: E402
import hopper  # noqa: E402
import kernel_file  # noqa: E402
import report  # noqa: E402

MASKC = os.path.abspath(sys.argv[1])
UPDATE = "--update" in sys.argv[2:]
EVERY = UPDATE or bool(os.environ.get("MASKC_ALL_CASES"))
KNOWN = pathlib.Path(__file__).with_name("known.txt")
SHAPES = ((1024, 64), (1024, 32), (1024, 128), (128, 64), (128, 32))  # n, head dimension
TARGETS = "sm_80", "sm_90a"


class CommandTest(unittest.TestCase):
    def test_help(self):
        said = program("sass", "--help")
        self.assertEqual(said.returncode, 0)
        for word in ("--target", "--kernel", "--counts", "--trace", "--flash-attention", "--budget", "--model", "--heads", "--json",
                     "exit codes"):
            self.assertIn(word, said.stdout)

    def test_bad_input(self):
        for arguments, word in (([], "kernel file"), (["/nonexistent/k.mkb"], "/nonexistent"), ([__file__], "neither"),
                                (["--budget", BUDGETS], "kernel file"), (["--turns", "0"], "0"),
                                (["--flash-attention", "/proc/nonexistent"], "no such file"),
                                (["--flash-attention", __file__], "not a shared library")):
            said = program("sass", *arguments)
            self.assertEqual((said.returncode, said.stdout), (2, ""), said.stderr)
            self.assertIn(word, said.stderr)
            self.assertNotIn("Traceback", said.stderr)

    def test_finding_nvdisasm(self):
        self.assertEqual(program("find_nvdisasm", NVDISASM=sys.executable).stdout.strip(), sys.executable)
        said = program("find_nvdisasm", NVDISASM="/proc/nonexistent")
        self.assertEqual((said.returncode, said.stdout, said.stderr.count("\n")), (2, "", 1))
        said = program("find_nvdisasm", "--install", "/proc/nonexistent/x")
        self.assertEqual((said.returncode, said.stdout), (3, ""))
        self.assertIn("--install", program("find_nvdisasm", "--help").stdout)

    def test_tables(self):
        launch = kernel_file.Launch("attention_forward", "sm_80", b"", 28, 128, 4096, 16, "bf16", "loop")
        made = figures.kernel_figures(launch, only_loop("attention_forward"))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            report.print_report([made])
        words = said.getvalue().splitlines()[1].split()
        self.assertEqual(words[:7], ["attention_forward", "sm_80", "16", "00130", "60", "128", "2"])
        json.dumps(made)


def compiled(folder, *options):
    """A kernel file, or a reason that there is none."""
    path = pathlib.Path(folder) / "k.mkb"
    made = subprocess.run([MASKC, "compile", *map(str, options), "--heads", "2", "-o", str(path)], capture_output=True,
                          text=True, check=False)
    return (path, "") if made.returncode == 0 else (None, made.stderr.strip().splitlines()[0])


def shape(n, head_dim):
    return "dense", "-n", n, "--dtype", "bf16", "--head-dim", head_dim


def key_of(compilers, n, head_dim):
    """Hash of everything that decides the budgets' result: the kernels' text, the compiler, the budgets, tools/sass."""
    parts = [*sorted(compilers), *(p.read_text(encoding="utf-8") for p in sorted(BUDGETS.parent.glob("*.*")) if p.suffix != ".md")]
    for target in TARGETS:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([MASKC, "emit", *map(str, shape(n, head_dim)), "--heads", "2", "--target", target, "-o", folder], check=True,
                           capture_output=True)
            parts += [p.read_text(encoding="utf-8") for p in sorted(pathlib.Path(folder).rglob("*.*")) if p.suffix != ".safetensors"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_of(line, n, head_dim):
    return line.head_dim == head_dim and ("_resident_" in line.kernel) == (n == 128)


def compilers_of(path):
    return {t["compiler"] for t in kernel_file.KernelFile(path).targets}


def compilers_here():
    """Why kernels cannot be looked at here, or nothing; and what compiles them."""
    if program("find_nvdisasm").returncode:
        return "no nvdisasm", set()
    with tempfile.TemporaryDirectory() as folder:
        path, why = compiled(folder, "dense", "-n", "16", "--target", "sm_80", "--forward-only")
        return why, compilers_of(path) if path else set()


REASON, COMPILERS = compilers_here()


@unittest.skipIf(REASON, REASON)
class KernelTest(unittest.TestCase):
    def budget_for(self, n, head_dim):
        """One file's share of the budget: what tools/sass says."""
        with tempfile.TemporaryDirectory() as folder:
            path, why = compiled(folder, *shape(n, head_dim), "--target", ",".join(TARGETS))
            self.assertTrue(path, why)
            self.assertEqual(compilers_of(path), COMPILERS)
            return program("sass", path, "--budget", BUDGETS)

    def test_budgets(self):
        written = BUDGETS.read_text(encoding="utf-8")
        if not all(f"compiler {c}" in written for c in COMPILERS):
            self.skipTest(f"budgets are of another compiler than {', '.join(COMPILERS)}")
        before = set() if EVERY or not KNOWN.exists() else set(KNOWN.read_text(encoding="utf-8").split())
        kept = []
        for n, head_dim in SHAPES:
            with self.subTest(n=n, head_dim=head_dim):
                kept.append(key_of(COMPILERS, n, head_dim))
                if kept[-1] in before:
                    continue
                said = self.budget_for(n, head_dim)
                self.assertEqual(said.returncode, 0, said.stderr)
                self.assertEqual(int(said.stdout.split()[0]), sum(is_of(line, n, head_dim) for line in budget.read(BUDGETS)))
        self.assertEqual(len(budget.read(BUDGETS)), sum(is_of(line, *s) for s in SHAPES for line in budget.read(BUDGETS)))
        if UPDATE:
            KNOWN.write_text("\n".join(kept) + "\n", encoding="utf-8")

    def test_over_the_budget(self):
        with tempfile.TemporaryDirectory() as folder:
            path, why = compiled(folder, "dense", "-n", 1024, "--dtype", "bf16", "--target", "sm_80", "--forward-only")
            self.assertTrue(path, why)
            tight = pathlib.Path(folder) / "tight.txt"
            tight.write_text("attention_forward sm_80 bf16 64 0.01 9\n", encoding="utf-8")
            said = program("sass", path, "--budget", tight)
            self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1), said.stderr)
            tight.write_text("attention_forward sm_80 f16 64 0.01 9\n", encoding="utf-8")
            self.assertEqual(program("sass", path, "--budget", tight).returncode, 2)

    def test_launches(self):
        with tempfile.TemporaryDirectory() as folder:
            path, why = compiled(folder, "window(8)", "-n", 512, "--dtype", "bf16", "--target", "sm_80", "--forward-only")
            self.assertTrue(path, why)
            opened = kernel_file.KernelFile(path)
            self.assertEqual(opened.active_entries(), 2 * (17 * 512 - 8 * 9))
            # A kernel of whichever family runs the forward pass, counted as if each instruction had issued once.
            name = opened.targets[0]["forward"][0]["entry"]
            launch = next(x for x in opened.launches(["sm_80"]) if x.name == name)
            length = len(figures.disassembled([launch])["sm_80", name].code)
            counts = pathlib.Path(folder) / "counts"
            counts.write_text(json.dumps({"entry": name, "target": "sm_80", "blocks": 1, "counts": [1] * length}) + "\n",
                              encoding="utf-8")
            trace = pathlib.Path(folder) / "trace"
            trace.write_bytes(b"".join(struct.pack("<I", k) for k in range(10)))
            said = program("sass", path, "--counts", counts, "--trace", trace, "--kernel", name, "--json")
            self.assertEqual(said.returncode, 0, said.stderr)
            made, = json.loads(said.stdout)["kernels"]
            self.assertEqual(made["launch"]["slots"], length)
            self.assertAlmostEqual(made["launch"]["slots_per_entry"], length / opened.active_entries())
            self.assertEqual(made["trace"]["slots"], 10)
            said = program("sass", path, "--counts", trace)
            self.assertEqual(said.returncode, 2, said.stderr)

    def test_softmax_beside_products(self):
        """ptxas may move the wait for P V before softmax; then nothing hides P V."""
        for mask, head_dim in (("dense", 64), ("window(64)", 64), ("dense", 128)):
            with self.subTest(mask=mask, head_dim=head_dim), tempfile.TemporaryDirectory() as folder:
                path, why = compiled(folder, mask, "-n", 1024, "--dtype", "bf16", "--head-dim", head_dim, "--target", "sm_90a",
                                     "--family", "cuda_hopper", "--forward-only")
                self.assertTrue(path, why)
                launch = next(x for x in kernel_file.KernelFile(path).launches(["sm_90a"]) if x.name == "attention_forward")
                code = figures.disassembled([launch])[launch.target, launch.name].code
                self.assertGreaterEqual(min(hopper.exp2_beside_products(code), default=0), 32)

    def test_bare_cubins(self):
        with tempfile.TemporaryDirectory() as folder:
            path, why = compiled(folder, "dense", "-n", 1024, "--dtype", "bf16", "--target", "sm_90a", "--forward-only")
            self.assertTrue(path, why)
            whole = {k["kernel"]: k for k in json.loads(program("sass", path, "--turns", 1, "--json").stdout)["kernels"]}
            image = pathlib.Path(folder) / "k.cubin"
            image.write_bytes(kernel_file.KernelFile(path).images("sm_90a")[0])
            found = json.loads(program("sass", image, "--turns", 1, "--json").stdout)["kernels"]
            self.assertTrue([made for made in found if made["summary"]])
            for made in found:
                for key in ("target", "registers", "threads", "instructions"):
                    self.assertEqual(made[key], whole[made["kernel"]][key], key)
                slots = [x and x["slots_per_entry"] for x in (made["summary"], whole[made["kernel"]]["summary"])]
                self.assertEqual(*slots)


def main():
    if REASON:
        print(f"kernels are not looked at: {REASON}")
    cmocka_count.run_cases()


if __name__ == "__main__":
    main()
