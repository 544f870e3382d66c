#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages_test.py: do the figures of the pages of tools/reproduce hold the numbers of their tables, with names that say what they are, with baselines,
seeds and examples? Their JSON is looked at; nothing is drawn."""
import json
import pathlib
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/reproduction"))
import pictures  # noqa: E402
from comparisons import blockbert, drawing, folders, glue_like, pruning, publish, sparsegen  # noqa: E402


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Dam(Scratch):
    def test_pictures_hold_their_points(self):
        made, fields = [], ("mask", "sparsity", "mlm", "deviation", "plateau", "diagonal", "group")
        self.addCleanup(setattr, pictures, "figure", pictures.figure)
        pictures.figure = lambda _folder, name, kind, content: made.append((name, kind, content))
        g = {"entries": [dict(zip(fields, (*row, True, group))) for group, *row in (
            ("pruned", "P pruned 90 %", 90.0, 3.1, None, False), ("pruned", "P pruned 80 %", 80.0, 2.4, 0.1, False), ("pruned", "random 80 %", 80.0, 5.3, None, True),
            ("dense", "dense", 0.0, 2.1, 0.002, False), ("dense", "none", 100.0, 5.4, None, True), ("learned", "dam-s-1e-4", 86.0, 2.2, None, False),
            ("designed", "star", 96.1, 2.3, None, False), ("settled", "P settled, snap 0.5", 60.0, 2.3, None, False))]}
        kept = {"setting": {"model": "Model: 1x24x12.", "rows": "Trains on for 3 steps."}, "P": pictures.packed([[0.5, 0.7], [0.25, 0.5]]),
                "P_by_distance": {"0": [0.5, None, 0.7]}, "loss": {"dense": [[1, 5], [2, 4]], "dam-u-1e-1": []}}
        (self.folder / "numbers.json").write_text(json.dumps(kept))
        makers = (pictures.pruning, pictures.by_distance, pictures.stages, pictures.sparsity, pictures.mean_p, pictures.loss)
        for make in makers:
            make(None, g, self.folder)
        found = {name: content for name, _, content in made}
        self.assertEqual(list(found), ["pruning.svg", "P_distance.svg", "stages.svg", "sparsity.svg", "P.png", "loss.svg"])
        self.assertEqual([s["points"] for s in found["pruning.svg"]["series"]], [[(80.0, 2.4, 0.1), (90.0, 3.1)]])
        self.assertEqual([x["name"] for x in found["pruning.svg"]["levels"]], ["dense: 2.10", "no attention at all: 5.40"])
        self.assertEqual(found["P_distance.svg"]["series"], [{"name": "seed 0", "points": [(0, 0.5), (2, 0.7)]}])
        self.assertEqual([(s["name"], s["points"], s.get("names")) for s in found["stages.svg"]["series"]], [
            ("one stage: DAM by distance", [(86.0, 2.2)], ["1e-4"]), ("two stages: pruned by P", [(80.0, 2.4, 0.1), (90.0, 3.1)], None)])
        self.assertEqual([(p["name"], p["group"]) for p in found["sparsity.svg"]["points"]], [
            ("", "pruned by P"), ("", "pruned by P"), ("1e-4", "DAM by distance"), ("star", "designed by hand")])
        for row in zip(*(m for m in (found["P.png"]["panels"][0]["values"], [[0.5, 0.7], [0.25, 0.5]]))):
            self.assertTrue(all(abs(x - y) < 0.001 for x, y in zip(*row)), row)
        self.assertEqual(found["loss.svg"]["curves"], [{"name": "dense", "steps": [[1, 5], [2, 4]]}])
        for name in ("pruning.svg", "stages.svg", "sparsity.svg"):
            self.assertIn("Trains on for 3 steps. One seed a mask; dense: standard deviation 0.0020", found[name]["note"])
        for name in ("P.png", "P_distance.svg", "loss.svg"):
            self.assertIn("Model: 1x24x12.", found[name]["note"])

    def test_a_page_gives_its_rows(self):
        table_of = pictures.entries_of("| P pruned 80 % | 80.0 | 2.3564 | 0.1 |" + " 1 |" * 7 + "\n| random 90 % (plateau) | 90.0 | 5.5 |  |" + " 1 |" * 7)
        self.assertEqual([(e["mask"], e["mlm"], e["deviation"], e["plateau"]) for e in table_of], [("P pruned 80 %", 2.3564, 0.1, False), ("random 90 %", 5.5, None, True)])


class Kept:
    """In the place of drawing.Figures."""

    def __init__(self, folder=None):
        self.made, self.content, self.folder = {}, {}, folder

    def draw(self, name, title, kind, content):
        self.made[f"{name}.svg"], self.content[name] = title, {"kind": kind, **content}

    def markdown(self):
        return drawing.Figures.markdown(self)


def entry(mean, sparsity=50.0, **more):
    return {"task": {"each": {"0": mean - 1, "1": mean + 1}, "mean": mean, "deviation": 1.4, "seeds": 2, "failed": 0, "examples": 64, "dev": 100, "metric": "accuracy",
                     "sparsity": sparsity, "more": [], **more}}


class Comparisons(Scratch):
    def cells(self, name="task"):
        baselines = {name: {"majority": {"metrics": {"accuracy": 0.2}, "examples": 100}, "bag-of-words": {"metrics": {"accuracy": 0.95}, "examples": 100}}}
        return types.SimpleNamespace(tasks=[folders.Task(name, "text", self.folder, 32)], model_text=lambda: "1x24x4",
                                     s=types.SimpleNamespace(baselines=baselines, note="On a machine.", folder=self.folder))

    def drawn(self, comparison, gathered, *more):
        kept = Kept()
        comparison.draw(self.cells(), gathered, kept, *more)
        return kept.content

    def check_scores(self, content, dense=50):
        """Baselines and what is within chance, examples and seeds."""
        self.assertEqual([x["name"] for x in content["levels"] if "band" not in x], ["majority: 20.0", "bag of words: 95.0"])
        band = next(x for x in content["levels"] if "band" in x)
        self.assertEqual(band["value"], dense)
        self.assertAlmostEqual(band["band"], 2 * (2 * 2 / 2 + 2 * 25) ** 0.5, 6)  # 2 seeds of variance 2; 100 examples, half of them right
        for word in ("Shaded: 14.4 points around ", "over examples and seeds", "Model: 1x24x4, n = 32, fine-tuned on 64 examples, tested on 100 others; 2 seeds a point"):
            self.assertIn(word, content["note"])

    def test_a_mask_its_diagonal_and_a_random_one_share_a_row(self):
        names = ["dense", "star", "blockbert-2 12:0 (here 4:0)", "blockbert-2 10:2 (here 3:1)", "random as star", "random as blockbert-2", "learned: run", "random as run"]
        gathered = {name + off: entry(50 - k + (0.5 if off else 0)) for k, name in enumerate(names) for off in ("", " - diagonal(0)")}
        content = self.drawn(glue_like, gathered)["masks-task"]
        self.assertEqual([(r["name"], r["group"]) for r in content["rows"]], [("dense", ""), ("star", "designed by hand"), ("2 blocks, heads 4:0", "blocks"),
                                                                             ("2 blocks, heads 3:1", "blocks"), ("learned: run", "learned")])
        self.assertEqual([(s["name"], s["values"]) for s in content["series"]], [
            ("mask", [50, 49, 48, 47, 44]), ("without the diagonal", [50.5, 49.5, 48.5, 47.5, 44.5]), ("random, as many entries", [None, 46, 45, None, 43]),
            ("random, without the diagonal", [None, 46.5, 45.5, None, 43.5])])
        self.check_scores(content)

    def test_pruned_masks_are_next_to_random_ones(self):
        gathered = {"dense": entry(50, 0.0)}
        for p in pruning.PERCENTS:
            gathered[f"P pruned {p} %"], gathered[f"random {p} %"] = entry(50 - p / 10), entry(49 - p / 10)
        for k, name in enumerate(pruning.RUNS[1:]):
            label = pruning.label_of(name)
            gathered[label], gathered[f"P pruned as {label}"] = entry(47 - k, 70 + k), entry(46 - k, 70 + k)
        content = self.drawn(pruning, gathered)
        self.assertEqual([s["points"][0] for s in content["pruning-task"]["series"]], [[10, 49, 1.4], [10, 48, 1.4]])
        self.assertEqual([(s["name"], s["points"], s["names"]) for s in content["stages-task"]["series"]], [
            ("one stage: DAM by distance", [[70, 47, 1.4], [71, 46, 1.4]], ["1e-4", "1e-1"]), ("two stages: pruned by P", [[70, 46, 1.4], [71, 45, 1.4]], ["", ""])])
        for name in content:
            self.check_scores(content[name])

    def test_lambda_is_next_to_softmax_and_keys_begin_at_0(self):
        more = [{"support": [4.0, 6.0], "tokens": 30}]
        gathered = {sparsegen.name(label, start): entry(50 - k, more=more) for k, start in enumerate(sparsegen.STARTS)
                    for label in ("softmax", *(f"lambda {x}" for x in sparsegen.LAMBDAS))}
        content = self.drawn(sparsegen, gathered)
        self.assertEqual([x["name"] for x in content["lambda-task"]["levels"]], ["softmax, fine-tuned: 50.0", "softmax, from scratch: 49.0", "majority: 20.0", "bag of words: 95.0"])
        support = content["support-task"]
        self.assertEqual((support["y"]["least"], support["levels"][0]["value"], support["series"][1]["points"][0]), (0, 30, [-8, 5]))

    def test_equal_memory_is_a_sentence(self):
        numbers = [{"mask": name, "n": n, "memory": {"total": size * 2**20}, "step_s": 0.5, "spread_s": 0.1, "sparsity": 0.0} for n in (64, 128)
                   for name, size in (("dense", 100.0), ("blockbert-2 10:2", 99.0))]
        gathered = {"dense": entry(1, 0.0), "blockbert-2 10:2": entry(2)}
        content = self.drawn(blockbert, gathered, numbers)
        self.assertEqual(sorted(content), ["blocks-step", "blocks-task"])
        self.assertEqual([m["deviations"] for m in content["blocks-step"]["methods"]], [[100, 100]] * 2)
        self.assertIn("On a machine.", content["blocks-step"]["note"])
        self.assertEqual(content["blocks-task"]["x"]["least"], 0)
        self.assertIn("as much memory under every mask, 99 to 100 MiB", blockbert.memory_text({(f["mask"], f["n"]): f for f in numbers}))
        numbers[1]["memory"]["total"] /= 2
        self.assertIn("blocks-memory", self.drawn(blockbert, gathered, numbers))

    def test_a_section_gets_other_figures_and_keeps_its_text_and_maps(self):
        page, beside, drawn = self.folder / "tasks.md", self.folder / "tasks", Kept(self.folder / "figures")
        for folder in (beside, drawn.folder):
            folder.mkdir()
        (beside / "pruning-old.svg").write_text("old")
        (drawn.folder / "new.svg").write_text("new")
        drawn.made["new.svg"] = "New"
        page.write_text("# P\n\n## A\n\ntext\n\n![Old](tasks/pruning-old.svg)\n\nOld\n\n![Map](tasks/pruning-map.png)\n\nMap\n\n## B\n\nmore\n")
        publish.replace(page, "pruning", "A", drawn)
        self.assertEqual(page.read_text(), "# P\n\n## A\n\ntext\n\n![New](tasks/pruning-new.svg)\n\nNew\n\n![Map](tasks/pruning-map.png)\n\nMap\n\n## B\n\nmore\n")
        self.assertEqual([p.name for p in beside.iterdir()], ["pruning-new.svg"])


if __name__ == "__main__":
    unittest.main()
