#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reproduce_test.py: the modules of tools/reproduce. The budget, table, figures and verdicts from made-up results, stages that were killed, files."""
import argparse
import math
import pathlib
import random
import re
import sys
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/reproduction"), str(ROOT / "tests/support"), str(ROOT / "tests/cli")]
import arrays  # noqa: E402
import claims  # noqa: E402
import cmocka_count  # noqa: E402
import learned  # noqa: E402
import longer  # noqa: E402
import page  # noqa: E402
import plan  # noqa: E402
import reproduce_toy as toy  # noqa: E402
import rows  # noqa: E402
import settings  # noqa: E402
import stages  # noqa: E402
import table  # noqa: E402
from programs import Fatal, OutOfTime  # noqa: E402


class PlanTest(unittest.TestCase):
    def test_no_plan_takes_more_than_its_time(self):
        draw, counted = random.Random(1), 0
        for _ in range(2000):
            speed = plan.Speed(draw.uniform(0.01, 0.5), draw.uniform(0.01, 0.8), draw.uniform(0.5, 6))
            runs = draw.choice([(3, 5), (0, 0)])
            seconds = draw.uniform(600, 20000)
            made = plan.split(seconds, speed, *runs, 101)
            needed = sum(made.seconds(speed, *runs).values())
            if made.rows:  # without rows the least steps of the runs may take more
                self.assertLessEqual(needed, seconds)
                counted += 1
            self.assertTrue(made.row >= plan.LEAST["row"] and made.rows <= 101)
        self.assertGreater(counted, 1500)

    def test_without_learning_its_time_goes_to_dense_and_the_rows(self):
        made = plan.split(1000, plan.Speed(0.1, 0.0, 1), 0, 0, 10)
        time_left = 1000 * 0.96 - 1
        self.assertEqual((made.dense, made.p, made.dam), (int(time_left * (0.35 + (0.21 + 0.175) / 2) / 0.1), 0, 0))

    def test_a_plan_in_numbers(self):
        made = plan.split(1000, plan.Speed(0.1, 0.2, 1), 3, 5, 10)
        time_left = 1000 * (1 - plan.RESERVE) - 9 - plan.LONGER * 0.1
        self.assertEqual((made.dense, made.p, made.dam), (int(time_left * 0.35 / 0.1), int(time_left * 0.21 / 0.6), int(time_left * 0.175)))
        left = time_left - made.dense * 0.1 - (3 * made.p + 5 * made.dam) * 0.2
        self.assertEqual((made.row, made.rows), (int((left / 10 - 1) / 0.1), 10))

    def test_short_calls_have_rows_too(self):
        made = plan.split(80, plan.Speed(0.01, 0.02, 0.8), 3, 5, 101, short=True)
        self.assertGreaterEqual(made.rows, 10)
        self.assertEqual(made.row, plan.SHORT["row"])


class RowsTest(unittest.TestCase):
    def test_each_row_has_a_file_of_its_own(self):
        keys = [r.key for r in rows.all_rows()]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertTrue(all(c.isalnum() or c in "-._" for k in keys for c in k), keys)

    def test_every_mask_is_there_with_the_diagonal_and_without(self):
        seen = {(r.name, r.diagonal) for r in rows.all_rows()}
        settled = {r.name for r in rows.all_rows() if r.group == "settled"}
        self.assertEqual(len(settled), 6)
        for name in {n for n, _ in seen} - {"dense - 128 random", "none"} - settled:
            self.assertTrue({(name, True), (name, False)} <= seen, name)


