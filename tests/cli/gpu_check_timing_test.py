#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_timing_test.py MASKC: the stage time of tools/gpu-check with a mock process that measures: what it asks for, crashes,
the end of the budget, and its tables. Closes with cmocka's lines, so that tools/count_tests adds it up.
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
from gpu_check_help import call_of, options, script  # noqa: E402
import cmocka_count  # noqa: E402
from gpu_check import expected, timing, timing_cases as known, timing_table, work  # noqa: E402

# Measures every contender at 1 ms; in crash.json is {case: contender and mask, or "" for the timing} that ends the process.
MOCK = """
import json, os, pathlib, sys, time
task = json.loads(pathlib.Path(sys.argv[1]).read_text())
crash = json.loads(pathlib.Path(os.environ["FOLDER"], "crash.json").read_text())
def emit(**line):
    print(json.dumps(line), flush=True)
print("a line of torch's compiler")
emit(clock={"copy_bytes_per_s": 3e12, "mma": {"flops_per_s": 6e14, "by": "mma.sync"}})
with open(os.environ["FOLDER"] + "/asked", "a") as f:
    f.write(" ".join(c["name"].replace(" ", "_") for c in task["cases"]) + "\\n")
for c in task["cases"]:
    rows = []
    for contender, mask in c["contenders"]:
        emit(at=[c["name"], contender, mask])
        left_out = task["excluded"].get(c["name"], {}).get(f"{contender} {mask}")
        if not left_out and crash.get(c["name"]) == f"{contender} {mask}":
            sys.exit("Traceback\\nRuntimeError: illegal address")
        files = task["files"][" ".join(map(str, (mask, c["length"], c["batch"], c["head_dim"], c["dtype"])))]
        assert files["plans"] == {} or "forward" in files["plans"]
        verdict = {"verdict": "failed", "reason": left_out} if left_out else {"verdict": "ok", "median_s": 1e-3, "graph": True}
        rows.append({k: c[k] for k in ("length", "batch", "heads", "head_dim", "dtype", "pass")} | {"contender": contender, "mask": mask} | verdict)
    emit(at=[c["name"]])
    if crash.get(c["name"]) == "":
        os.kill(os.getpid(), 11)
    time.sleep(float(os.environ.get("SECONDS", 0)))
    emit(case=c["name"], rows=rows)
"""


