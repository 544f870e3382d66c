#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_stages_test.py MASKC: the stages of tools/gpu-check without a GPU: on the emulated device, and that a second
call goes on where the first stopped. Closes with cmocka's lines, so that tools/count_tests adds it up.
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
from gpu_check_help import MASKC, gpu_check, run_of  # noqa: E402
import cmocka_count  # noqa: E402
import gpu_check_bert as bert  # noqa: E402
import gpu_check_stages as stages  # noqa: E402


def has_nvrtc():
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([MASKC, "compile", "dense", "-n", "16", "--target", "sm_80", "-o",
                               f"{folder}/k.mkb"], capture_output=True, check=False)
    return made.returncode == 0


class StagesTest(unittest.TestCase):
    def test_goes_on_where_it_stopped(self):
        with tempfile.TemporaryDirectory() as folder:
            seen = []
            cases = {name: lambda name=name: seen.append(name) or {"ok": True} for name in "ab"}
            self.assertEqual(run_of(folder, -1).each(cases), 2)
            run = run_of(folder)
            run.kept.put("verify", "a", {"ok": True})
            self.assertEqual(run.each(cases), 0)
            self.assertEqual(seen, ["b"])

    def test_what_the_deadline_stops_is_left(self):
        def slow(run):
            return {"ok": run.command("sleep", "60")[0] == 0}

        with tempfile.TemporaryDirectory() as folder:
            for first, left, kept in (({"ok": True}, 2, ["a"]), (None, 0, ["a", "b"])):
                began = time.monotonic()
                run = run_of(folder, began + 1)
                cases = {"a": lambda: first, "b": lambda run=run: slow(run)}
                if first:
                    cases["c"] = lambda: {"ok": True}
                self.assertEqual(run.each(cases), left)
                self.assertLess(time.monotonic() - began, 1 + stages.GRACE)
                self.assertEqual(list(run.kept.stage("verify")), kept)
            self.assertFalse(run.kept.stage("verify")["b"]["ok"])

    def test_the_dead_are_tried_again_last(self):
        with tempfile.TemporaryDirectory() as folder:
            run, seen = run_of(folder), []
            run.kept.put("verify", "a", {"ok": False, "dead": True})
            run.kept.put("verify", "b", {"ok": False})
            cases = {name: lambda name=name: seen.append(name) or {"ok": True} for name in "abc"}
            self.assertEqual(run.each(cases), 0)
            self.assertEqual(seen, ["c", "a"])
            self.assertEqual(run.kept.stage("verify"), {"a": {"ok": True}, "b": {"ok": False}, "c": {"ok": True}})

    def test_a_traceback_says_its_last_line(self):
        self.assertEqual(stages.reason_in("Traceback (most recent call last):\n  File x\nOSError: no\n"), "OSError: no")
        self.assertEqual(stages.reason_in("maskc: first\nmore\n"), "maskc: first")

    def test_variants_are_verified_and_sanitized(self):
        with tempfile.TemporaryDirectory() as folder:
            run = run_of(folder)
            run.o.device, run.o.masks, run.o.length = "cuda", None, None
            with unittest.mock.patch("shutil.which", lambda name: name):
                names = list(stages.verify_cases(run))
        for k, (mask, n, dtype, head_dim, options, _) in enumerate(stages.known.VARIANTS):
            name = " ".join([f"{mask} n={n} {dtype} D={head_dim}", *(["options=" + " ".join(options)] if options else [])])
            self.assertIn(name, names)
            sanitized = [x for x in names if x.startswith(f"{name} under=")]
            self.assertEqual(len(sanitized), 2 if k in stages.known.SANITIZED else 0, name)

    def test_variants_are_what_their_rows_say(self):
        for mask, n, dtype, head_dim, options, wanted in stages.known.VARIANTS:
            with tempfile.TemporaryDirectory() as folder:
                made = subprocess.run([MASKC, "emit", mask, "-n", str(n), "--heads", "3", "--dtype", dtype, "--head-dim",
                                       str(head_dim), *options, "--target", "sm_90a", "-o", f"{folder}/k"],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(made.returncode, 0, made.stderr)
                text = (pathlib.Path(folder) / "k/kernel_config.h").read_text(encoding="utf-8")
            self.assertNotIn("RESIDENT_ROWS", text, mask)
            for name, value in wanted.items():
                self.assertRegex(text, rf"\b{name}( =)? {value}\b", (mask, n, dtype, head_dim, options))

    def test_verifies_all_under_the_sanitizer(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder) / "compute-sanitizer"
            tool.write_text("#!/bin/sh\n", encoding="utf-8")
            tool.chmod(0o755)
            run = run_of(folder)
            run.o.device, run.o.masks, run.o.length = "cuda", None, None
            with unittest.mock.patch.dict(os.environ, {"PATH": folder}):
                names = list(stages.verify_cases(run))
        for check in ("memcheck", "racecheck"):
            for mask in stages.known.GALLERY:
                for n in (128, 512):
                    self.assertTrue([x for x in names if x.startswith(f"{mask} n={n} bf16") and check in x])
            for head_dim in stages.known.HEAD_DIMS:
                for n in (128, 512):
                    self.assertTrue([x for x in names if f" n={n} bf16 D={head_dim} " in x and check in x])
        for head_dim in stages.known.HEAD_DIMS:
            for dtype in ("f16", "f32", "tf32"):
                self.assertTrue([x for x in names if x.endswith(f" n=512 {dtype} D={head_dim}")])

    @unittest.skipUnless(has_nvrtc(), "no NVRTC")
    def test_verifies_on_the_emulated_device(self):
        with tempfile.TemporaryDirectory() as folder:
            run = run_of(folder)
            made = stages.verify_one(run, "star", 24, "bf16")
            self.assertTrue(made["ok"], made)
            self.assertGreater(made["checks"], 10)
            self.assertFalse(stages.verify_one(run, "windw(2)", 24, "f32")["ok"])


class TimingTest(unittest.TestCase):
    def run_of(self, folder):
        run = run_of(folder)
        run.o.device, run.o.masks, run.o.length, run.stage = "cuda", None, None, "time"
        return run

    def test_masks_of_each_length(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.run_of(folder)
            for n in (128, 512, 2048):
                self.assertLessEqual(set(stages.known.GALLERY), set(stages.timed_masks(run, "time", n)))
            for stage in ("time", "peers"):
                self.assertEqual(stages.timed_masks(run, stage, 1024), ["blockbert-2", "blockbert-3"])
            self.assertEqual(stages.timed_masks(run, "peers", 2048), list(stages.known.TIMED))
            self.assertEqual(list(stages.STAGES).index("calibrate") + 1, list(stages.STAGES).index("time"))

    def one(self, run, crashes, asked):
        """The cell of three masks, of which those in `crashes` end the process before they have a row."""
        def peers(run, n, dtype, direction, masks, contenders):
            asked.append(masks)
            rows = []
            for mask in masks:
                if mask in crashes:
                    return 1, "peers: ended early: illegal address", {"mma": None, "results": rows}
                rows.append({"mask": mask, "contender": "ours", "verdict": "ok", "length": n, "dtype": dtype,
                             "pass": direction})
            return 0, "", {"mma": None, "results": rows}
        with unittest.mock.patch.object(stages, "run_peers", peers):
            return stages.peers_one(run, "cell", ["a", "b", "c"], None, 128, "bf16", "forward")

    def test_a_crash_takes_no_other_mask_along_and_is_tried_again(self):
        with tempfile.TemporaryDirectory() as folder:
            run, asked = self.run_of(folder), []
            made = self.one(run, "b", asked)
            self.assertEqual(asked, [["a", "b", "c"], ["b"], ["c"]])
            self.assertEqual([r["mask"] for r in made["results"]], ["a", "c"])
            self.assertTrue(made["dead"])
            self.assertIn("illegal address; no figures of b", made["said"])
            run.kept.put("time", "cell", made)
            self.assertTrue(run.kept.wrong())
            asked.clear()
            made = self.one(run, "", asked)
            self.assertEqual(asked, [["b"]])
            self.assertEqual((made["ok"], made["dead"], len(made["results"])), (True, False, 3))

    def test_calibrates_again_where_the_rates_are_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            run, asked = self.run_of(folder), []
            run.stage, path = "calibrate", pathlib.Path(folder) / "rates"

            def command(*words):
                asked.append(words)
                return 0, json.dumps({"probes": [], "path": str(path)}), ""
            path.touch()
            with unittest.mock.patch.object(run, "command", command):
                stages.calibrate(run)
                stages.calibrate(run)
                self.assertEqual(len(asked), 1)
                path.unlink()
                stages.calibrate(run)
                self.assertEqual(len(asked), 2)

    def test_no_result_at_all_is_dead(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.run_of(folder)
            with unittest.mock.patch.object(run, "command", lambda *words: (3, "", "peers: needs torch")):
                made = stages.peers_one(run, "cell", ["a"], None, 128, "bf16", "forward")
            self.assertEqual((made["ok"], made["dead"], made["results"]), (False, True, []))
            self.assertIn("peers: needs torch", made["said"])

    def script(self, path, *lines):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", encoding="utf-8")
        path.chmod(0o755)

    def test_without_torch_other_stages_run(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            self.script(folder / "bin/nvidia-smi", "echo Some GPU")
            self.script(folder / "bin/ninja")
            self.script(folder / "build/tools/maskc/maskc", """echo '{"probes": [], "path": "there"}'""")
            (folder / "build/build.ninja").touch()
            (folder / "torch.py").write_text("raise ImportError('hidden')\n", encoding="utf-8")
            said = gpu_check("--build", str(folder / "build"), "--out", str(folder / "out"), "--stages",
                             "time,peers,calibrate", PATH=f"{folder}/bin:{os.environ['PATH']}", PYTHONPATH=str(folder))
            table = next((folder / "out").glob("*.md")).read_text(encoding="utf-8")
        self.assertEqual(said.returncode, 3, said.stderr)
        self.assertEqual(said.stderr.count("\n"), 1, said.stderr)
        self.assertIn("time, peers left out: needs Python's torch and numpy", said.stderr)
        self.assertIn("calibrate: 1 cases, 0 wrong", said.stdout)
        for stage in ("time", "peers"):
            self.assertIn(f"**{stage}** left out: needs Python's torch", table)


class BertTest(unittest.TestCase):
    def test_errors(self):
        self.assertEqual(bert.errors([1, 2], [1, 2]), (0, 0))
        self.assertAlmostEqual(bert.errors([1, 2.5], [1, 2])[0], 0.25)
        self.assertFalse(bert.errors([1, float("nan")], [1, 2])[0] <= 1)

    @unittest.skipUnless((pathlib.Path(MASKC).parents[1] / "maskbert/maskbert").exists(), "no maskbert")
    def test_verifies_on_the_emulated_device(self):
        with tempfile.TemporaryDirectory() as folder:
            run = run_of(folder)
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
            run = run_of(folder)
            bert.POSITIONS = 64
            kept = {"time tiny": bert.time_one(run, "1x32x4", "window(3)", 1, 8, "same", "f32")}
            self.assertTrue(kept["time tiny"]["ok"], kept)
            kept["verify x"] = {"ok": False, "said": "off"}
            text = "\n".join(bert.lines(kept))
            self.assertIn("- **verify x**: off", text)
            self.assertRegex(text, r"\| tiny \| [0-9.]+ \| [0-9]+ \|")


if __name__ == "__main__":
    cmocka_count.run_cases()