class StagesTest(toy.Scratch):
    def make(self, minutes=1.0):
        made = stages.Stages(self.folder, stages.Clock(minutes), say=lambda text: None)
        self.addCleanup(made.lock.close)
        return made

    def test_what_is_done_is_not_done_again(self):
        s, calls = self.make(), []
        for _ in range(2):
            self.assertEqual(s.do("a", lambda: calls.append(1) or {"x": 1})["x"], 1)
        self.assertEqual(len(calls), 1)

    def test_a_stage_that_was_cut_leaves_nothing(self):
        s = self.make()
        def cut():
            raise KeyboardInterrupt
        self.assertRaises(KeyboardInterrupt, s.do, "a", cut)
        self.assertEqual(list(s.folder.iterdir()), [])
        self.assertEqual(s.do("a", lambda: {"x": 2})["x"], 2)

    def test_without_time_a_stage_is_left_out_and_says_so(self):
        s = self.make(0.1)
        self.assertIsNone(s.do("a", self.fail, needs=7))
        def late():
            raise OutOfTime
        self.assertIsNone(s.do("b", late))
        self.assertEqual(s.left_out, {"a": "no time was left", "b": "the time was up"})
        self.assertEqual(list(s.folder.iterdir()), [])

    def test_what_comes_to_nothing_is_left_out_where_the_rest_needs_it_not(self):
        s = self.make()
        def failing(code):
            raise Fatal(code, "a reason")
        self.assertIsNone(s.do("a", lambda: failing(1), optional=True))
        self.assertEqual(s.left_out, {"a": "a reason"})
        self.assertRaises(Fatal, s.do, "b", lambda: failing(1))
        self.assertRaises(Fatal, s.do, "b", lambda: failing(2), optional=True)

    def test_two_calls_in_one_folder_are_refused(self):
        self.make()
        self.assertRaisesRegex(Fatal, "another call is at work", self.make)

    def test_a_result_that_is_damaged_is_named(self):
        s = self.make()
        s.path("a").write_text("{")
        self.assertRaisesRegex(Fatal, "a.json", s.do, "a", self.fail)


class SettingsTest(toy.Scratch):
    def made(self, *arguments):
        parser = argparse.ArgumentParser()
        settings.add_options(parser, float)
        made = settings.from_options(parser.parse_args(["-o", str(self.folder), *arguments]))
        settings.keep(made)
        return made.held_out

    def test_a_small_corpus_keeps_a_larger_share_and_a_later_call_goes_on_with_it(self):
        self.assertEqual(self.made("--minutes", "8"), 0.05)
        self.assertEqual(self.made("--minutes", "60"), 0.05)
        self.assertRaisesRegex(Fatal, "was begun with --held-out 0.05, not 0.01", self.made, "--held-out", "0.01")

    def test_an_hour_keeps_a_small_share(self):
        self.assertEqual(self.made("--minutes", "60"), 0.002)


class TableTest(unittest.TestCase):
    def entries(self, unigram=6.0, **found):
        return {e["mask"]: e for e in table.join(found, unigram)}

    def test_seeds_become_a_mean_and_a_deviation(self):
        found = {"dense": toy.row_result(2.0), "dense-seed1": toy.row_result(2.3, seed=1), "dense-seed2": toy.row_result(2.6, seed=2),
                 "star": toy.row_result(3.0, 96.1), "star-off": toy.row_result(3.5, 96.9)}
        e = {x["mask"]: x for x in table.join(found, 6.0)}
        self.assertEqual(sorted(e), ["dense", "star", "star - diagonal(0)"])
        self.assertAlmostEqual(e["dense"]["mlm"], 2.3)
        self.assertAlmostEqual(e["dense"]["deviation"], 0.3)
        self.assertEqual((e["dense"]["seeds"], e["star"]["deviation"], e["star"]["sparsity"]), ([0, 1, 2], None, 96.1))
        self.assertEqual(table.cells(e["star"])[:5], ("star", "96.1", "3.0000", "", "25.00"))
        self.assertIn("star - diagonal(0)", table.as_text(list(e.values())))

    def test_the_plateau_is_marked(self):
        for mlm, flat in ((6.5, True), (5.95, True), (5.8, False), (math.nan, True)):
            e = self.entries(star=toy.row_result(mlm))["star"]
            self.assertEqual(e["plateau"], flat)
            self.assertEqual("(plateau)" in table.cells(e)[0], flat)

    def test_the_plateau_is_what_is_reached_without_a_key(self):
        self.assertEqual(table.plateau({"none": toy.row_result(5.5)}, 7.0), 5.5)
        self.assertAlmostEqual(table.plateau({"none": None}, 7.0), 6.3)

    def test_chance_is_the_spread_of_differences_seed_by_seed(self):
        found = {}
        for seed, (dense, off) in enumerate(((2.0, 2.5), (3.0, 3.7), (5.0, 5.3))):
            suffix = f"-seed{seed}" if seed else ""
            found[f"dense{suffix}"], found[f"dense-off{suffix}"] = toy.row_result(dense, 0.0, seed), toy.row_result(off, 0.8, seed)
        e = self.entries(9.0, **found)
        self.assertEqual([round(d, 9) for d in table.paired(e["dense - diagonal(0)"], e["dense"])], [0.5, 0.7, 0.3])
        self.assertAlmostEqual(table.noise(list(e.values())), 0.2)

    def test_without_two_seeds_chance_is_unknown(self):
        self.assertIsNone(table.noise(list(self.entries(star=toy.row_result(3.0)).values())))


