#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_test.py MASKC: tools/gpu-check without a GPU: its options, the machine that it describes, and the files that it
keeps. Closes with cmocka's lines, so that tools/count_tests adds it up.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
from gpu_check_help import ROOT, gpu_check, script  # noqa: E402
import cmocka_count  # noqa: E402
from gpu_check import build, machine, programs, results, work  # noqa: E402


class OptionsTest(unittest.TestCase):
    def test_help(self):
        said = gpu_check("--help")
        self.assertEqual(said.returncode, 0)
        for word in ("verify", "peers", "calibrate", "python", "sanitize", "maskbert", "--make-sysroot", "--dry-run", "exit codes"):
            self.assertIn(word, said.stdout)

    def test_bad_usage(self):
        for arguments in (["--stages", "dance"], ["--budget", "0"], ["--budget", "ten"], ["--jobs", "0"], ["--device", "tpu"],
                          ["-n", "12,x"], ["--device", "emulated", "--stages", "verify,time"],
                          ["--device", "emulated", "--stages", "sanitize", "--dry-run"]):
            said = gpu_check(*arguments)
            self.assertEqual((said.returncode, said.stdout), (2, ""), arguments)

    def test_no_gpu(self):
        said = gpu_check(PATH="/proc/nonexistent")
        self.assertEqual((said.returncode, said.stdout), (3, ""))
        self.assertIn("no GPU", said.stderr)

    def test_sysroot_without_headers(self):
        said = gpu_check("--sysroot", "/proc/nonexistent")
        self.assertEqual(said.returncode, 2)
        self.assertIn("--make-sysroot", said.stderr)


