#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_test.py BUILD: tools/gpu-check without a GPU: its words, its verify stage on the emulated
device, and that a second call goes on where the first stopped. Closes with cmocka's lines, so that
tools/count_tests adds it up.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/compare")]
import gpu_check_bert as bert  # noqa: E402
import gpu_check_results as results  # noqa: E402
import gpu_check_stages as stages  # noqa: E402

MASKC = os.path.abspath(sys.argv[1])


def gpu_check(*arguments, **environment):
    return subprocess.run([sys.executable, str(ROOT / "tools/gpu-check"), *arguments], text=True,
                          capture_output=True, check=False, env=os.environ | environment)


def has_nvrtc():
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([MASKC, "compile", "dense", "-n", "16", "--target", "sm_80", "-o",
                               f"{folder}/k.mkb"], capture_output=True, check=False)
    return made.returncode == 0


class WordsTest(unittest.TestCase):
    def test_help(self):
        said = gpu_check("--help")
        self.assertEqual(said.returncode, 0)
        for word in ("verify", "peers", "calibrate", "maskbert", "--make-sysroot", "exit codes"):
            self.assertIn(word, said.stdout)

    def test_bad_usage(self):
        for arguments in (["--stages", "dance"], ["--budget", "0"], ["--device", "tpu"]):
            self.assertEqual(gpu_check(*arguments).returncode, 2, arguments)

    def test_no_gpu(self):
        said = gpu_check(PATH="/proc/nonexistent")
        self.assertEqual((said.returncode, said.stdout), (3, ""))
        self.assertIn("no GPU", said.stderr)

    def test_sysroot_without_headers(self):
        said = gpu_check("--sysroot", "/proc/nonexistent")
        self.assertEqual(said.returncode, 2)
        self.assertIn("--make-sysroot", said.stderr)