class ClaimsTest(unittest.TestCase):
    def results(self, found, runs=None, unigram=6.0, dense_mlm=2.0, more=None):
        entries = table.join(found, unigram)
        dense = {"mlm": dense_mlm, "plateau": table.on_plateau(dense_mlm, unigram)}
        gathered = {"entries": entries, "noise": table.noise(entries), "runs": runs or {}, "theorem": {"holds": True}, "unigram": unigram, **(more or {})}
        return claims.Results(gathered, dense)

    def dense(self, off=0.0, spread=0.01):
        made = {}
        for seed in range(3):
            suffix = f"-seed{seed}" if seed else ""
            made[f"dense{suffix}"] = toy.row_result(2.0 + spread * seed, 0.0, seed)
            made[f"dense-off{suffix}"] = toy.row_result(2.0 + off + spread * seed + 0.02 * (seed - 1), 0.8, seed)
        return made

    def verdicts(self, r):
        return {c["claim"]: c["verdict"] for c in claims.judge(r)}

    def test_a_difference_counts_from_three_times_its_deviation(self):
        name = "Dropping the diagonal does no harm"
        limit = 3 * 0.02 / 3**0.5
        for off, verdict in ((0.0, claims.AGREES), (-0.5, claims.AGREES), (limit * 0.9, claims.AGREES), (limit * 1.1, claims.DIFFERS)):
            self.assertEqual(self.verdicts(self.results(self.dense(off)))[name], verdict, off)

    def test_on_the_plateau_nothing_is_claimed(self):
        runs = {f"p-{k}": toy.learned_result(0.4 + 0.001 * k, 0.6, plateau=True) for k in range(3)}
        found = {k: {**v, "mlm": v["mlm"] + 3.95} for k, v in self.dense(0.5).items()} | {"star": toy.row_result(6.1, 96.1)}
        verdicts = self.verdicts(self.results(found, runs, dense_mlm=6.0))
        known = ("Attention without the diagonal is a contextual mapping for n > 2", "Sparsity of the six designed masks, with the diagonal and without")
        self.assertEqual({v for k, v in verdicts.items() if k not in known}, {claims.OPEN})

    def test_a_run_counts_where_its_start_is_off_the_plateau(self):
        name = "The diagonal is the least important"
        for flat, dense, verdict in ((3, 2.0, claims.AGREES), (0, 6.0, claims.OPEN)):
            runs = {f"p-{k}": toy.learned_result(0.4 + 0.001 * k, 0.6, plateau=k < flat) for k in range(3)}
            self.assertEqual(self.verdicts(self.results(self.dense(), runs, dense_mlm=dense))[name], verdict)

    def test_a_learned_mask_that_lost_everything_leaves_the_claim_open(self):
        name = "Learned masks are better than designed ones"
        for loss, better, verdict in ((2.5, 2.4, claims.AGREES), (6.0, 2.4, claims.OPEN), (6.0, 2.9, claims.DIFFERS)):
            found = self.dense() | {"star": toy.row_result(2.6, 96.1), "dam-s-1e-2": toy.row_result(better, 95.0), "dam-s-1e-1": toy.row_result(loss, 96.9)}
            self.assertEqual(self.verdicts(self.results(found))[name], verdict, loss)

    def test_importance_needs_seeds_that_agree(self):
        name = "The diagonal is the least important"
        for values, verdict in (((0.40, 0.41, 0.42), claims.AGREES), ((0.60, 0.61, 0.62), claims.DIFFERS), ((0.3, 0.5, 0.7), claims.OPEN), ((0.4,), claims.OPEN)):
            runs = {f"p-{k}": toy.learned_result(v, 0.6) for k, v in enumerate(values)}
            self.assertEqual(self.verdicts(self.results(self.dense(), runs))[name], verdict, values)

    def test_pruning_is_compared_at_each_sparsity(self):
        name = "Pruning by P is better than at random at every sparsity"
        def with_pairs(better):
            found = self.dense()
            for percent in (10, 50, 95):
                found[f"P_pruned_{percent}__"] = toy.row_result(3.0, percent)
                found[f"random_{percent}__"] = toy.row_result(3.0 + better, percent)
            return self.verdicts(self.results(found))[name]
        self.assertEqual([with_pairs(x) for x in (0.5, -0.5, 0.0)], [claims.AGREES, claims.DIFFERS, claims.OPEN])

    def test_sparsities_are_those_of_the_paper_to_a_rounding(self):
        name = "Sparsity of the six designed masks, with the diagonal and without"
        for sparsity, verdict in ((96.12, claims.AGREES), (96.2, claims.DIFFERS)):
            self.assertEqual(self.verdicts(self.results({"star": toy.row_result(3.0, sparsity)}))[name], verdict)

    def test_sparsity_must_rise_with_lambda(self):
        name = "Sparsity rises with lambda"
        for values, verdict in (((80, 85, 90, 95), claims.AGREES), ((80, 85, 84, 95), claims.DIFFERS), ((90, 90, 90, 90), claims.DIFFERS)):
            found = {f"dam-s-{x}": toy.row_result(3.0, v) for x, v in zip(rows.LAMBDAS, values)}
            self.assertEqual(self.verdicts(self.results(found, {f"dam-s-{x}": {"plateau": False, "kept": [[1, 0]] * 12} for x in rows.LAMBDAS}))[name], verdict, values)


    def test_settled_masks_are_compared_at_each_share(self):
        name = "Snap loses less than a threshold in the same predicted time, in the model that P was learned with"
        for better, verdict in (((0.5, 0.5, 0.5), claims.AGREES), ((0.5, -0.5, 0.5), claims.DIFFERS), ((0.0, 0.0, 0.0), claims.OPEN)):
            found = self.dense()
            for share, b in zip(rows.SHARES, better):
                found[f"P_settled__snap_{share}"], found[f"P_settled__threshold_{share}"] = toy.row_result(3.0, 40), toy.row_result(3.0 + b, 95)
            r = self.results(found)
            self.assertEqual(self.verdicts(r)[name], verdict, better)
            self.assertIn("0.9 of dense's time: 3.0000 against", claims.settled_snap_beats_threshold(r)[0])

    def test_a_step_may_take_as_long_as_a_dense_one(self):
        name = "A training step under a learned dam-s mask takes at most a dense step's time"
        for ratios, verdict in (((0.5, 1.0), claims.AGREES), ((0.5, 1.01), claims.DIFFERS), (None, claims.OPEN)):
            more = {"longer": {"mask": "dam-s-1e-3", "lengths": [{"length": n, "ratio": x} for n, x in zip((512, 2048), ratios)]} if ratios else None}
            self.assertEqual(self.verdicts(self.results(self.dense(), more=more))[name], verdict, ratios)