class BuildTest(unittest.TestCase):
    def test_the_operator_is_that_of_this_python(self):
        with tempfile.TemporaryDirectory() as folder:
            script(f"{folder}/meson", f'echo "$@" > {folder}/words')
            script(f"{folder}/ninja", "exit 0")
            build.build(f"{folder}/build", ROOT, os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
            self.assertIn(f"-Dtorch_python={sys.executable}\n", pathlib.Path(folder, "words").read_text(encoding="utf-8"))

    def test_where_programs_find_cuda(self):
        """A toolkit outside of PATH, and pip's NVRTC beside this Python unless an environment is active."""
        with unittest.mock.patch.dict(os.environ, PATH="/bin"):
            self.assertEqual(build.environment(None)["PATH"], "/bin:/usr/local/cuda/bin")
            for active in ({}, {"VIRTUAL_ENV": "/active"}):
                os.environ.pop("VIRTUAL_ENV", None)
                os.environ.update(active)
                self.assertEqual(build.environment(None)["VIRTUAL_ENV"], active.get("VIRTUAL_ENV", sys.prefix))


class MachineTest(unittest.TestCase):
    def gpu_of(self, line):
        with tempfile.TemporaryDirectory() as folder:
            script(f"{folder}/nvidia-smi", f"echo '{line}'")
            with unittest.mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
                return machine.gpu()

    def test_the_gpu(self):
        self.assertEqual(self.gpu_of("NVIDIA H100 80GB HBM3, 580.159.04, 80994, 9.0"),
                         {"device": "NVIDIA H100 80GB HBM3", "driver": "580.159.04", "free_mib": 80994, "capability": "9.0"})
        self.assertEqual(self.gpu_of("Some GPU"), {"device": "Some GPU", "driver": "", "free_mib": None, "capability": ""})

    def test_the_gpu_that_cuda_sees(self):
        smi = """if [ "$1" = -i ]; then echo "GPU $2 in $CUDA_DEVICE_ORDER"; else echo "GPU in $CUDA_DEVICE_ORDER"; fi"""
        for seen, name in (("1,0", "GPU 1"), (" GPU-5a ", "GPU GPU-5a"), (None, "GPU"), ("", ""), ("-1", "")):
            with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
                script(f"{folder}/nvidia-smi", smi)
                os.environ.pop("CUDA_VISIBLE_DEVICES", None)
                os.environ.update({} if seen is None else {"CUDA_VISIBLE_DEVICES": seen})
                if name:
                    self.assertEqual(machine.gpu()["device"], f"{name} in PCI_BUS_ID")
                else:
                    self.assertRaisesRegex(programs.Fatal, "CUDA_VISIBLE_DEVICES is", machine.gpu)

    def test_workers(self):
        self.assertEqual(machine.workers(None, 16, 80994), 12)  # as in the run that was measured
        self.assertEqual(machine.workers(None, 16, 8192), 4)  # the GPU's memory
        self.assertEqual(machine.workers(None, 16, 100), 1)
        self.assertEqual(machine.workers(None, 2), 2)
        self.assertEqual(machine.workers(7, 2, 8192), 7)

    def test_revision(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(machine.revision(folder), "unknown")
            self.assertEqual(machine.revision(folder, "abc"), "abc")
            git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"]
            pathlib.Path(folder, "a").touch()
            for words in (["init", "-q"], ["add", "a"], ["commit", "-qm", "a"]):
                subprocess.run([*git, *words], check=True, capture_output=True)
            self.assertRegex(machine.revision(folder), "^[0-9a-f]{12}$")
            pathlib.Path(folder, "a").write_text("b", encoding="utf-8")
            self.assertRegex(machine.revision(folder), "^[0-9a-f]{12}-dirty$")

    def test_sources_are_those_that_decide_results(self):
        self.assertRegex(machine.sources(ROOT), "^[0-9a-f]{12}$")
        for folder in machine.SOURCES:
            self.assertTrue((ROOT / folder).is_dir(), folder)


class ResultsTest(unittest.TestCase):
    def test_kept_and_reused(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            kept = results.Results(folder, "Some GPU 80GB", "abc")
            kept.put("verify", "star", {"ok": True})
            self.assertTrue(kept.path.name.startswith("some-gpu-80gb-20"))
            self.assertEqual(results.Results(folder, "Some GPU 80GB", "abc").stage("verify"), {"star": {"ok": True}})
            self.assertEqual(results.Results(folder, "Some GPU 80GB", "abc", machine={"driver": "580.1", "torch": "2.11"}).data["stages"], {})
            for sources, fresh in (("abd", False), ("abc", True)):
                self.assertEqual(results.Results(folder, "Some GPU 80GB", sources, fresh).stage("verify"), {})

    def test_results_of_another_torch_or_driver_are_not_reused(self):
        with tempfile.TemporaryDirectory() as folder:
            header = {"driver": "580.1", "torch": "2.11", "revision": "b84ec2a"}
            results.Results(pathlib.Path(folder), "x", "abc", machine=header).put("time", "star", {"ok": True})
            for more, count in (({"revision": "dirty"}, 1), ({"torch": "2.12"}, 0), ({"driver": "590"}, 0)):
                self.assertEqual(len(results.Results(pathlib.Path(folder), "x", "abc", machine=header | more).stage("time")), count, more)

    def test_results_under_another_key_are_made_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            for key, count in (("a", 0), ("a", 1), ("b", 0)):
                kept = results.Results(pathlib.Path(folder), "x", "abc")
                kept.set_order([work.Stage("harness", [work.Item("causal", 1, key=key)])])
                self.assertEqual(len(kept.stage("harness")), count, key)
                kept.put("harness", "causal", {"ok": True})

    def test_a_damaged_file_is_begun_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = results.Results(pathlib.Path(folder), "x", "abc")
            kept.path.write_text("{", encoding="utf-8")
            self.assertEqual(results.Results(pathlib.Path(folder), "x", "abc").stage("verify"), {})

    def test_the_machine_is_in_both_files(self):
        with tempfile.TemporaryDirectory() as folder:
            header = {"driver": "580.1", "torch": "2.11", "revision": "b84ec2a", "cores": 16}
            kept = results.Results(pathlib.Path(folder), "Some GPU", "abc", machine=header)
            kept.put("verify", "star", {"ok": True})
            text = kept.path.with_suffix(".md").read_text(encoding="utf-8")
            self.assertEqual(json.loads(kept.path.read_text(encoding="utf-8")) | header, json.loads(kept.path.read_text(encoding="utf-8")))
            self.assertEqual(sorted(p.suffix for p in pathlib.Path(folder).iterdir()), [".json", ".md"])
        self.assertIn(f"# Some GPU, {kept.data['date']}", text)
        self.assertIn("sources abc; revision b84ec2a, driver 580.1, torch 2.11, cores 16.", text)

    def table_of(self, stage, result, left_out=""):
        """(True if the result is wrong, the Markdown)."""
        with tempfile.TemporaryDirectory() as folder:
            kept = results.Results(pathlib.Path(folder), "x", "abc")
            kept.note("left_out", "time", left_out)
            kept.put(stage, "c", result)
            return kept.wrong(), kept.path.with_suffix(".md").read_text(encoding="utf-8")

    def test_only_ours_can_be_wrong(self):
        row = {"mask": "a|b", "length": 64, "batch": 1, "head_dim": 64, "dtype": "f32", "pass": "forward", "median_s": 1e-3, "verdict": "ok"}
        for contender, more, wrong in (("ours", {}, False), ("ours", {"graph": False}, True), ("ours-dense", {"verdict": "wrong"}, True),
                                       ("eager", {"verdict": "wrong"}, False), ("eager", {"graph": False}, False)):
            result = {"ok": True, "results": [row | {"contender": contender} | more]}
            self.assertEqual(self.table_of("peers", result)[0], wrong, (contender, more))

    def test_tables_of_peers(self):
        row = {"mask": "a|b", "length": 64, "dtype": "f32", "pass": "forward", "verdict": "ok"}
        rows = [row | {"contender": c, "median_s": s} for c, s in (("ours", 1e-3), ("ours-dense", 4e-3), ("sdpa-flash", 5e-4), ("flex-64", 3e-3),
                                                                  ("flex-16", 6e-3), ("eager", 9e-3))]
        _, text = self.table_of("peers", {"ok": True, "results": rows})
        self.assertIn("| a/b | 1.000 | 4.000 | 0.500 | 3.000 | 9.000 | **0.50 x** | 3.00 x |  |", text)

    def test_a_case_without_a_result_is_wrong_and_has_its_reason(self):
        for stage in ("verify", "calibrate", "time", "python", "peers", "sanitize", "maskbert", "maskbert-f32"):
            wrong, text = self.table_of(stage, {"ok": False, "dead": True, "said": "no torch here"})
            self.assertTrue(wrong, stage)
            self.assertIn("no torch here", text, stage)
        self.assertTrue(self.table_of("calibrate", {"ok": False, "said": "no GPU"})[0])
        self.assertFalse(self.table_of("calibrate", {"ok": True, "made": {"probes": [], "path": "p"}})[0])

    def test_reports_of_the_sanitizer_are_shown(self):
        result = {"ok": False, "api": 2, "access": 1, "hazards": 0, "said": "1 wrong accesses", "report": "Invalid __global__ read"}
        _, text = self.table_of("sanitize", result)
        self.assertIn("1 cases: 1 wrong accesses, 0 hazards, 2 failed calls of the driver.", text)
        self.assertIn("```\nInvalid __global__ read\n```", text)

    def test_notes_of_other_stages_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = results.Results(pathlib.Path(folder), "x", "abc")
            for stage, reason in (("time", "no torch"), ("peers", "no torch"), ("peers", "")):
                kept.note("left_out", stage, reason)
            self.assertEqual(kept.data["left_out"], {"time": "no torch"})
        wrong, text = self.table_of("verify", {"ok": True}, "no torch")
        self.assertFalse(wrong)
        self.assertIn("- **time** left out: no torch", text)


if __name__ == "__main__":
    cmocka_count.run_cases()
