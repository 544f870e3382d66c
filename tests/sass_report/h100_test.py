#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""h100_test.py MASKC FOLDER: times that `tools/sass --model h100` predicts beside those measured on one (tests/results/h100-b84ec2a). Its
counts are those of h100_counts.json; where nvdisasm and NVRTC are, the machine of SASS in FOLDER counts one case of today's kernels.
h100_test.py --store CASE FILE BATCH HEADS writes what `tools/sass ... --model h100 --json` printed to FILE into h100_counts.json. Closes with
cmocka's lines, so that tools/count_tests adds it up.
"""
import array
import contextlib
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from sass_report_help import ROOT, program  # noqa: E402
import cmocka_count  # noqa: E402
import h100  # noqa: E402

FIXTURE = pathlib.Path(__file__).with_name("h100_counts.json")
TIMING = ROOT / "tests/results/h100-b84ec2a/timing.txt"
WITHIN, ELSEWHERE = 0.15, 0.30  # of the measured time: rows that the model has to keep to; others, which took no part in the fit
HEADS, TOKENS = 12, 65536

# Measured on the same day, ms: forward with a loop of its own for whole tiles of a range; backward with that and with its own
# rows in registers. The counted kernels are these prototypes, which hold that loop alone.
PROTOTYPES = {"dense whole-tile loop": (1.529, 5.03)}
KEPT = [f"{mask} n={n}" for mask in ("dense", "causal", "window(256)") for n in (2048, 8192)] + list(PROTOTYPES)


def measured():
    """{"mask n=length", with the head dimension and type where they are not 64 and bfloat16: (forward, backward) in ms}: ours."""
    made = {}
    for line in TIMING.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[0] == "ours" and len(words) > 8:
            case = " ".join(x for x in (*words[1:3], *words[4:6]) if x not in ("D=64", "bfloat16"))
            made.setdefault(case, {})[words[6]] = float(words[7])
    return {case: (x["fwd"], x["both"] - x["fwd"]) for case, x in made.items()} | PROTOTYPES


def predicted(case):
    """(forward, backward) in ms, and the launches."""
    made = [h100.predict(c, case["batch"], case["heads"]) for c in case["counts"]]
    forward = sum(p["ms"] for p in made if "forward" in p["kernel"])
    return (forward, sum(p["ms"] for p in made) - forward), made


CASES = json.loads(FIXTURE.read_text(encoding="utf-8")) if FIXTURE.exists() else {}


def store(name, path, batch, heads):
    """Counts with invented works, of which the test needs only the proportions."""
    counts = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["counts"]
    for c in counts:
        c["works"] = [round(x / 100) for x in c["works"]]
    made = CASES | {name: {"batch": int(batch), "heads": int(heads), "counts": counts}}
    lines = [f"{json.dumps(k)}: {json.dumps(made[k], separators=(',', ':'))}" for k in sorted(made)]
    FIXTURE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


class PredictionTest(unittest.TestCase):
    def test_measured(self):
        self.assertEqual(set(KEPT) - set(CASES), set())
        times = measured()
        for name, case in CASES.items():
            found, launches = predicted(case)
            for what, ms, real in zip(("forward", "backward"), found, times[name]):
                binds = ", ".join(h100.TITLES[p["binds"]] for p in launches if ("forward" in p["kernel"]) == (what == "forward"))
                print(f"{name:24} {what:8}  measured {real:7.3f}  predicted {ms:7.3f}  ratio {ms / real:.2f}  {binds}")
                with self.subTest(name=name, what=what):
                    self.assertLess(abs(ms / real - 1), WITHIN if name in KEPT else ELSEWHERE)

    def test_changes_show(self):
        """The prototypes' order: both are faster than today's kernels, by less than their instructions."""
        today, changed = (predicted(CASES[name])[1] for name in ("dense n=2048", "dense whole-tile loop"))
        for before, after in zip(today, changed):
            self.assertLess(after["ms"], before["ms"])
            self.assertGreater(after["ms"] / before["ms"], after["units"]["issue"] / before["units"]["issue"] * 0.9)

    def test_units(self):
        """Each unit's time from a launch of round numbers."""
        c = {"kernel": "k", "warps": 4, "resident": 2, "products": 4e9, "slots": 4e9, "wavefronts": 1e9, "sectors": 1e9, "moved": 1e8,
             "alone": 2e9, "waited": 264e4, "trips": 2640, "works": [1] * 264}
        made = h100.predict(c, 1)
        cycle = 1e3 / h100.PROCESSORS / h100.CLOCK
        for unit, ms in {"tensor": 6e9 * cycle, "issue": 1e9 * cycle, "shared": 1e9 * cycle, "l2": 1e3 * 32e9 / h100.L2_LINK,
                         "dram": 1e3 * 32e8 / h100.DRAM, "latency": 1e9 * cycle}.items():
            self.assertAlmostEqual(made["units"][unit], ms, delta=ms * 1e-9)
        self.assertEqual((made["binds"], made["balance"]), ("tensor", 1))
        self.assertEqual((made["work"]["loads"], made["work"]["waited"]), (2.5, 2500))
        self.assertGreater(made["ms"], max(made["units"].values()))
        self.assertLess(made["ms"], sum(made["units"].values()))

    def test_balance(self):
        self.assertEqual(h100.balance([3, 1], (1, 1), 2), 1.5)
        self.assertEqual(h100.balance([3, 1], (2, 1), 2), 1)  # sequences of a work follow each other
        self.assertEqual(h100.balance([3, 1], (1, 2), 2), 1.5)
        self.assertEqual(h100.balance([1, 1, 1], (1, 1), 2), 4 / 3)  # a last round of one

    def test_waves(self):
        """Every work is some block's, once; a wave has half of the rest; a block of the second wave starts when one ends."""
        for count in range(40):
            for blocks in range(1, 5):
                for waves in range(1, 6):
                    listed = sorted(k for share in h100.shares(count, blocks, waves) for k in share)
                    self.assertEqual(listed, list(range(count)))
        self.assertEqual([list(x) for x in h100.shares(8, 2, 2)], [[0, 2], [1, 3], [4, 6], [5, 7]])
        self.assertEqual(h100.balance([5, 1, 1, 1, 1, 1], (1, 1), 2, 1), 1.4)
        self.assertEqual(h100.balance([5, 1, 1, 1, 1, 1], (1, 1), 2, 2), 1.2)

    def test_table(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            h100.print_table(predicted(CASES["dense n=2048"])[1])
        lines = said.getvalue().splitlines()
        kernels = ["attention_forward", "attention_dq", "attention_dkv"]
        self.assertEqual([line.split()[0] for line in lines if line], ["kernel", *kernels, "by", *kernels, "sum"])
        self.assertEqual(lines[1].split()[-2:], ["L2", "link"])

    def test_refusals(self):
        for arguments, word in ((["--model", "h100", FIXTURE], "--counts"), (["--model", "a100", FIXTURE], "a100"),
                                (["--model", "h100", "--counts", FIXTURE, __file__], "neither")):
            said = program("sass", *arguments)
            self.assertEqual((said.returncode, said.stdout), (2, ""), said.stderr)
            self.assertIn(word, said.stderr)


def npy(path, shape):
    """Random numbers of unit variance."""
    count = 1
    for x in shape:
        count *= x
    draw = random.Random(1)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    data = array.array("f", (3.46 * (draw.random() - 0.5) for _ in range(count)))
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data.tobytes())


