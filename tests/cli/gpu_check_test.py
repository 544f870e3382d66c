#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_test.py MASKC: tools/gpu-check without a GPU: its words, and what it keeps and says of results.
Closes with cmocka's lines, so that tools/count_tests adds it up.
"""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from gpu_check_help import gpu_check  # noqa: E402
import cmocka_count  # noqa: E402
import gpu_check_results as results  # noqa: E402


class WordsTest(unittest.TestCase):
    def test_help(self):
        said = gpu_check("--help")
        self.assertEqual(said.returncode, 0)
        for word in ("verify", "peers", "calibrate", "maskbert", "--make-sysroot", "exit codes"):
            self.assertIn(word, said.stdout)

    def test_bad_usage(self):
        for arguments in (["--stages", "dance"], ["--budget", "0"], ["--device", "tpu"],
                          ["--device", "emulated", "--stages", "verify,time"]):
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
            self.assertIn("| a\\|b | 64 | f32 | forward | 0.1000 | - | 1.0000 | 1.0000 | 10 % |",
                          kept.path.with_suffix(".md").read_text(encoding="utf-8"))

    def test_ours_is_to_be_captured_in_a_graph(self):
        row = {"mask": "star", "length": 64, "dtype": "f32", "pass": "forward", "median_s": 1e-3, "verdict": "ok"}
        for contender, graph, wrong in (("ours", True, False), ("ours", False, True), ("ours-dense", False, True),
                                        ("ours", None, False), ("eager", False, False)):
            result = {"ok": True, "results": [row | {"contender": contender, "graph": graph}]}
            self.assertEqual(self.table_of("peers", result)[0], wrong, (contender, graph))

    def table_of(self, stage, result, left_out=None):
        """(whether that is wrong, the table)."""
        with tempfile.TemporaryDirectory() as folder:
            kept = results.Results(pathlib.Path(folder), "x", "abc", False)
            kept.leave_out(["time", "peers"], left_out or {})
            kept.put(stage, "c", result)
            return kept.wrong(), kept.path.with_suffix(".md").read_text(encoding="utf-8")

    def test_what_came_to_no_result_is_wrong_and_says_why(self):
        for stage in ("verify", "calibrate", "time", "peers", "maskbert"):
            wrong, text = self.table_of(stage, {"ok": False, "dead": True, "said": "no torch here"})
            self.assertTrue(wrong, stage)
            self.assertIn("no torch here", text, stage)
        self.assertTrue(self.table_of("calibrate", {"ok": False, "said": "no GPU"})[0])
        self.assertFalse(self.table_of("calibrate", {"ok": True, "made": {"probes": [], "path": "p"}})[0])

    def test_reasons_of_stages_that_are_not_asked_for_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = results.Results(pathlib.Path(folder), "x", "abc", False)
            kept.leave_out(["time", "peers"], {"time": "no torch", "peers": "no torch"})
            kept.leave_out(["peers"], {})
            self.assertEqual(kept.data["left_out"], {"time": "no torch"})

    def test_what_is_left_out_says_why(self):
        wrong, text = self.table_of("verify", {"ok": True}, {"time": "no torch"})
        self.assertFalse(wrong)
        self.assertIn("- **time** left out: no torch", text)

    def test_figures_beside_the_times(self):
        row = {"mask": "star", "length": 2048, "dtype": "bf16", "pass": "forward", "verdict": "ok"}
        rows = [row | {"contender": "ours", "median_s": 1e-3, "floor_s": 5e-4, "area_floor_s": 8e-4,
                       "predicted_s": 1.2e-3, "executed_fraction": 0.125, "load_s": 3e-3},
                row | {"contender": "ours-dense", "median_s": 4e-3, "predicted_s": 1e-3},
                row | {"contender": "sdpa-flash", "median_s": 3e-3}, row | {"contender": "flex-64", "median_s": 2e-3},
                row | {"contender": "flex-16", "median_s": 6e-3}]
        _, text = self.table_of("peers", {"ok": True, "results": rows, "copy_bytes_per_s": 3e12,
                                          "mma": {"flops_per_s": 6e14, "by": "mma.sync"}})
        self.assertIn("| star | 2048 | bf16 | forward | 0.5000 | 0.8000 | 1.0000 | 4.0000 | 3.0000 | 2.0000 | 6.0000 | "
                      "80 % | 4.00 x | 3.00 x | 2.00 x | 1.20 | 12.50 % | ok |", text)
        self.assertIn("A copy moves 3.00 TB/s; 600 TFLOP/s in products (mma.sync).", text)
        self.assertIn("1 of 2 predictions are within 25 %.", text)
        self.assertIn("Kernel files load in 3.0 ms (median of 1; the longest 3.0 ms).", text)


if __name__ == "__main__":
    cmocka_count.run_cases()
