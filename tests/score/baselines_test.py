#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""baselines_test.py BUILD PYTHON: does maskbert score accept what tools/reproduce baselines predicts, and say what the labels say? Are the
majority's scores those counted here? Bags of words run with the python named, or this one, where it has scikit-learn."""
import collections
import contextlib
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / path) for path in ("tools/labelled", "tools/reproduction", "tools", "tests/support", "tests/data")]
import baselines  # noqa: E402
import cmocka_count  # noqa: E402
import labelled_lists as lists  # noqa: E402
import make_labelled  # noqa: E402
import spans  # noqa: E402
from programs import Fatal, Programs  # noqa: E402

BUILD, PYTHON = sys.argv.pop(1), sys.argv.pop(1)
PYTHON = sys.executable if PYTHON == "-" else PYTHON
PARTS = ("dev", "test")


def reproduce(python, *arguments):
    return subprocess.run([*python, ROOT / "tools/reproduce", "baselines", LABELLED, "--build", BUILD, *arguments],
                          capture_output=True, text=True, check=False)


def labels(task, part):
    path = LABELLED / task / f"{part}{baselines.FORMATS[task][1]}"
    with open(path, encoding="utf-8", newline="") as f:
        if task == "endings":
            return [row["label"] for row in csv.DictReader(f)]
        return [line.rstrip("\n").split("\t")[-1] for line in f][1:]


class Majority(unittest.TestCase):
    def test_scores_are_those_counted_from_the_files(self):
        done = reproduce([sys.executable, "-S"], "-o", WORK / "majority", "--method", "majority", "--json")  # without any library
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        tasks = json.loads(done.stdout)["tasks"]
        self.assertEqual([*tasks], ["section", "synopsis", "endings", "subject"])
        for task in ("section", "synopsis", "endings"):
            train = collections.Counter(labels(task, "train"))
            label = min(train, key=lambda x: (-train[x], x))
            for part in PARTS:
                gold, found = labels(task, part), tasks[task][part]["majority"]
                self.assertEqual((found["examples"], found["metrics"]["accuracy"]), (len(gold), gold.count(label) / len(gold)))
        for part in PARTS:
            found = tasks["subject"][part]["majority"]["metrics"]
            self.assertAlmostEqual(found["exact_match"], 100 / 3, 9)
            self.assertEqual((found["no_answer_exact_match"], found["has_answer_f1"]), (100, 0))

    def test_the_table_says_the_same(self):
        done = reproduce([sys.executable, "-S"], "-o", WORK / "majority", "--method", "majority")
        rows = [line.split() for line in done.stdout.splitlines()[1:13]]
        made = json.loads((WORK / "majority/baselines.json").read_text(encoding="utf-8"))
        for task, part, examples, metric, value in rows:
            found = made["tasks"][task][part]["majority"]
            factor = 1 if task == "subject" else 100
            self.assertEqual((int(examples), value), (found["examples"], f"{found['metrics'][metric] * factor:.1f}"))
        self.assertEqual(len(rows), 12)

    def test_a_missing_library_is_named(self):
        done = reproduce([sys.executable, "-S"], "-o", WORK / "none")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1))
        self.assertIn("python3-sklearn", done.stderr)
        self.assertFalse((WORK / "none").exists())

    def test_other_folders_are_refused(self):
        for folder in ("nowhere", "half"):
            (WORK / "half/section").mkdir(parents=True, exist_ok=True)
            (WORK / "half/section/train.tsv").write_text("text\n", encoding="utf-8")
            with self.assertRaises(Fatal) as end:
                baselines.run(Programs(BUILD, ["maskbert"]), WORK / folder, WORK / "out", ("majority",), True)
            self.assertEqual(end.exception.code, 2)


class BagOfWords(unittest.TestCase):
    def test_spans_are_what_the_best_sentence_has_of_rare(self):
        texts = ["The zipp is a fast archiver for files. The other is a game of cards.", "The other is a game of dice. A plot is here for files."]
        rows = [{"question": "archiving program for files", "context": texts[0], "answers": ["zipp"]},
                {"question": "window manager", "context": texts[1], "answers": []}]
        found, chosen = spans.predict({"train": rows, "dev": rows, "test": rows[1:]})
        self.assertEqual(found, {"dev": ["zipp", ""], "test": [""]})
        self.assertTrue(0 < chosen["threshold"] < 1)

    def test_maskbert_scores_them(self):
        if subprocess.run([PYTHON, "-c", "import sklearn"], capture_output=True, check=False).returncode:
            self.skipTest("no scikit-learn")
        done = reproduce([PYTHON], "-o", WORK / "words", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for task, result in json.loads(done.stdout)["tasks"].items():
            metric = baselines.METRICS[task][0]
            for part in PARTS:
                plain, found = result[part]["majority"], result[part]["bag-of-words"]
                self.assertEqual(plain["examples"], found["examples"])
                self.assertGreater(found["metrics"][metric], 1.2 * plain["metrics"][metric], task)
            self.assertTrue(result["settings"]["bag-of-words"], task)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()):
        WORK = pathlib.Path(work)
        LABELLED = WORK / "labelled"
        make_labelled.make(lists.write(WORK / "lists"), LABELLED, 0)
        with contextlib.redirect_stdout(sys.__stdout__):
            cmocka_count.run_cases()
