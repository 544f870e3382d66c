#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reproduce_tasks_test.py MASKC: tools/reproduce glue-like, sparsegen, pruning and blockbert over a toy. Is every table complete? Does a killed
call go on and make no cell twice? Does --minutes leave out seeds, then tasks, never masks? Are bad calls refused, and do verdicts follow their rule?"""
import json
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
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / p) for p in ("tools/reproduction", "tests/support", "tests/cli", "tests/train", "tests/train/objective")]
import cmocka_count  # noqa: E402
import finetune_toy  # noqa: E402
import pretrain_toy  # noqa: E402
import reproduce_toy  # noqa: E402
import stages  # noqa: E402
from comparisons import budget, cells, folders, glue_like, long_text, models, options, ordering, pruning, sparsegen, variants  # noqa: E402
from programs import Programs  # noqa: E402

os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"  # of which oneDNN generates fewer kernels, which takes up to a third of a short run

BUILD = pathlib.Path(sys.argv[1]).resolve().parents[2]
ROWS = {"glue-like": 30, "sparsegen": 8, "pruning": 11, "blockbert": 3}  # of a model with two heads
SOME_LAMBDAS, SOME_PERCENTS = (-4, -3, 0), (20, 50, 90)  # of the cells that differ in a number alone
TASKS = {"verb": "text", "same": "pair", "span": "squad2"}


class Toy:
    """A model that has learned the toy's sentences, and its tasks; made once."""
    folder = None

    @classmethod
    def make(cls):
        if not cls.folder:
            cls.keep = tempfile.TemporaryDirectory()
            cls.folder = pathlib.Path(cls.keep.name)
            toy = pretrain_toy.Toy(BUILD / "tools/maskbert/maskbert", cls.folder)
            finetune_toy.make(cls.folder)
            toy.train("trained", "--steps", 20)
        return cls.folder


def tasks_option(*names):
    return ",".join(f"{name}={TASKS[name]}:{Toy.make() / TASKS[name]}" for name in names)


def command(name, out, *more, tasks=("verb",)):
    return [sys.executable, str(ROOT / "tools/reproduce"), name, "--model", str(Toy.make() / "trained"), "--tasks", tasks_option(*tasks), "-o", str(out), "--length", "32", "--batch", "8",
            "--dtype", "f32", "--threads", "1", "--build", str(BUILD), *map(str, more)]


def run(*arguments, **more):
    return subprocess.run(command(*arguments, **more), capture_output=True, text=True, check=False)


def run_here(*arguments, **more):
    """The same in this process: what is refused, and plans, start no program."""
    return reproduce_toy.in_process(command(*arguments, **more)[1:])


SMALL = ("--seeds", 1, "--examples", 8, "--dev", 2, "--minutes", 3)


