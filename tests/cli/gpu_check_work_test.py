#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_check_work_test.py MASKC: cases in parallel within a budget: order, failures, killed programs, the end of the budget,
and a call that goes on where another was killed. Closes with cmocka's lines, so that tools/count_tests adds it up.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
from gpu_check_help import BUILD, MASKC, call_of, command_of, environment_of, gpu_check, mock_build, options, script  # noqa: E402
import cmocka_count  # noqa: E402
from gpu_check import cases, expected, plan, stages, verify, work  # noqa: E402
from gpu_check.work import Item, Stage  # noqa: E402


def has_nvrtc():
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([MASKC, "compile", "dense", "-n", "16", "--target", "sm_80", "-o",
                               f"{folder}/k.mkb"], capture_output=True, check=False)
    return made.returncode == 0


def shell(text):
    """A case that runs a shell."""
    def do(attempt):
        code, out, said = attempt.command("sh", "-c", text)
        return {"ok": code == 0, "out": out.strip(), "said": said}
    return do


def stage_of(*items, workers=3):
    return Stage("verify", [i if isinstance(i, Item) else Item(i, 0, shell("true")) for i in items], workers)


class PoolTest(unittest.TestCase):
    def run_stage(self, folder, stage, **more):
        call = call_of(folder, **more)
        call.kept.set_order([stage])
        left = work.run_stage(call, stage)
        return call.kept, left

    def test_workers_run_side_by_side(self):
        barrier = threading.Barrier(3, timeout=20)  # passed only by three cases at a time
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage("verify", [Item(name, 0, lambda a: {"ok": barrier.wait() >= 0}) for name in "abcdef"], 3)
            kept, left = self.run_stage(folder, stage)
        self.assertEqual((left, [r["ok"] for r in kept.stage("verify").values()]), ([], [True] * 6))

    def test_what_measures_runs_alone(self):
        busy, seen = set(), {}

        def do(name):
            def run(attempt):
                busy.add(name)
                time.sleep(0.02)
                seen[name] = set(busy)
                busy.discard(name)
                return {"ok": True}
            return run
        with tempfile.TemporaryDirectory() as folder:
            self.run_stage(folder, Stage("verify", [Item(n, 0, do(n), alone=n in "ace") for n in "abcdef"], 3))
        self.assertEqual([seen[n] for n in "ace"], [{"a"}, {"c"}, {"e"}])

    def test_results_are_in_the_order_of_the_stage(self):
        def last_first(attempt, number):
            """Ends when so many other cases have results."""
            until = time.monotonic() + 20
            while len(attempt.kept.stage("verify")) < number and time.monotonic() < until:
                time.sleep(0.01)
            return {"ok": True}
        with tempfile.TemporaryDirectory() as folder:
            items = [Item(name, 0, lambda a, n=n: last_first(a, n)) for n, name in zip((2, 1, 0), "acb")]
            kept, _ = self.run_stage(folder, stage_of(*items))
            self.assertEqual(list(kept.stage("verify")), ["b", "c", "a"])  # as they ended
            self.assertEqual(list(json.loads(kept.path.read_text())["stages"]["verify"]), ["a", "c", "b"])

    def test_failures_cost_their_own_case_only(self):
        def fault(attempt):
            raise ValueError("no such key")
        with tempfile.TemporaryDirectory() as folder:
            items = ["a", Item("exit", 0, shell("echo why >&2; exit 1")), "b", Item("killed", 0, shell("kill -9 $$")), "c",
                     Item("fault", 0, fault), Item("missing", 0, lambda a: {"ok": False, "said": a.command("/no/such")[2]}), "d"]
            kept, left = self.run_stage(folder, stage_of(*items))
            made = kept.stage("verify")
        self.assertEqual((left, len(made)), ([], 8))
        self.assertTrue(all(made[name]["ok"] for name in "abcd"))
        self.assertEqual([made[k]["said"] for k in ("exit", "killed", "fault")], ["why", "killed by SIGKILL", "ValueError: no such key"])
        self.assertIn("No such file", made["missing"]["said"])
        self.assertTrue(made["fault"]["dead"] and kept.wrong())

    def test_a_case_starts_only_if_its_time_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            items = [Item("long", 50, shell("true")), Item("short", 1, shell("true")), Item("longer", 60, shell("true"))]
            kept, left = self.run_stage(folder, stage_of(*items), seconds=20)
            self.assertEqual((left, list(kept.stage("verify"))), (["long", "longer"], ["short"]))
            _, left = self.run_stage(folder, stage_of(*items), seconds=100)
            self.assertEqual(left, [])

    def test_the_end_of_the_budget_stops_programs(self):
        """Also those of a job in the background, for which the shell ignores interrupts."""
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
        with tempfile.TemporaryDirectory() as folder:
            began, marker = time.monotonic(), pathlib.Path(folder) / "alive"
            items = ["a", Item("b", 0, shell(f"sleep 4; touch {marker}")), Item("c", 0, shell("sleep 60"))]
            kept, left = self.run_stage(folder, stage_of(*items), seconds=2)
            self.assertLess(time.monotonic() - began, 8)
            self.assertEqual((left, list(kept.stage("verify"))), (["b", "c"], ["a"]))
            time.sleep(2.5)
            self.assertFalse(marker.exists())

    def test_a_case_that_hangs_is_dead(self):
        with tempfile.TemporaryDirectory() as folder:
            call = call_of(folder)
            attempt = call.attempt(0)
            attempt.stop_at = time.monotonic() + 0.2
            code, _, said = attempt.command("sleep", "60")
        self.assertEqual((code, said[:13]), (124, "stopped after"))

    def test_programs_that_are_left_behind_are_not_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            self.assertEqual(call_of(folder).attempt(0).command("sh", "-c", "sleep 20 & echo done")[:2], (0, "done\n"))
            self.assertLess(time.monotonic() - began, 10)

    def test_the_dead_are_tried_again_last(self):
        with tempfile.TemporaryDirectory() as folder:
            call, seen = call_of(folder), []
            call.kept.put("verify", "a", {"ok": False, "dead": True})
            call.kept.put("verify", "b", {"ok": False})
            items = [Item(name, 0, lambda a, name=name: seen.append(name) or {"ok": True}) for name in "abc"]
            self.assertEqual(work.run_stage(call, Stage("verify", items, 1)), [])
            self.assertEqual(seen, ["c", "a"])
            self.assertEqual({k: r["ok"] for k, r in call.kept.stage("verify").items()}, {"a": True, "b": False, "c": True})