# Counts of one head's forward pass by today's kernel (the stored counts are of the kernels that were measured).
WINDOW = {"slots": 579822, "wavefronts": 184864, "sectors": 154227, "alone": 602851}


class CountedTest(unittest.TestCase):
    def test_window(self):
        """One head, forward, counted by the machine."""
        found = program("find_nvdisasm")
        if found.returncode:
            self.skipTest("no nvdisasm")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            file, counts = folder / "k.mkb", folder / "counts"
            made = subprocess.run([MASKC, "compile", "window(256)", "-n", "2048", "--heads", "1", "--dtype", "bf16", "--target", "sm_90a",
                                   "--family", "cuda_tiled", "-o", file], capture_output=True, text=True, check=False)
            if made.returncode:
                self.skipTest(made.stderr.strip().splitlines()[0])
            npy(folder / "x.npy", (1, 2048, 1, 64))
            subprocess.run([MASKC, "run", file, "--device", "cuda", *(f"--{x}={folder}/x.npy" for x in ("query", "key", "value")),
                            "-o", folder / "out"], check=True, capture_output=True, env=os.environ | {
                                "NVDISASM": found.stdout.strip(), "LD_LIBRARY_PATH": MACHINE, "MASKC_SASS_CAPABILITY": "90",
                                "MASKC_SASS_COUNTS": str(counts), "MASKC_SASS_CACHE": name})
            said = program("sass", file, "--model", "h100", "--kernel", "forward", "--counts", counts, "--batch", TOKENS // 2048,
                           "--heads", HEADS, "--json")
            self.assertEqual(said.returncode, 0, said.stderr)
            here = json.loads(said.stdout)
            self.compare(here)

    def compare(self, here):
        """With the counts of today's kernel; it is predicted faster than the measured one."""
        now, before = here["counts"][0], CASES["window(256) n=2048"]
        self.assertEqual(now["products"] * HEADS / before["heads"], before["counts"][0]["products"])
        for key, value in WINDOW.items():
            self.assertLess(abs(now[key] / value - 1), 0.02, (key, now[key]))
        self.assertLess(here["ms"], 0.9 * predicted(before)[0][0])


if __name__ == "__main__":
    if sys.argv[1] == "--store":
        sys.exit(store(*sys.argv[2:]))
    MASKC, MACHINE = map(os.path.abspath, sys.argv[1:3])
    cmocka_count.run_cases()