class SessionTest(unittest.TestCase):
    def run_stage(self, folder, crash=None, seconds=100, before=None, **environment):
        """(results, left, cases asked of each process)."""
        pathlib.Path(folder, "crash.json").write_text(json.dumps(crash or {}), encoding="utf-8")
        pathlib.Path(folder, "mock.py").write_text(MOCK, encoding="utf-8")
        script(f"{folder}/build/tools/maskc/maskc", "exit 0")
        call = call_of(f"{folder}/out", seconds, device="cuda", masks=["star"], length=[128], build=f"{folder}/build")
        call.environment |= {"FOLDER": folder} | environment
        for name, result in (before or {}).items():
            call.kept.put("time", name, result)
        with unittest.mock.patch.object(timing, "PROGRAM", f"{folder}/mock.py"):
            left = work.run_stage(call, timing.stage(call.o))
        asked = pathlib.Path(folder, "asked")
        return call.kept, left, asked.read_text().splitlines() if asked.exists() else []

    def names(self):
        return [c.name for c in known.cases(["star"], [128])]

    def test_one_process_measures_all(self):
        with tempfile.TemporaryDirectory() as folder:
            kept, left, asked = self.run_stage(folder)
            self.assertEqual((left, len(asked), list(kept.stage("time"))), ([], 1, self.names()))
            self.assertFalse(kept.wrong())
            self.assertEqual(kept.stage("time")[self.names()[0]]["copy_bytes_per_s"], 3e12)

    def test_a_crash_costs_one_contender(self):
        names = [name.replace(" ", "_") for name in self.names()]
        first = self.names()[1]
        with tempfile.TemporaryDirectory() as folder:
            kept, left, asked = self.run_stage(folder, {first: "ours star"})
            self.assertEqual(asked, [" ".join(names), " ".join(names[1:])])  # finished cases are not measured again
            rows = kept.stage("time")[first]["results"]
            self.assertEqual((left, len(asked), len(kept.stage("time"))), ([], 2, len(self.names())))
            self.assertEqual({r["mask"]: r["verdict"] for r in rows if r["contender"] == "ours"}, {"dense": "ok", "star": "failed"})
            self.assertTrue(kept.wrong())
            self.assertIn("ours star: RuntimeError: illegal address", kept.stage("time")[first]["said"])

    def test_a_crash_while_timing_costs_one_case(self):
        first = self.names()[0]
        with tempfile.TemporaryDirectory() as folder:
            kept, left, asked = self.run_stage(folder, {first: ""})
            made = kept.stage("time")
            self.assertEqual((left, len(asked), len(made)), ([], 2, len(self.names())))
            self.assertTrue(made[first]["dead"])
            self.assertEqual(made[first]["said"], "killed by SIGSEGV")
            self.assertEqual([r["ok"] for name, r in made.items() if name != first], [True] * (len(made) - 1))

    def test_what_has_results_is_not_measured_again(self):
        first, *others = self.names()
        with tempfile.TemporaryDirectory() as folder:
            _, left, asked = self.run_stage(folder, before={first: {"ok": True, "results": []}})
        self.assertEqual((left, asked), ([], [" ".join(name.replace(" ", "_") for name in others)]))

    def test_the_end_of_the_budget_keeps_what_was_measured(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(expected.SECONDS, {"time start": (0, ""), "time kernels": (0, "")}), \
                unittest.mock.patch.object(expected, "of_timing", lambda case: 0):
            kept, left, _ = self.run_stage(folder, seconds=4, SECONDS="1.5")
            done = list(kept.stage("time"))
            self.assertTrue(0 < len(done) < len(self.names()), done)
            self.assertEqual(done + left, self.names())
            self.assertFalse(kept.wrong())

    def test_nothing_starts_without_time(self):
        with tempfile.TemporaryDirectory() as folder:
            kept, left, asked = self.run_stage(folder, seconds=expected.of("time start", "cuda"))
        self.assertEqual((left, asked, kept.stage("time")), (self.names(), [], {}))


class CasesTest(unittest.TestCase):
    def test_all_rows(self):
        """114 of them were in the first run of an H100."""
        rows = {(c.problem, contender, mask, c.direction) for c in known.cases() for contender, mask in c.contenders}
        self.assertEqual(len(rows), 120)
        self.assertEqual({p.length for p, *_ in rows}, {128, 512, 2048, 8192})
        self.assertEqual({(p.dtype, p.head_dim, p.batch * p.length) for p, *_ in rows},
                         {("bf16", 64, 65536), ("bf16", 128, 32768), ("f32", 64, 16384)})
        for problem in known.PROBLEMS:
            self.assertIn("dense", problem.masks)

    def test_flex_runs_beside_our_kernel(self):
        for case in known.cases():
            flex = [mask for contender, mask in case.contenders if contender == known.FLEX]
            self.assertEqual(bool(flex), case.kind == "flex")
            for mask in flex:
                self.assertIn((known.OURS, mask), case.contenders)

    def test_masks_and_lengths(self):
        made = known.cases(["star"], [128, 4096])
        self.assertEqual({c.problem.length * c.problem.batch for c in made}, {65536})
        self.assertEqual({mask for c in made for contender, mask in c.contenders if contender == known.OURS}, {"dense", "star"})


class TableTest(unittest.TestCase):
    def row(self, contender, mask, ms, **more):
        sizes = {"length": 2048, "batch": 32, "heads": 12, "head_dim": 64, "dtype": "bf16", "pass": "forward"}
        return sizes | {"contender": contender, "mask": mask, "median_s": ms / 1e3, "verdict": "ok", "graph": True} | more

    def cases(self):
        plain = [self.row("ours", "dense", 1.75, predicted_s=1.7e-3, machine="h100", load_s=3e-3), self.row("ours", "causal", 1.06),
                 self.row("ours", known.DAM, 0.331, floor_s=1e-4, area_floor_s=1.655e-4, executed_fraction=0.1),
                 self.row("sdpa-cudnn", "dense", 0.855), self.row("sdpa-flash", "dense", 1.353), self.row("sdpa-cudnn", "causal", 0.508)]
        flex = [self.row("ours", "causal", 1.06), self.row("flex-128", "causal", 0.952),
                self.row("flex-128", "star", 1, median_s=None, verdict="failed", reason="no memory")]
        clock = {"copy_bytes_per_s": 3e12, "mma": {"flops_per_s": 6e14, "by": "mma.sync"}}
        return {"a": {"ok": True, "results": plain} | clock, "b": {"ok": True, "results": flex}, "c": work.dead("no memory")}

    def test_wins_and_losses(self):
        text = "\n".join(timing_table.lines(self.cases()))
        self.assertIn("| dense | fwd | 1.750 | 1.750 | 0.855 cuDNN | **0.49 x** | - | 97 % |  |", text)
        self.assertIn("| causal | fwd | 1.060 | 1.750 | 0.508 cuDNN | **0.48 x** |", text)
        self.assertIn("| distance(1,2,4,7,... | fwd | 0.331 | 1.750 | 0.855 cuDNN | 2.58 x | 50 % | - |  |", text)
        self.assertIn("| causal | fwd | 1.060 | 0.952 | **0.90 x** |  |", text)
        self.assertIn("Faster than the rival in 1 of 4 rows, slower in 3.", text)
        self.assertIn("- causal n=2048 bf16 fwd 0.48 x of sdpa-cudnn", text)
        self.assertIn("| sdpa-cudnn | dense | fwd | 0.855 | 482 |  |", text)  # as the first H100 run printed it
        for words in ("A copy moves 3.00 TB/s; 600 TFLOP/s in products (mma.sync).", "1 of 1 predictions are within 25 % (h100).",
                      "Kernel files load in 3.0 ms (median of 1", "- **c**: no memory", "- **flex-128 star, fwd**: no memory",
                      f"distance(1,2,4,7,... is `{known.DAM}`."):
            self.assertIn(words, text)

    def test_tables_are_at_most_100_columns_wide(self):
        long = "m" * 80
        rows = [self.row("ours", mask, 123.456, graph=False, floor_s=0.1, predicted_s=0.01) for mask in ("dense", long)]
        rows += [self.row("sdpa-efficient", "dense", 123.456, verdict="loose")]
        flex = [self.row("ours", long, 123.456), self.row("flex-128", long, 123.456, verdict="unavailable")]
        for line in timing_table.lines({"a": {"ok": False, "results": rows}, "b": {"ok": True, "results": flex}}):
            if line.startswith("|"):
                self.assertLessEqual(len(line), 100, line)

    def test_both_counts_seven_products(self):
        rows = [self.row("sdpa-cudnn", "dense", 3.329, **{"pass": "both"})]
        self.assertIn("| sdpa-cudnn | dense | both | 3.329 | 433 |  |", "\n".join(timing_table.torch_lines([rows])))

    def test_a_kernel_without_a_graph_is_wrong(self):
        for more, ok in (({}, True), ({"graph": False}, False), ({"verdict": "wrong"}, False)):
            self.assertEqual(timing.result_of([self.row("ours", "star", 1, **more)], {})["ok"], ok)
            self.assertTrue(timing.result_of([self.row("sdpa-flash", "dense", 1, **more)], {})["ok"])

    def test_its_modules_are_found(self):
        """As the process that measures finds them, without torch."""
        code = ("import runpy, sys, unittest.mock as m\n"
                "sys.modules.update({name: m.MagicMock() for name in ('torch', 'torch.nn', 'torch.nn.functional', 'numpy')})\n"
                "runpy.run_path(sys.argv[1])\n"
                "import peers_clock, peers_compare, peers_contenders, peers_plan, peers_reference\n")
        path = pathlib.Path(work.__file__).with_name("timing_gpu.py")
        made = subprocess.run([sys.executable, "-c", code, path], cwd=path.parent, capture_output=True, text=True, check=False)
        self.assertEqual((made.returncode, made.stderr), (0, ""))


if __name__ == "__main__":
    assert options and os
    cmocka_count.run_cases()
