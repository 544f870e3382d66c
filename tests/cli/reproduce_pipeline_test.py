#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reproduce_pipeline_test.py MASKC: tools/reproduce as a command. Bad input; and the whole pipeline on a model of one layer, killed on its
way, with the same results as without."""
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/reproduction"), str(ROOT / "tests/support"), str(ROOT / "tests/cli")]
import claims  # noqa: E402
import cmocka_count  # noqa: E402
import dam  # noqa: E402
import longer  # noqa: E402
import masks  # noqa: E402
import page  # noqa: E402
import report  # noqa: E402
import reproduce_toy as toy  # noqa: E402
import rows  # noqa: E402
import settings  # noqa: E402
import stages  # noqa: E402
from programs import Programs  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve().parents[2]
PROGRAMS = Programs(BUILD)


def reproduce(*arguments, build=BUILD):
    return subprocess.run([sys.executable, ROOT / "tools/reproduce", *map(str, arguments), "--build", build], capture_output=True, text=True,
                          check=False)


def refused_here(*arguments, build=BUILD):
    return toy.in_process(["tools/reproduce", *map(str, arguments), "--build", str(build)])


class ResultsTest(toy.Scratch):
    def test_results_are_of_their_lengths_and_threads(self):
        for threads, lengths in ((1, (512,)), (2, (512, 1024))):
            s = stages.Stages(self.folder, stages.Clock(1), lambda text: None, threads)
            s.do(longer.stage("long", lengths), lambda n=lengths: {"times": n})
            g = report.gather(s, 5.0, lengths=lengths)
            self.assertEqual((list(g["long"]["times"]), g["longer"]), (list(lengths), None))
            s.lock.close()
        self.assertEqual((g["threads"], page.threads_text(g["threads"])[:22]), ([1, 2], "1 thread and 2 threads"))
        self.assertEqual(page.threads_text([0]), "all threads")


class InputTest(toy.Scratch):
    def refused(self, says, *arguments, code=2, **more):
        before = sorted(self.folder.rglob("*"))
        made = refused_here(*arguments, **more)
        self.assertEqual((made.returncode, len(made.stderr.splitlines()), made.stdout), (code, 1, ""), made.stderr)
        self.assertIn(says, made.stderr)
        self.assertEqual(before, sorted(self.folder.rglob("*")))

    def test_what_is_wrong_is_one_line(self):
        out = self.folder / "out"
        for says, *arguments in (("--minutes", "--minutes", 0), ("--minutes", "--minutes", "nan"), ("--minutes", "--minutes", "x"),
                                 ("--size 2x100x12", "--size", "2x100x12"), ("--size 2x192x8", "--size", "2x192x8"), ("--size", "--size", "tiny"),
                                 ("no such file", "--text", self.folder / "none"), ("below 0.5", "--held-out", 0.5), ("--lengths", "--lengths", "512,4"), ("--batch", "--batch", -1),
                                 ("--dtype", "--dtype", "f64"), ("--page", "--page", self.folder / "none/X.md"), ("--page", "--page", self.folder / "x.txt")):
            self.refused(says, "dam", "-o", out, *arguments)
        self.refused("-o", "dam")
        self.refused("COMMAND")
        self.refused("a folder is expected", "dam", "-o", __file__)
        self.refused("build maskc", "dam", "-o", out, code=3, build=self.folder)
        self.refused("--scale", "theorem", "--scale", 0)

    def test_a_program_that_fails_speaks_for_itself(self):
        made = reproduce("theorem", "--mask", "denze")
        self.assertEqual((made.returncode, len(made.stderr.splitlines())), (2, 1), made.stderr)
        self.assertIn("denze", made.stderr.split("(")[0])

    def test_another_model_in_the_same_folder_is_refused(self):
        (self.folder / "settings.json").write_text('{"size": "1x192x12"}')
        made = reproduce("dam", "-o", self.folder)
        self.assertEqual((made.returncode, len(made.stderr.splitlines())), (2, 1), made.stderr)
        self.assertIn("was begun with --size 1x192x12, not 2x192x12", made.stderr)

    def test_help_says_what_is_needed(self):
        said = reproduce("dam", "--help").stdout
        for words in ("--minutes", "exit codes", "stages:", "table.txt", "--text"):
            self.assertIn(words, said)


class MasksTest(toy.Scratch):
    """Masks of rows, at n = 128 and 12 heads, counted by maskc show."""

    def setUp(self):
        super().setUp()
        settings = types.SimpleNamespace(folder=self.folder, heads=12, length=128, seed=0, threads=1, dtype="f32", head_dim=16, batch=4)
        self.masks = masks.Masks(PROGRAMS, settings)
        run = self.folder / "runs/p-0"
        run.mkdir(parents=True)
        draw = random.Random(3)
        toy.write_alpha(run / "alpha.safetensors", (12, 128, 128), [draw.gauss(0, 1) for _ in range(12 * 128 * 128)])

    def counts(self, name, diagonal=True):
        row = next(r for r in rows.all_rows() if r.name == name and r.diagonal == diagonal)
        shown = PROGRAMS.json("maskc", "show", self.masks.file(row))["masks"]
        return sorted(m["active"] for m in shown for _ in m["at"])

    def test_counts_are_those_asked_for(self):
        size = 128 * 128
        self.assertEqual(self.counts("dense - 128 random"), [size - 128] * 12)
        self.assertEqual(self.counts("dense", False), [size - 128] * 12)
        self.assertEqual(self.counts("star", False), [636 - 128] * 12)
        self.assertEqual(self.counts("blockbert-2"), [size // 2] * 12)
        self.assertEqual(self.counts("blockbert-2", False), [size // 2 - 128] * 10 + [size // 2] * 2)
        self.assertEqual(self.counts("P pruned 85 %"), [size - size * 85 // 100] * 12)
        self.assertEqual(self.counts("random 85 %"), self.counts("P pruned 85 %"))
        off = self.counts("P pruned 85 %", False)
        self.assertTrue(all(size - size * 85 // 100 - 128 <= c < size - size * 85 // 100 for c in off), off)

    def test_equal_masks_are_known(self):
        def digest(name, diagonal=True):
            row = next(r for r in rows.all_rows() if r.name == name and r.diagonal == diagonal)
            self.masks.file(row)
            return self.masks.digest(row)
        (self.folder / "runs/dam-s-1e-4").mkdir(parents=True)
        (self.folder / "runs/dam-s-1e-4/mask.mask").write_text("length 128\nheads 12\nstar - diagonal(0)\n")
        self.assertEqual(digest("dam-s-1e-4"), digest("star", False))
        self.assertEqual(digest("dam-s-1e-4", False), digest("star", False))
        self.assertEqual(len({digest("star"), digest("dam-s-1e-4"), digest("logsparse"), digest("logsparse", False)}), 4)

    def test_random_as_a_learned_mask_has_its_counts_head_by_head(self):
        run = self.folder / "runs/dam-s-1e-4"
        run.mkdir(parents=True)
        (run / "mask.mask").write_text("length 128\nheads 12\nhead 0-6: window(3)\nhead 7-11: global(0,-1)\n")
        self.assertEqual(self.counts("random as dam-s-1e-4"), self.counts("dam-s-1e-4"))
        row = next(r for r in rows.all_rows() if r.name == "random as dam-s-1e-4" and r.diagonal)
        self.assertEqual(masks.counts(self.masks.file(row), 12), [128 * 7 - 12] * 7 + [4 * 128 - 4] * 5)

    def test_snap_and_threshold_keep_to_the_time_and_the_threshold_is_the_largest(self):
        for name in ("P snapped 0.5", "P threshold 0.5"):
            row = next(r for r in rows.all_rows() if r.name == name)
            found = PROGRAMS.json("maskc", "plan", self.masks.file(row), *self.masks.plan_options())["masks"]
            share = sum(m["predicted_s"] for m in found) / sum(m["dense_predicted_s"] for m in found)
            self.assertLessEqual(share, 0.5, name)
            self.assertGreater(share, 0.4, name)


class PipelineTest(toy.Scratch):
    """One layer, steps that are planned here, so that two folders can be compared."""

    def begin(self, name, minutes):
        folder = self.folder / name
        results = folder / "results"
        results.mkdir(parents=True)
        (results / "theorem.json").write_text(json.dumps({"lines": [], "holds": True}))  # tests/kernels/theorem_test.py runs it
        if name != "killed":  # longer sequences, by themselves and in training, once
            (results / "longer-160-256.json").write_text(json.dumps({"mask": "dam-s-1e-3", "lengths": []}))
            (results / "long-160-256.json").write_text(json.dumps({"mask": "dam-s-1e-3", "times": []}))
        (results / "speed.json").write_text(json.dumps({"step": 0.01, "learning": 0.01, "row": 0.1}))
        (results / "plan.json").write_text(json.dumps({"dense": 12, "p": 3, "dam": 3, "row": 2, "rows": 2, "minutes": 1, "p_runs": 1, "dam_runs": 2}))
        toy.write_text(self.folder / "text.txt")
        return [sys.executable, ROOT / "tools/reproduce", "dam", "--minutes", str(minutes), "-o", folder, "--text", self.folder / "text.txt",
                "--size", "1x192x12", "--vocabulary", "90", "--batch", "2", "--held-out", "0.05", "--rows", "2",
                "--lengths", "160,256", "--build", BUILD]

    @staticmethod
    def losses(folder):
        return {p.stem: json.loads(p.read_text())["mlm"] for p in sorted((folder / "results").glob("*.json")) if "mlm" in json.loads(p.read_text())}

    def test_killed_anywhere_it_goes_on_and_comes_to_the_same(self):
        draw, kills = random.Random(int(time.time())), 0
        command = self.begin("killed", 3)
        for _ in range(2):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
                try:
                    child.wait(draw.uniform(0.5, 4))
                except subprocess.TimeoutExpired:
                    os.kill(child.pid, signal.SIGKILL)
                    kills += 1
        before = {p.name: p.stat().st_mtime_ns for p in (self.folder / "killed/results").glob("*.json")}
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        after = {p.name: p.stat().st_mtime_ns for p in (self.folder / "killed/results").glob("*.json")}
        self.assertTrue(before.items() <= after.items(), "a result was made again")
        self.assertTrue(kills)
        self.whole(done)
        straight = subprocess.run(self.begin("straight", 3), capture_output=True, text=True, check=False)
        self.assertEqual(straight.returncode, 0, straight.stderr)
        a, b = self.losses(self.folder / "killed"), self.losses(self.folder / "straight")
        self.assertEqual(a, b)
        self.assertIn("dense", a)
        self.assertEqual(sum(k.startswith("row-") for k in a), 2)
        self.settles(self.folder / "straight")

    def settles(self, folder):
        """Rows that the command settles, from P's own run: the table's mask is the run's."""
        s = settings.Settings(folder, 1, "1x192x12", 2, "bf16", 0, 0, str(self.folder / "text.txt"), None, 0, "", vocabulary=90, held_out=0.05)
        store = stages.Stages(folder, stages.Clock(1))
        self.addCleanup(store.lock.close)
        made = dam.Dam(PROGRAMS, s, ROOT, store.clock, store)
        for row in [r for r in rows.all_rows() if r.group == "settled" and r.name.endswith("0.7")]:
            self.assertIsNone(made.why_not(row))
            found = made.row(row, None, 2)
            self.assertTrue(0.3 < found["settled"]["share"] <= 0.7, found)
            self.assertAlmostEqual(100 * (1 - found["settled"]["density"]), found["sparsity"], 9)
            self.assertTrue(math.isfinite(found["mlm"]) and found["steps"] == 2)

    def whole(self, done):
        """Table, page and pictures of the folder that was killed."""
        folder = self.folder / "killed"
        found = json.loads((folder / "table.json").read_text())
        names = {p.stem for p in (folder / "results").glob("row-*.json")} | found["left_out"].keys()
        self.assertTrue({f"row-{r.key}" for r in rows.all_rows()} <= names, "a row is neither done nor left out")
        self.assertIn("--rows asked for fewer", found["left_out"].values())
        self.assertEqual(len(found["claims"]), len(claims.CLAIMS))
        page = (folder / "page.md").read_text()
        for name in re.findall(r"\]\((pictures/[^)]*)\)", page):
            self.assertTrue((folder / name).stat().st_size, name)
        self.assertIn("## Left out", page)
        for n in (160, 256):
            self.assertIn(f"training step, n = {n}", page)
            self.assertIn(f"training step, n = {n}", done.stdout)
        self.assertEqual((folder / "pictures/film.png").exists(), (folder / "pictures/loss.png").exists())
        self.assertIn((folder / "table.txt").read_text().rstrip("\n"), done.stdout)
        self.assertFalse(list(folder.rglob("*.part")))

    def test_it_ends_in_time(self):
        command = self.begin("short", 0.05)
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(time.monotonic() - began, 3 + 15)  # of which saving a run that is cut, and a busy machine
        self.assertTrue((self.folder / "short/table.json").exists())

    def test_sigterm_ends_it_and_its_programs(self):
        with subprocess.Popen(self.begin("stopped", 1), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            time.sleep(1.5)
            child.terminate()
            said = child.communicate(timeout=20)[1]
        self.assertEqual(child.returncode, 4, said)
        self.assertIn("the same command goes on", said.splitlines()[-1])


cmocka_count.run_cases()