class CommandTest(unittest.TestCase):
    """The whole command with a mock maskc."""
    ARGUMENTS = ("--device", "emulated", "--stages", "verify", "-n", "16", "--jobs", "4")

    def results(self, folder):
        found = list(pathlib.Path(folder, "out").glob("*.json"))
        return json.loads(found[0].read_text(encoding="utf-8"))["stages"].get("verify", {}) if found else {}

    def test_workers_fail_and_die(self):
        with tempfile.TemporaryDirectory() as folder:
            mock_build(folder)
            said = subprocess.run(command_of(folder, *self.ARGUMENTS, "--masks", "good", "wrong", "crash"), text=True,
                                  capture_output=True, check=False, env=environment_of(folder))
            made = self.results(folder)
            table = next(pathlib.Path(folder, "out").glob("*.md")).read_text(encoding="utf-8")
        want = [k.name for k in cases.verified(options(masks=["good", "wrong", "crash"], length=[16]))]
        self.assertEqual((said.returncode, list(made)), (1, want), said.stderr)
        for name, r in made.items():
            self.assertEqual((r["ok"], bool(r.get("dead"))), (name.startswith("good"), name.startswith("crash")), name)
        self.assertIn(f"verify: {len(want)} of {len(want)} cases, 3 wrong, 3 without a result", said.stdout)
        self.assertIn("- **wrong n=16 f32 D=64**: maskc: 1 of 1 checks failed", table)
        self.assertIn("- **crash n=16 f32 D=64**: killed by SIGKILL", table)

    def interrupted(self, folder, number):
        """Returns the files on disk after a signal ended a call, and the output of the next call."""
        more = environment_of(folder, LOG=f"{folder}/log", SECONDS_OF_VERIFY=".3")
        command = command_of(folder, *self.ARGUMENTS, "--masks", "a", "b", "c")
        with subprocess.Popen(command, env=more, stdout=subprocess.DEVNULL) as child:
            until = time.monotonic() + 20
            while len(self.results(folder)) < 5 and time.monotonic() < until:
                time.sleep(0.02)
            child.send_signal(number)
        before = self.results(folder)
        return before, subprocess.run(command, env=more, capture_output=True, text=True, check=False)

    def test_goes_on_after_being_killed(self):
        want = [k.name for k in cases.verified(options(masks=["a", "b", "c"], length=[16]))]
        for number in (signal.SIGKILL, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as folder:
                mock_build(folder)
                before, said = self.interrupted(folder, number)
                self.assertTrue(5 <= len(before) < len(want))
                self.assertEqual((said.returncode, list(self.results(folder))), (0, want), said.stderr)
                again = pathlib.Path(folder, "log").read_text().count("\n")
            self.assertLessEqual(again, len(want) + 4)  # four were under way

    def test_what_is_left_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            mock_build(folder)
            command = command_of(folder, *self.ARGUMENTS, "--masks", "a")
            said = subprocess.run([*command, "--budget", "3"], env=environment_of(folder), capture_output=True, text=True, check=False)
            table = next(pathlib.Path(folder, "out").glob("*.md")).read_text(encoding="utf-8")
            self.assertIn("19 left: call again to go on", said.stdout)
            self.assertIn("- **verify**: 19 cases left for another call: a n=16 f32 D=64, ", table)
            said = subprocess.run(command, env=environment_of(folder), capture_output=True, text=True, check=False)
            table = next(pathlib.Path(folder, "out").glob("*.md")).read_text(encoding="utf-8")
        self.assertIn("verify: 19 of 19 cases, 0 wrong\n", said.stdout)
        self.assertNotIn("left for another call", table)

    def test_only_programs_and_package_are_built(self):
        with tempfile.TemporaryDirectory() as folder:
            build = mock_build(folder)
            listed = [{"filename": [str(build / name)]} for name in ("tools/maskc/maskc", "tests/gen/plan_test", "runtime/python/maskc/libmaskc.so.0")]
            (build / "meson-info").mkdir()
            (build / "meson-info/intro-targets.json").write_text(json.dumps(listed), encoding="utf-8")
            script(pathlib.Path(folder) / "bin/ninja", f'echo "$@" > {folder}/ninja')
            subprocess.run(command_of(folder, *self.ARGUMENTS, "--masks", "a"), env=environment_of(folder), capture_output=True, check=False)
            words = pathlib.Path(folder, "ninja").read_text().split()
        self.assertEqual(words, ["-C", str(build), "tools/maskc/maskc", "runtime/python/maskc/libmaskc.so.0"])


class EmulatedTest(unittest.TestCase):
    @unittest.skipUnless(has_nvrtc(), "no NVRTC")
    def test_workers_do_not_change_results(self):
        made = []
        for jobs in (3, 1):
            with tempfile.TemporaryDirectory() as folder:
                call = call_of(folder, jobs=jobs, masks=["star"], length=[16])
                stage = verify.stage(call.o)
                stage.items = stage.items[:3] + [Item("unknown", 0, lambda a: verify.verify_kernel(a, cases.Kernel("windw(2)", 16, "f32")))]
                call.kept.set_order([stage])
                self.assertEqual((stage.workers, work.run_stage(call, stage)), (jobs, []))
                kept = json.loads(call.kept.path.read_text(encoding="utf-8"))["stages"]["verify"]
                made.append([(name, {k: x for k, x in r.items() if k != "seconds"}) for name, r in kept.items()])
        self.assertEqual(made[0], made[1])
        self.assertEqual([r["ok"] for _, r in made[0]], [True, True, True, False])
        self.assertGreater(made[0][0][1]["checks"], 10)
        self.assertIn("windw", made[0][3][1]["said"])


class PlanTest(unittest.TestCase):
    def dry_run(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            said = gpu_check("--dry-run", "--out", f"{folder}/out", "--build", f"{folder}/build", *arguments, PATH="/proc/nonexistent")
            self.assertEqual((said.returncode, said.stderr, os.listdir(folder)), (0, "", []))
        return said.stdout

    def total(self, text):
        return float(re.search(r"^total +([0-9.]+) s of", text, re.M)[1])

    def test_a_gpu_is_done_within_the_budget(self):
        text = self.dry_run()
        self.assertLessEqual(self.total(text), 300)
        for stage, count in (("verify", "237 of 237"), ("time", "16 of 16"), ("python", "(\\d+) of \\1")):
            self.assertRegex(text, rf"(?m)^{stage} .* {count} cases")
        self.assertRegex(text, r"(?m)^verify +7[56]\.\d s")  # 68 s, measured, for 215 of them
        self.assertRegex(text, r"(?s)Left for another call.*sanitize \(\d+\).*peers \(\d+\)")
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertIn("measured: 215 cases in 68 s with 12 workers", text)

    def test_smaller_budgets_leave_out_the_last_stages(self):
        for budget in (60, 100, 200, 2000):
            self.assertLessEqual(self.total(self.dry_run("--budget", str(budget))), budget)
        text = self.dry_run("--budget", "100")
        self.assertRegex(text, r"(?m)^verify .* 237 of 237 cases")
        self.assertRegex(text, r"(?s)Left for another call.*: .*time \(\d+\), python")
        self.assertNotIn("Left for another call", self.dry_run("--budget", "20000"))

    def test_seconds_of_stages_add_up(self):
        o = options(device="cuda", jobs=12)
        made, total = plan.plan(stages.of(o), 300, 20)
        self.assertAlmostEqual(total, 20 + sum(p.seconds for p in made))
        for p in made:
            self.assertEqual(len(p.fits) + len(p.left), len(p.stage.items))
        rows = sum(len(c.contenders) for c in stages.timing.known.cases()) - 20  # ours again beside FlexAttention
        self.assertEqual(rows, expected.TIMED_ROWS + expected.FLEX_ROWS + 6)  # more than in the run that was measured

    def test_emulated(self):
        self.assertLessEqual(self.total(self.dry_run("--device", "emulated")), 120)


if __name__ == "__main__":
    assert BUILD
    cmocka_count.run_cases()