class TablesTest(reproduce_toy.Scratch):
    def complete(self, name, out, made, tasks):
        """Each row has a score for each task, in the table's JSON and Markdown."""
        self.assertEqual(made.returncode, 0, made.stderr)
        found = json.loads((out / "table.json").read_text())
        self.assertEqual((len(found["rows"]), found["left_out"]), (ROWS[name], []))
        for label, row in found["rows"].items():
            self.assertEqual({t: (e["seeds"], e["examples"], e["dev"]) for t, e in row["tasks"].items()}, dict.fromkeys(tasks, (1, 8, 2)), label)
            self.assertTrue(all(0 <= e["mean"] <= 100 and 0 <= e["sparsity"] < 100 for e in row["tasks"].values()), label)
        self.assertEqual(made.stdout.count("(1 x 8)"), ROWS[name] * len(tasks))
        self.assertTrue(found["verdicts"] and all(v["verdict"] in (ordering.AGREES, ordering.DIFFERS, ordering.OPEN) for v in found["verdicts"]))
        self.assertEqual((len(list((out / "cells").glob("*.json"))), list((out / "runs").iterdir())), (ROWS[name] * len(tasks), []))
        return found

    def test_glue_like_is_killed_and_goes_on(self):
        out = self.folder / "out"
        made = command("glue-like", out, *SMALL)
        with subprocess.Popen(made, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            until = time.monotonic() + 60
            while len(list((out / "cells").glob("*.json"))) < 5 and time.monotonic() < until:
                time.sleep(0.05)
            os.kill(child.pid, signal.SIGKILL)
        before = {p.name: p.stat().st_mtime_ns for p in (out / "cells").glob("*.json")}
        self.assertTrue(5 <= len(before) < ROWS["glue-like"], before)
        done = subprocess.run(made, capture_output=True, text=True, check=False)
        found = self.complete("glue-like", out, done, ("verb",))
        after = {p.name: p.stat().st_mtime_ns for p in (out / "cells").glob("*.json")}
        self.assertTrue(before.items() <= after.items(), "a cell was made twice")
        self.assertEqual(len(re.findall(r"min left\] .*, seed 0", done.stderr)), ROWS["glue-like"] - len(before))
        again = subprocess.run([*made, "--page", str(self.page())], capture_output=True, text=True, check=False)
        self.assertEqual((again.returncode, again.stdout, again.stderr.count("min left]")), (0, done.stdout, 0))
        self.assertAlmostEqual(found["rows"]["star - diagonal(0)"]["tasks"]["verb"]["sparsity"] - found["rows"]["star"]["tasks"]["verb"]["sparsity"], 100 / 32)
        self.replaced(out)
        self.refused_elsewhere(out)

    def page(self):
        """A page with an older section of this comparison, and one of another."""
        path = self.folder / "page.md"
        path.write_text(f"# Head\n\n## {pruning.TITLE}\n\nstays\n\n## {glue_like.TITLE}\n\nold\n")
        return path

    def replaced(self, out):
        said = (self.folder / "page.md").read_text()
        self.assertIn((out / "table.md").read_text().split("![")[0].rstrip("\n"), said)
        self.assertTrue(said.index(glue_like.TITLE) < said.index(f"## {pruning.TITLE}\n\nstays\n") and "old" not in said.split("\n"))
        self.assertEqual(json.loads((self.folder / "page/glue-like.json").read_text()), json.loads((out / "table.json").read_text()))
        for name in re.findall(r"\]\((page/[^)]*)\)", said):
            self.assertTrue((self.folder / name).stat().st_size, name)

    def refused_elsewhere(self, out):
        """Other settings than the folder was begun with."""
        for more in (("--lr", 1), ("--examples", 16), ("--dev", 5)):
            made = run_here("glue-like", out, *SMALL, *more)
            self.assertEqual((made.returncode, len(made.stderr.splitlines())), (2, 1), made.stderr)
            self.assertIn("was begun with", made.stderr)

    def test_sparsegen(self):
        with unittest.mock.patch.multiple(sparsegen, LAMBDAS=SOME_LAMBDAS, PAPER=SOME_LAMBDAS[:2]):
            made = run_here("sparsegen", self.folder / "out", *SMALL)
        found = self.complete("sparsegen", self.folder / "out", made, ("verb",))
        support = found["rows"]["lambda 0, from scratch"]["tasks"]["verb"]["more"][0]
        self.assertTrue(len(support["support"]) == 1 and 0 < support["support"][0] <= support["tokens"])
        self.assertIn("| verb | lambda -4 |", found["note"])

    def learned(self, out):
        """P and the DAM masks, by themselves: P is learned for a moment, the others are given."""
        for name, mask in (("dam-s-1e-4", "window(4)"), ("dam-s-1e-1", "window(1)")):
            run_ = out / "learned" / name
            run_.mkdir(parents=True)
            (run_ / "mask.mask").write_text(f"length 32\nheads 2\n{mask}\n")
            (out / "stages").mkdir(exist_ok=True)
            (out / "stages" / f"learn-{name}.json").write_text('{"steps": 1, "mlm": 1.0, "took_s": 1}')
        o = types.SimpleNamespace(folder=out, minutes=0.1, model=Toy.folder / "trained", tasks=folders.parse(tasks_option("verb"), 32), text=None, length=32, dtype="f32", threads=1,
                                  examples=8)
        c = cells.Cells(Programs(BUILD), o, stages.Clock(1), lambda _: None)
        self.assertGreater(pruning.learn(c, "p-0")["steps"], 0)

    def test_pruning(self):
        out = self.folder / "out"
        Toy.make()
        self.learned(out)
        with unittest.mock.patch.object(pruning, "PERCENTS", SOME_PERCENTS):
            made = run_here("pruning", out, *SMALL)
        found = self.complete("pruning", out, made, ("verb",))
        sparsity = {label: row["tasks"]["verb"]["sparsity"] for label, row in found["rows"].items()}
        self.assertTrue(all(abs(sparsity[f"{kind} {p} %"] - p) < 0.2 for kind in ("P pruned", "random") for p in SOME_PERCENTS), sparsity)
        for name in ("1e-4", "1e-1"):
            self.assertAlmostEqual(sparsity[f"DAM_s, lambda {name}"], sparsity[f"P pruned as DAM_s, lambda {name}"], delta=0.2)

    def test_blockbert(self):
        out = self.folder / "out"
        (out / "stages").mkdir(parents=True)
        (out / "stages/perplexity-steps-n32.json").write_text('{"steps": 4}')  # not as many as there is time for
        made = run("blockbert", out, *SMALL, "--lengths", 32, "--text", Toy.make() / "text.txt", tasks=("verb", "span"))
        found = self.complete("blockbert", out, made, ("long-32",))
        lines = [line.split(" | ") for line in found["note"].splitlines() if line.startswith("| 32 |")]
        self.assertEqual([line[2] for line in lines], ["0.0", "50.0", "0.0"])
        self.assertTrue(all(float(line[3]) > 0 and float(line[10]) > 1 for line in lines), lines)


class PlanTest(reproduce_toy.Scratch):
    def plan(self, *more):
        made = run_here("glue-like", self.folder / "out", "--plan", *more, tasks=("verb", "same", "span"))
        self.assertEqual((made.returncode, made.stderr, list(self.folder.iterdir())), (0, "", []))
        found = re.findall(r"^  (\w+) +(\d+) masks x (\d) of 3 seeds", made.stdout, re.M)
        self.assertEqual([(n, int(m)) for n, m, _ in found], [("verb", 30), ("same", 30), ("span", 30)], made.stdout)
        return [int(seeds) for _, _, seeds in found]

    def test_seeds_are_left_out_before_tasks_and_masks_never(self):
        seen = [self.plan("--minutes", m, "--examples", 64) for m in (0.01, 1.5, 2.5, 4, 6, 60)]
        self.assertEqual((seen[0], seen[-1]), ([1, 0, 0], [3, 3, 3]))
        for before, after in zip(seen, seen[1:]):
            self.assertTrue(all(a <= b for a, b in zip(before, after)), seen)
        for counts in seen:  # a task has a second seed only where every task has the first
            self.assertTrue(max(counts) - min(counts) <= 1 and counts == sorted(counts, reverse=True), seen)
        self.assertGreater(len(set(map(tuple, seen))), 3, seen)

    def test_fit_is_a_prefix(self):
        order = budget.blocks(["a", "b"], 3)
        self.assertEqual(order[:3], [(0, "a"), (0, "b"), (1, "a")])
        self.assertEqual([budget.fit(order, lambda _: 10, left) for left in (0, 9, 10, 29, 30, 60, 99)], [1, 1, 1, 2, 3, 6, 6])


class InputTest(reproduce_toy.Scratch):
    def test_what_is_wrong_is_one_line(self):
        out, text = self.folder / "out", f"verb=text:{Toy.make() / 'text'}"
        (Toy.folder / "run").mkdir()
        (Toy.folder / "run/mask.mask").touch()
        for says, *more in (("NAME=TASK:FOLDER", "--tasks", "verb"), ("no such folder", "--tasks", "verb=text:/none"), ("no task talk;", "--tasks", "verb=talk:/"), ("train.tsv: no such file", "--tasks", f"verb=text:{self.folder}"), ("already", "--tasks", f"{text},{text}"),
                            ("at least one", "--tasks", ""), ("--minutes", "--minutes", 0), ("--seeds", "--seeds", 0), ("config.json", "--model", self.folder),
                            ("--lr", "--lr", "nan"), ("--dtype", "--dtype", "f16"), ("8 or more", "--length", 4), ("--learned", "--learned", self.folder), ("another one", "--learned", Toy.folder / "run", "--learned", Toy.folder / "other/run"),
                            ("no such file", "--text", self.folder / "x"), ("a folder is expected", "-o", __file__), ("--page", "--page", self.folder / "x.txt"), ("baselines", "--baselines", Toy.folder / "trained/config.json")):
            made = run_here("glue-like", out, *more)
            self.assertEqual((made.returncode, len(made.stderr.splitlines()), made.stdout), (2, 1, ""), (says, made.stderr))
            self.assertIn(says, made.stderr)
        self.assertFalse(out.exists())

    def test_the_tasks_are_maskberts(self):
        said = subprocess.run([BUILD / "tools/maskbert/maskbert", "finetune", "x", "--task", "none", "--data", "x", "-o", "x"], capture_output=True, text=True, check=False).stderr
        self.assertEqual(set(re.search("one of (.*) is expected", said)[1].split()), set(folders.KINDS), said)

    def test_a_learned_mask_must_fit(self):
        run_ = self.folder / "learned"
        run_.mkdir()
        (run_ / "mask.mask").write_text("length 32\nheads 3\nwindow(1)\n")
        made = run("glue-like", self.folder / "out", *SMALL, "--learned", run_)
        self.assertEqual((made.returncode, len(made.stderr.splitlines())), (2, 1), made.stderr)
        self.assertIn("3 heads", made.stderr)


class RuleTest(reproduce_toy.Scratch):
    @staticmethod
    def entry(values, dev=400, metric="accuracy"):
        return {"each": dict(enumerate(values)), "mean": sum(values) / len(values), "seeds": len(values), "dev": dev, "metric": metric}

    def test_a_difference_counts_from_two_standard_errors(self):
        rows = {"a": {"t": self.entry([80.0])}, "b": {"t": self.entry([70.0])}, "c": {"t": self.entry([79.0])}}
        d, limit = ordering.difference(rows, "a", "b", "t")
        self.assertAlmostEqual(d, 10)
        self.assertAlmostEqual(limit, 2 * 100 * (0.8 * 0.2 / 400 + 0.7 * 0.3 / 400) ** 0.5)
        self.assertEqual(ordering.judge("", "", rows, ["t"], [("a", "b")], "above")["verdict"], ordering.AGREES)
        self.assertEqual(ordering.judge("", "", rows, ["t"], [("b", "a")], "not below")["verdict"], ordering.DIFFERS)
        self.assertEqual(ordering.judge("", "", rows, ["t"], [("a", "c")], "above")["verdict"], ordering.OPEN)
        self.assertEqual(ordering.judge("", "", rows, ["t"], [("c", "a")], "not below")["verdict"], ordering.AGREES)
        self.assertEqual(ordering.judge("", "", rows, [], [("a", "b")], "above")["verdict"], ordering.OPEN)

    def test_seeds_spread_it(self):
        rows = {"a": {"t": self.entry([80.0, 82.0], metric="matthews")}, "b": {"t": self.entry([70.0, 76.0], metric="matthews")}}
        d, limit = ordering.difference(rows, "a", "b", "t")
        self.assertAlmostEqual(d, 8)
        self.assertAlmostEqual(limit, 2 * (((2 + 18) / 2) * (1 / 2 + 1 / 2)) ** 0.5)
        one = {"a": {"t": self.entry([80.0], metric="matthews")}, "b": {"t": self.entry([70.0], metric="matthews")}}
        self.assertIsNone(ordering.difference(one, "a", "b", "t"))

    def test_a_task_of_which_nothing_was_learned_does_not_count(self):
        rows = {"dense": {"t": self.entry([54.0])}}
        self.assertFalse(ordering.learned(rows, "t", 50.0))
        self.assertTrue(ordering.learned(rows, "t", 48.0))


class PartsTest(reproduce_toy.Scratch):
    def test_heads_have_the_nearest_shares(self):
        self.assertEqual([variants.shares(h, p) for h, p in ((12, (10, 2)), (12, (8, 2, 2)), (4, (10, 2)), (4, (8, 2, 2)), (4, (12, 0)), (2, (8, 2, 2)), (1, (12, 0)))],
                         [[10, 2], [8, 2, 2], [3, 1], [2, 1, 1], [4, 0], None, [1, 0]])
        self.assertEqual(variants.blocks_text(2, [3, 1], 8), "length 8\nheads 4\nhead 0-2: blocks(2, shift=0)\nhead 3-3: blocks(2, shift=1)\n")

    def test_names_of_cells_and_masks_differ(self):
        every = [v for heads in (4,) for v in glue_like.rows(types.SimpleNamespace(models=types.SimpleNamespace(heads=lambda h=heads: h), s=types.SimpleNamespace(learned=[])))]
        self.assertEqual(len({v.key for v in every}), len(every))
        self.assertEqual(len({v.key for v in sparsegen.rows(None)}), 20)
        self.assertTrue({*sparsegen.PAPER, *sparsegen.MAPS} <= set(sparsegen.LAMBDAS))
        self.assertEqual(len({v.key for v in pruning.rows(types.SimpleNamespace(s=types.SimpleNamespace(folder=self.folder)))}), 23)
        masks = variants.Masks(None, self.folder / "masks", 4)
        names = ["star", "random:10", "random:20", "keep:10:/x/P.npy", "keep:20:/x/P.npy", "file:/x/a/mask.mask", "file:/x/b/mask.mask", "like:file:/x/a/mask.mask", "like:star", "blocks:2:3:1",
                 "blocks:2:4:0"]
        self.assertEqual(len({masks.path(m, n, seed) for m in names for n in (32, 64) for seed in (0, 1)}), 2 * (len(names) + 4))

    def test_a_learned_mask_is_known_by_its_content(self):
        run_, seen = self.folder / "runs/dam", []
        run_.mkdir(parents=True)
        show = types.SimpleNamespace(json=lambda *_: {"heads": 1, "layers": 1})
        c = types.SimpleNamespace(models=types.SimpleNamespace(heads=lambda: 2), s=types.SimpleNamespace(learned=[run_], length=32), programs=show)
        masks = variants.Masks(None, self.folder / "masks", 2)
        for k in (1, 1, 2):
            (run_ / "mask.mask").write_text(f"length 32\nwindow({k})\n")
            rows = [v for v in glue_like.rows(c) if v.name.endswith(" dam")]
            seen.append([(v.key, masks.path(v.mask, 32, 0)) for v in rows])
        self.assertEqual((len(seen[0]), seen[0], len({x for pair in seen[0] + seen[2] for x in pair})), (4, seen[1], 12))

    def test_a_sample_is_drawn_once_and_reads_back(self):
        for name in ("text", "pair", "swag", "squad2"):
            task = folders.Task(name, name, Toy.make() / name, 32)
            made, count = folders.sample(task, 7, self.folder / name)
            rows, every = folders.read_rows(made, "dev"), folders.read_rows(task, "dev")
            self.assertEqual((count, len(rows)), (7, 7))
            self.assertTrue(all(r in every for r in rows))
            self.assertEqual(folders.read_rows(made, "train"), folders.read_rows(task, "train"))
            self.assertTrue(folders.texts(task))
            self.assertTrue(0 <= folders.majority(task) <= 100)

    def test_joined_texts_keep_their_answers(self):
        draw = random.Random(1)
        contexts = [" ".join(draw.choice(["á", "text", "of", "words"]) for _ in range(draw.randint(5, 20))) + f" name{k} end" for k in range(30)]
        sizes = {x: 2 * len(x.split()) for x in contexts}
        for k, x in enumerate(contexts):
            row = {"id": str(k), "question": "what", "context": x, "answers": [{"text": f"name{k}", "answer_start": x.index("name")}]}
            made = long_text.join(row, sizes, contexts, 300, draw)
            for a in made["answers"]:
                self.assertEqual(made["context"][a["answer_start"]:a["answer_start"] + len(a["text"])], a["text"])
            self.assertTrue(len(x) < len(made["context"]) and 2 * len(made["context"].split()) <= 255)

    def test_a_model_is_digested_by_what_it_is(self):
        self.assertEqual(options.digest(Toy.make() / "trained"), options.digest(Toy.folder / "trained"))
        self.assertNotEqual(options.digest(Toy.folder / "trained"), options.digest(Toy.folder / "model"))
        self.assertEqual(models.SHARE, 0.4)


cmocka_count.run_cases()
