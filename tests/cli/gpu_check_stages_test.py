#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_stages_test.py MASKC: the stages of tools/gpu-check without a GPU: which cases they have, what they make of the
output of programs. Closes with cmocka's lines, so that tools/count_tests adds it up.
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
from gpu_check_help import BUILD, MASKC, MOCK_MASKC, call_of, command_of, environment_of, mock_build, options, script  # noqa: E402
import cmocka_count  # noqa: E402
from gpu_check import calibrate, cases, maskbert, peers, programs, python_tests, sanitize, stages, timing, verify, work  # noqa: E402

MEMCHECK = """========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_NOT_FOUND (error 500) due to "named symbol not found" on CUDA API call to cuModuleGetFunction.
=========     Saved host backtrace up to driver entry point at error
=========     Host Frame: [0x2ecf35] in libcuda.so.1
=========
========= Invalid __global__ read of size 4 bytes
=========     at attention_forward+0x2a0
=========     by thread (3,0,0) in block (1,0,0)
=========
========= Program hit CUDA_ERROR_NOT_FOUND (error 500) due to "named symbol not found" on CUDA API call to cuModuleGetFunction.
========= ERROR SUMMARY: 3 errors
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
RACES = "========= COMPUTE-SANITIZER\n========= Error: Race reported between Write access at a+0x1\n" \
    "========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n"


class CasesTest(unittest.TestCase):
    def test_variants_are_what_their_rows_say(self):
        hopper = [(*v[:4], (*cases.HOPPER, *v[4]), v[5]) for v in cases.HOPPER_VARIANTS]
        for mask, n, dtype, head_dim, more, wanted in (*cases.VARIANTS, *hopper):
            with tempfile.TemporaryDirectory() as folder:
                made = subprocess.run([MASKC, "emit", mask, "-n", str(n), "--heads", str(cases.Kernel(mask, n, dtype).heads), "--dtype", dtype, "--head-dim",
                                       str(head_dim), *more, "--target", "sm_90a", "-o", f"{folder}/k"],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(made.returncode, 0, made.stderr)
                text = (pathlib.Path(folder) / "k/kernel_config.h").read_text(encoding="utf-8")
            self.assertNotIn("RESIDENT_ROWS", text, mask)
            for name, value in wanted.items():
                self.assertRegex(text, rf"\b{name}( =)? {value}\b", (mask, n, dtype, head_dim, more))

    def test_all_variants_are_verified_and_some_sanitized(self):
        o = options(device="cuda")
        known, checked = cases.verified(o), cases.sanitized(o)
        self.assertEqual(len(known), len(set(known)))
        for k, variant in enumerate(cases.VARIANTS):
            self.assertIn(cases.Kernel(*variant[:5]), known)
            if k in cases.SANITIZED:
                self.assertIn(cases.Kernel(*variant[:5]), checked[:20])

    def test_kernels_of_cuda_hopper_come_first_where_they_run(self):
        known = [cases.Kernel(*v[:4], (*cases.HOPPER, *v[4])) for v in cases.HOPPER_VARIANTS]
        for capability, count in (("9.0", len(known)), ("8.0", 0), ("", 0)):
            made = cases.verified(options(device="cuda", capability=capability))
            self.assertEqual((made[:count], sum("cuda_hopper" in k.options for k in made)), (known[:count], count))
        self.assertEqual(cases.verified(options(device="cuda"))[:len(known)], known)  # a dry run
        self.assertFalse([k for k in cases.verified(options()) if "cuda_hopper" in k.options])
        self.assertEqual([verify.target_of("cuda", k) for k in (known[0], cases.Kernel("star", 128, "f32"))], ["sm_90a", "cuda"])

    def test_every_mask_and_head_dimension_is_sanitized(self):
        checked = cases.sanitized(options(device="cuda"))
        for n in (128, 512):
            for mask in cases.GALLERY:
                self.assertIn(cases.Kernel(mask, n, "bf16"), checked)
            for head_dim in cases.HEAD_DIMS:
                self.assertIn(cases.Kernel("star", n, "bf16", head_dim), checked)

    def test_names_of_cases_have_the_masks_asked_for(self):
        """A call with --masks must not reuse figures of other masks, nor replace those of all."""
        every = [{i.name for make in (timing.stage, peers.stage) for i in make(options(device="cuda", masks=m)).items} for m in (None, ["star"], ["causal"])]
        self.assertFalse(every[0] & every[1] or every[0] & every[2] or every[1] & every[2])

    def test_stages_of_a_call(self):
        self.assertEqual(stages.names(options(device="cuda", harness=pathlib.Path("h"))), list(stages.STAGES))
        self.assertEqual(stages.names(options(device="cuda")), [name for name in stages.STAGES if name != "harness"])
        self.assertEqual(list(stages.STAGES)[:7], ["verify", "harness", "time", "python", "maskbert", "train", "calibrate"])
        self.assertEqual(stages.names(options(stages=["python", "verify"])), ["verify", "python"])
        for name, make in stages.STAGES.items():
            items = [i.name for i in make(options(device="cuda")).items]
            self.assertEqual((name, len(items)), (name, len(set(items))))


class SanitizeTest(unittest.TestCase):
    def test_driver_calls_are_counted_apart(self):
        found = sanitize.counted(MEMCHECK)
        self.assertEqual((found["api"], found["access"], found["hazards"]), (2, 1, 0))
        self.assertEqual(found["calls"], ["cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"])
        other = CLEAN.replace("0 errors", "1 error").replace("=========", "========= CUDA API Error: out of memory\n=========", 1)
        self.assertEqual([sanitize.counted(other)[k] for k in ("api", "access", "calls")], [1, 0, ["CUDA API Error: out of memory"]])
        self.assertEqual(sanitize.counted(RACES)["hazards"], 2)
        self.assertEqual(sanitize.counted(CLEAN), {"api": 0, "access": 0, "hazards": 0, "calls": []})
        self.assertIsNone(sanitize.counted("========= COMPUTE-SANITIZER\n"))

    def run_with(self, folder, report, mask="star"):
        """The result of a kernel under a mock compute-sanitizer."""
        script(f"{folder}/bin/compute-sanitizer", f"cat > \"$4\" <<'E'\n{report}E\nshift 4; exec \"$@\"")
        script(f"{folder}/build/tools/maskc/maskc", MOCK_MASKC)
        call = call_of(folder, build=f"{folder}/build")
        call.environment["PATH"] = f"{folder}/bin:{os.environ['PATH']}"
        with unittest.mock.patch.dict(os.environ, PATH=call.environment["PATH"]):
            return sanitize.sanitize_kernel(call.attempt(1), "memcheck", cases.Kernel(mask, 16, "f32"))

    def test_the_text_of_reports_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            made = self.run_with(folder, MEMCHECK)
            self.assertEqual((made["ok"], made["api"], made["access"]), (False, 2, 1))
            self.assertIn("1 wrong accesses, 2 failed calls of the driver (cuModuleGetFunction: CUDA_ERROR_NOT_FOUND)", made["said"])
            self.assertIn("at attention_forward+0x2a0", made["report"])
            made = self.run_with(folder, CLEAN)
            self.assertEqual((made["ok"], made["report"], made["checks"]), (True, "", 1))
            self.assertFalse(self.run_with(folder, CLEAN, "wrong")["ok"])
            made = self.run_with(folder, "", "crash")
            self.assertTrue(made["dead"] and "no summary" in made["said"], made)


class PythonTest(unittest.TestCase):
    PROGRAMS = {"good": "print('[  PASSED  ] 3 test(s).'); print('[  SKIPPED ] 1 test(s).')",
                "bad": "print('FAIL: test_x (__main__.A)'); print('[  PASSED  ] 1 test(s).'); print('[  FAILED  ] 1 test(s).'); sys.exit(1)",
                "lacking": "print('no transformers'); sys.exit(77)", "silent": "pass",
                "crash": "import os; os.kill(os.getpid(), 11)",
                "asked": "assert sys.argv[1:] == ['--device', 'cuda'] and os.environ['PYTHONPATH'].endswith('runtime/python');"
                         "print('[  PASSED  ] 1 test(s).')"}

    def run_all(self, device):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.PROGRAMS.items():
                pathlib.Path(folder, f"{name}_test.py").write_text(f"import os, sys\n{text}\n", encoding="utf-8")
            call = call_of(f"{folder}/out", device=device)
            with unittest.mock.patch.object(python_tests, "FOLDER", pathlib.Path(folder)):
                stage = python_tests.stage(call.o)
            self.assertEqual(work.run_stage(call, stage), [])
            return call.kept.stage("python"), call.kept.path.with_suffix(".md").read_text(encoding="utf-8")

    def test_each_program_is_a_case(self):
        made, text = self.run_all("cuda")
        self.assertEqual({name: r["ok"] for name, r in made.items()},
                         {"good": True, "bad": False, "lacking": True, "silent": False, "crash": False, "asked": True})
        self.assertEqual([made["good"][k] for k in ("passed", "failed", "skipped")], [3, 0, 1])
        self.assertEqual((made["bad"]["failed"], made["bad"]["said"], made["lacking"]["skipped"]), (1, "test_x", 1))
        self.assertTrue(made["crash"]["dead"] and made["silent"]["dead"])
        self.assertRegex(text, r"\| bad \| 1 \| 1 \| 0 \| \d+ \| test_x \|")
        self.assertFalse(self.run_all("emulated")[0]["asked"]["ok"])  # no --device there


class PeersTest(unittest.TestCase):
    def test_masks_of_each_length(self):
        o = options(device="cuda")
        self.assertEqual([peers.masks_at(o, n) for n in (1024, 2048)], [["blockbert-2", "blockbert-3"], list(peers.LONG)])
        self.assertFalse([m for m in peers.masks_at(o, 128) if "(" in m])

    def one(self, call, crashes, asked):
        """The result of three masks; those in `crashes` end the process before they have a row."""
        def run_peers(attempt, case, masks):
            asked.append(masks)
            rows = []
            for mask in masks:
                if mask in crashes:
                    return "peers: ended early: illegal address", {"mma": None, "results": rows}
                rows.append({"mask": mask, "contender": "ours", "verdict": "ok", "median_s": 1e-3})
            return "", {"mma": None, "results": rows}
        with unittest.mock.patch.object(peers, "run_peers", run_peers):
            return peers.peers_one(call.attempt(1), "peers", "cell", ["a", "b", "c"], (128, "bf16", "forward"))

    def test_a_crash_costs_its_own_mask_only_and_is_tried_again(self):
        with tempfile.TemporaryDirectory() as folder:
            call, asked = call_of(folder), []
            made = self.one(call, "b", asked)
            self.assertEqual(asked, [["a", "b", "c"], ["b"], ["c"]])
            self.assertEqual([r["mask"] for r in made["results"]], ["a", "c"])
            self.assertIn("illegal address; no figures of b", made["said"])
            call.kept.put("peers", "cell", made)
            self.assertTrue(made["dead"] and call.kept.wrong())
            asked.clear()
            made = self.one(call, "", asked)
            self.assertEqual((asked, made["ok"], made["dead"], len(made["results"])), ([["b"]], True, False, 3))


class OtherStagesTest(unittest.TestCase):
    def test_a_traceback_is_reported_by_its_last_line(self):
        self.assertEqual(programs.reason_in("Traceback (most recent call last):\n  File x\nOSError: no\n"), "OSError: no")
        self.assertEqual(programs.reason_in("maskc: first\nmore\n"), "maskc: first")

    def test_calibrates_again_where_the_rates_are_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            build, rates = mock_build(folder), pathlib.Path(folder) / "rates"
            script(build / "tools/maskc/maskc", f"""echo >> {folder}/log; echo '{{"probes": [], "path": "{rates}"}}'""")
            call = call_of(f"{folder}/out", build=build)
            for gone, count in ((False, 1), (False, 1), (True, 2)):
                rates.unlink() if gone else rates.touch()
                stage = calibrate.stage(call.o)
                self.assertEqual(stage.missing(call), "")
                work.run_stage(call, stage)
                self.assertEqual(pathlib.Path(folder, "log").read_text().count("\n"), count)

    def test_without_torch_other_stages_run(self):
        with tempfile.TemporaryDirectory() as folder:
            mock_build(folder)
            script(f"{folder}/bin/nvidia-smi", "echo Some GPU, 580.1, 81000")
            pathlib.Path(folder, "torch.py").write_text("raise ImportError('hidden')\n", encoding="utf-8")
            said = subprocess.run(command_of(folder, "--stages", "time,peers,calibrate", "--revision", "abc"), text=True, check=False,
                                  capture_output=True, env=environment_of(folder, PYTHONPATH=folder))
            table = next(pathlib.Path(folder, "out").glob("*.md")).read_text(encoding="utf-8")
            kept = json.loads(next(pathlib.Path(folder, "out").glob("some-gpu-*.json")).read_text(encoding="utf-8"))
        self.assertEqual(said.returncode, 3, said.stderr)
        self.assertIn("time left out: needs Python's torch and numpy", said.stderr)
        self.assertIn("calibrate: 1 of 1 cases, 0 wrong", said.stdout)
        for stage in ("time", "peers"):
            self.assertIn(f"**{stage}** left out: needs Python's torch", table)
        self.assertEqual((kept["driver"], kept["revision"]), ("580.1", "abc"))


@unittest.skipUnless((BUILD / "tools/maskbert/maskbert").exists(), "no maskbert")
class MaskbertTest(unittest.TestCase):
    def test_errors(self):
        self.assertEqual(maskbert.errors([1, 2], [1, 2]), (0, 0))
        self.assertAlmostEqual(maskbert.errors([1, 2.5], [1, 2])[0], 0.25)
        self.assertFalse(maskbert.errors([1, float("nan")], [1, 2])[0] <= 1)

    def test_verifies_on_the_emulated_device(self):
        with tempfile.TemporaryDirectory() as folder:
            call = call_of(folder)
            items = {i.name: i for i in maskbert.stage(call.o).items}
            self.assertEqual(len(items), maskbert.EMULATED)
            made = items["verify heads of 8 f32 window(3) softmax"].do(call.attempt(100))
            self.assertTrue(made["ok"], made)
            self.assertLess(made["worst"], 2e-5)
            wrong = maskbert.verify_one(call.attempt(100), "1x32x4", 64, "f32", "windw(2)", "softmax", 0.2)
            self.assertFalse(wrong["ok"])
            self.assertIn("windw", wrong["said"])

    @unittest.skipUnless((BUILD / "tests/train/libnccl.so.2").exists(), "no mock of NCCL")
    def test_trains_one_rank(self):
        """On the emulated device, with a mock of NCCL; without NCCL the case is skipped with its reason."""
        with tempfile.TemporaryDirectory() as folder:
            mock = {"MASKC_NCCL": str(BUILD / "tests/train/libnccl.so.2"), "FAKE_NCCL_FOLDER": folder}
            for more, said in ((mock, ""), ({"MASKC_NCCL": "nowhere"}, "skipped: ")):
                with unittest.mock.patch.dict(os.environ, more):
                    made = maskbert.one_rank(call_of(folder).attempt(100))
                self.assertTrue(made["ok"], made)
                self.assertTrue(made["said"].startswith(said) and bool(made["said"]) == bool(said), made)

    def test_times_and_prints(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(maskbert, "POSITIONS", 64):
            kept = {"time tiny": maskbert.time_one(call_of(folder).attempt(100), "1x32x4", "window(3)", 1, 8, "same", "f32")}
            self.assertTrue(kept["time tiny"]["ok"], kept)
            kept["verify x"] = {"ok": False, "said": "off"}
            text = "\n".join(maskbert.lines(kept))
            self.assertIn("- **verify x**: off", text)
            self.assertRegex(text, r"\| tiny \| [0-9.]+ \| [0-9]+ \|")


if __name__ == "__main__":
    cmocka_count.run_cases()