class GalleryTest(unittest.TestCase):
    def test_the_learned_mask_of_the_gallery_is_the_pages(self):
        """By what the page says of each head: how many distances it keeps, in how many groups."""
        text = (ROOT / "model/REPRODUCTION.md").read_text(encoding="utf-8")
        row = next(line for line in text.splitlines() if line.startswith(f"| {longer.MASK} | ") and "/" in line.split("|")[3])
        self.assertIn(f"`{longer.GALLERY}` of the gallery is the mask of {longer.MASK}, entry by entry.", text)
        heads = [line for line in (ROOT / f"masks/gallery/{longer.GALLERY}.mask").read_text(encoding="utf-8").splitlines() if line.startswith("head ")]
        found = []
        for line in heads:
            terms = [[int(x) for x in re.findall(r"window\((\d+)\)", term)] for term in line.split(" | ")]
            groups = [set(range(t[1] + 1 if len(t) > 1 else 0, t[0] + 1)) for t in terms if t]
            found.append(f"{len(set().union(*groups))}/{len(groups)}")
        self.assertEqual(found, row.split("|")[3].split())


class FilesTest(toy.Scratch):
    def test_arrays_come_back(self):
        for kind, values in (("<f4", [0.5, -1.0, 3.25, 0.0, 7.0, 1.0]), ("|b1", [1, 0, 0, 1, 1, 0])):
            arrays.write_npy(self.folder / "x.npy", kind, (2, 3), values)
            shape, back = arrays.read_npy(self.folder / "x.npy")
            self.assertEqual((shape, list(back)), ((2, 3), values))
            self.assertEqual((self.folder / "x.npy").stat().st_size % 64, 24 if kind == "<f4" else 6)

    def test_damaged_arrays_are_refused(self):
        arrays.write_npy(self.folder / "x.npy", "<f4", (4,), [1, 2, 3, 4])
        whole = (self.folder / "x.npy").read_bytes()
        for cut in (b"", whole[:5], whole[:9], whole[:70], whole[:-1], whole.replace(b"<f4", b"<f9"), whole.replace(b"(4,)", b"(5,)")):
            (self.folder / "x.npy").write_bytes(cut)
            self.assertRaisesRegex(Fatal, "x.npy", arrays.read_npy, self.folder / "x.npy")
            (self.folder / "x.safetensors").write_bytes(cut)
            self.assertRaisesRegex(Fatal, "x.safetensors", arrays.read_safetensors, self.folder / "x.safetensors", "alpha")

    def test_alpha_of_distances_by_place(self):
        """Two heads, n = 6: the interior has distances 0 to 3; the border is on."""
        toy.write_alpha(self.folder / "alpha.safetensors", (2, 4), [-9, 9, -9, 9, -9, -9, 9, 9])
        found = learned.measure(self.folder, types.SimpleNamespace(length=6, heads=2))
        self.assertEqual(found["kept_distances"], [[1, 3], [2, 3]])
        self.assertEqual({k: v["entries"] for k, v in found["P"].items()}, {"special": 40, "diagonal": 8, "distance 1": 12, "distance 2": 8, "rest": 4})
        self.assertEqual(found["P"]["special"]["mean"], 1)
        self.assertAlmostEqual(found["P"]["diagonal"]["mean"], 1 / (1 + math.exp(9)), 6)
        self.assertAlmostEqual(found["P_by_distance"][1], 0.5, 6)
        self.assertEqual(found["kept"][0], [0, 1, 0, 1])

    def test_alpha_of_entries_by_place(self):
        n = 5
        toy.write_alpha(self.folder / "alpha.safetensors", (1, n, n), [0.0 if i == j else 9.0 if i == j + 1 else -9.0 for i in range(n) for j in range(n)])
        found = learned.measure(self.folder, types.SimpleNamespace(length=n, heads=1))
        self.assertAlmostEqual(found["P"]["diagonal"]["mean"], 0.5)
        self.assertAlmostEqual(found["P"]["distance 1"]["mean"], 0.5)  # one side of two
        self.assertEqual(found["kept"][0], [0, 0.5, 0])
        off = learned.off_diagonal_mean(found["P"])
        mean = learned.mean_over_heads(self.folder, types.SimpleNamespace(length=n, heads=1))
        inner = [v for i, row in enumerate(mean) for j, v in enumerate(row) if i != j or min(i, j) == 0 or max(i, j) == n - 1]
        self.assertAlmostEqual(off, sum(inner) / len(inner))

    def test_lambda_keeps_its_ratio_to_the_scale(self):
        self.assertEqual(learned.options("dam-s-1e-1", 5), ("dam", ["--learn-mask", "dam-s", "--mask-scale", "10", "--lambda", "0.0001"], 5))
        self.assertEqual(learned.options("dam-u-1e-1", 5)[1][:2], ["--learn-mask", "dam-u"])
        self.assertEqual(learned.options("p-2", 5), ("p", ["--learn-mask", "p", "--mask-scale", "10"], 7))

    def test_the_page_opens_with_the_verdicts_by_paper(self):
        verdicts = [{"paper": "SparseBERT 3.2", "claim": "A", "measured": "", "verdict": claims.AGREES},
                    {"paper": "SparseBERT Table 3", "claim": "B", "measured": "", "verdict": claims.DIFFERS},
                    {"paper": "maskc, of its own", "claim": "C", "measured": "", "verdict": claims.OPEN}]
        text = page.opening(verdicts, "2x4x6", 8)
        self.assertIn("| SparseBERT | 2 | 1 | 1 | 0 |\n| maskc | 1 | 0 | 0 | 1 |\n", text)
        self.assertIn('Claims with a pair or figure against them: "B" (SparseBERT Table 3).', text)
        self.assertIn("No claim disagrees.", page.opening(verdicts[:1], "2x4x6", 8))

    def test_distances_are_counted_in_groups(self):
        self.assertEqual([learned.groups(d) for d in ([], [4], [1, 2, 3], [1, 3, 4, 9])], [0, 1, 1, 3])
        self.assertIn("2 of the 3 heads", page.grouped([[], [1, 2, 3], [1, 3, 4, 9]], [[1, 2, 3], [1, 3, 4, 9]]))
        self.assertIn("3.5 distances in the mean, in 2.0 groups, so a group has 1.75 distances. We call them scattered", page.grouped([], [[1, 2, 3], [1, 3, 4, 9]]))
        self.assertIn("We call them banded: a group has two distances or more in the mean. 100 % of the kept distances are at most 4.", page.grouped([], [[1, 2, 3]]))


cmocka_count.run_cases()