class ResultsTest(unittest.TestCase):
    def test_kept_and_reused(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            kept = results.Results(folder, "Some GPU 80GB", "abc", False)
            kept.put("verify", "star", {"ok": True})
            self.assertTrue(kept.path.name.startswith("some-gpu-80gb-20"))
            self.assertEqual(results.Results(folder, "Some GPU 80GB", "abc", False).stage("verify"),
                             {"star": {"ok": True}})
            for device, sources, fresh in (("Some GPU 80GB", "abd", False), ("Some GPU 80GB", "abc", True)):
                self.assertEqual(results.Results(folder, device, sources, fresh).stage("verify"), {})

    def test_wrong_is_ours_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = results.Results(pathlib.Path(folder), "x", "abc", False)
            row = {"mask": "a|b", "length": 64, "dtype": "f32", "pass": "forward", "median_s": 1e-3,
                   "floor_s": 1e-4}
            kept.put("peers", "c", {"results": [row | {"contender": "eager", "verdict": "wrong"}]})
            self.assertFalse(kept.wrong())
            kept.put("peers", "d", {"results": [row | {"contender": "ours", "verdict": "wrong"}]})
            self.assertTrue(kept.wrong())
            self.assertIn("| a\\|b | 64 | f32 | forward | 0.1000 | 1.0000 |",
                          kept.path.with_suffix(".md").read_text(encoding="utf-8"))


class StagesTest(unittest.TestCase):
    def run_of(self, folder, deadline):
        kept = results.Results(pathlib.Path(folder), "emulated", "abc", False)
        options = type("Options", (), {"device": "emulated", "masks": ["star"], "length": [24],
                                       "build": pathlib.Path(MASKC).parents[2]})
        return stages.Run(options, dict(os.environ), kept, "verify", deadline)

    def test_goes_on_where_it_stopped(self):
        with tempfile.TemporaryDirectory() as folder:
            seen = []
            cases = {name: lambda name=name: seen.append(name) or {"ok": True} for name in "ab"}
            self.assertEqual(self.run_of(folder, -1).each(cases), 2)
            run = self.run_of(folder, float("inf"))
            run.kept.put("verify", "a", {"ok": True})
            self.assertEqual(run.each(cases), 0)
            self.assertEqual(seen, ["b"])

    def test_what_the_deadline_stops_is_left(self):
        def slow(run):
            return {"ok": run.command("sleep", "60")[0] == 0}

        with tempfile.TemporaryDirectory() as folder:
            for first, left, kept in (({"ok": True}, 2, ["a"]), (None, 0, ["a", "b"])):
                began = time.monotonic()
                run = self.run_of(folder, began + 1)
                cases = {"a": lambda: first, "b": lambda run=run: slow(run)}
                if first:
                    cases["c"] = lambda: {"ok": True}
                self.assertEqual(run.each(cases), left)
                self.assertLess(time.monotonic() - began, 1 + stages.GRACE)
                self.assertEqual(list(run.kept.stage("verify")), kept)
            self.assertFalse(run.kept.stage("verify")["b"]["ok"])

    def test_verifies_all_under_the_sanitizer(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder) / "compute-sanitizer"
            tool.write_text("#!/bin/sh\n", encoding="utf-8")
            tool.chmod(0o755)
            run = self.run_of(folder, float("inf"))
            run.o.device, run.o.masks, run.o.length = "cuda", None, None
            with unittest.mock.patch.dict(os.environ, {"PATH": folder}):
                names = list(stages.verify_cases(run))
        for check in ("memcheck", "racecheck"):
            for mask in stages.GALLERY:
                for n in (128, 512):
                    self.assertTrue([x for x in names if x.startswith(f"{mask} n={n} bf16") and check in x])
            for head_dim in stages.HEAD_DIMS:
                self.assertTrue([x for x in names if f"D={head_dim} " in x and check in x])

    @unittest.skipUnless(has_nvrtc(), "no NVRTC")
    def test_verifies_on_the_emulated_device(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.run_of(folder, float("inf"))
            made = stages.verify_one(run, "star", 24, "bf16")
            self.assertTrue(made["ok"], made)
            self.assertGreater(made["checks"], 10)
            self.assertFalse(stages.verify_one(run, "windw(2)", 24, "f32")["ok"])


class BertTest(unittest.TestCase):
    def run_of(self, folder):
        return StagesTest.run_of(self, folder, float("inf"))

    def test_errors(self):
        self.assertEqual(bert.errors([1, 2], [1, 2]), (0, 0))
        self.assertAlmostEqual(bert.errors([1, 2.5], [1, 2])[0], 0.25)
        self.assertFalse(bert.errors([1, float("nan")], [1, 2])[0] <= 1)

    @unittest.skipUnless((pathlib.Path(MASKC).parents[1] / "maskbert/maskbert").exists(), "no maskbert")
    def test_verifies_on_the_emulated_device(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.run_of(folder)
            cases = bert.cases(run)
            self.assertEqual(len(cases), bert.EMULATED)
            made = cases["verify heads of 8 f32 window(3) softmax"]()
            self.assertTrue(made["ok"], made)
            self.assertLess(made["worst"], 2e-5)
            wrong = bert.verify_one(run, "1x32x4", 64, "f32", "windw(2)", "softmax", 0.2)
            self.assertFalse(wrong["ok"])
            self.assertIn("windw", wrong["said"])

    @unittest.skipUnless((pathlib.Path(MASKC).parents[1] / "maskbert/maskbert").exists(), "no maskbert")
    def test_times_and_prints(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.run_of(folder)
            bert.POSITIONS = 64
            kept = {"time tiny": bert.time_one(run, "1x32x4", "window(3)", 1, 8, "same", "f32")}
            self.assertTrue(kept["time tiny"]["ok"], kept)
            kept["verify x"] = {"ok": False, "said": "off"}
            text = "\n".join(bert.lines(kept))
            self.assertIn("- **verify x**: off", text)
            self.assertRegex(text, r"\| tiny \| [0-9.]+ \| [0-9]+ \|")


def main():
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    bad, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"[  PASSED  ] {result.testsRun - bad - skipped} test(s).")
    print(f"[  SKIPPED ] {skipped} test(s).")
    print(f"[  FAILED  ] {bad} test(s).")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
