#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""score_test.py MASKBERT SCORE_DUMP: are the metrics those of plain Python, of scikit-learn and scipy where they are installed, on
random and degenerate cases, and does maskbert score read each format and refuse what is wrong in one line?"""
import collections
import csv
import gzip
import io
import json
import math
import pathlib
import random
import re
import string
import subprocess
import sys
import tempfile
import unicodedata
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cmocka_count  # noqa: E402

MASKBERT, DUMP = (str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(2))
FEW = "--few" in sys.argv
CASES = 20 if FEW else 200


def dump(cases):
    text = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([DUMP], input=text, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert len(lines) == len(cases)
    return lines


# ---- the definitions ----
def accuracy(gold, found):
    return sum(g == f for g, f in zip(gold, found)) / len(gold)


def f1(gold, found):
    tp = sum(g == f == 1 for g, f in zip(gold, found))
    return 2 * tp / (gold.count(1) + found.count(1)) if tp else 0.0


def matthews(gold, found):
    n, g, f = len(gold), collections.Counter(gold), collections.Counter(found)
    c = sum(a == b for a, b in zip(gold, found))
    both = sum(g[k] * f[k] for k in g)
    left, right = n * n - sum(v * v for v in g.values()), n * n - sum(v * v for v in f.values())
    return (c * n - both) / math.sqrt(left * right) if left and right else 0.0


def pearson(x, y):
    if len(set(x)) < 2 or len(set(y)) < 2:
        return None
    mx, my = math.fsum(x) / len(x), math.fsum(y) / len(y)
    dx, dy = [v - mx for v in x], [v - my for v in y]
    return math.fsum(a * b for a, b in zip(dx, dy)) / math.sqrt(math.fsum(a * a for a in dx)) / math.sqrt(math.fsum(b * b for b in dy))


def ranks(x):
    return [sum(w < v for w in x) + (sum(w == v for w in x) + 1) / 2 for v in x]


def normalize(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def words_f1(found, gold, rules):
    found, gold = normalize(found).split(), normalize(gold).split()
    if rules == 2 and not (found and gold):
        return float(found == gold)
    same = sum((collections.Counter(found) & collections.Counter(gold)).values())
    if not same:
        return 0.0
    precision, recall = same / len(found), same / len(gold)
    return 2 * precision * recall / (precision + recall)


def answer(found, golds, rules):
    if rules == 2:
        golds = [g for g in golds if normalize(g)] or [""]
    return max(float(normalize(found) == normalize(g)) for g in golds), max(words_f1(found, g, rules) for g in golds)


# ---- cases ----
def class_cases(r):
    yield {"gold": [0], "found": [0], "classes": 1}
    yield {"gold": [1, 1], "found": [0, 0], "classes": 2}
    for k in range(CASES - 2):
        classes, n = r.choice([1, 2, 2, 3, 17]), r.choice([1, 2, 5, 40, 300])
        gold = [r.randrange(classes) for _ in range(n)]
        found = [g if r.random() < k / CASES else r.randrange(classes) for g in gold]
        if k % 9 == 0:
            found = [found[0]] * n
        if k % 11 == 0:
            gold = [gold[0]] * n
        yield {"gold": gold, "found": found, "classes": classes}


def number_cases(r):
    for k in range(CASES):
        n = r.choice([1, 2, 3, 10, 60])
        x = [r.choice([r.gauss(0, 1), r.randrange(4), r.gauss(1e3, 1)]) for _ in range(n)] if k % 3 else [float(r.randrange(3)) for _ in range(n)]
        y = [v * r.choice([1, -1]) + r.gauss(0, 1) if k % 2 else float(r.randrange(3)) for v in x]
        if k % 13 == 0:
            y = [y[0]] * n
        if k % 17 == 0:
            y = [-2 * v for v in x]
        yield {"x": x, "y": y}


PARTS = ["a", "an", "the", "The", "AN", "house", "red", "House,", "e\u0301", "\u0399\u03a3", "\u03a3", "the\u0301", "a\u00e9", "\u0130", "\u00a0", "\u3000", "\u2003", ".", "!?",
         "\u201cthe\u201d", "a_b", "the-an", "2", "\u0663", "\u00bd", "a\u00b2", "", "\u1e9e", "\u4e2d\u6587", "a\u4e2d", "\x1c", "\u200b", "\u01c5"]


def answer_cases(r):
    def text():
        return r.choice(["", " ", " "]).join(r.choice(PARTS) for _ in range(r.randrange(5)))
    for k in range(2 * CASES):
        rules = 1 + k % 2
        golds = [text() for _ in range(r.randrange(0 if rules == 2 else 1, 4))]
        found = r.choice(golds) if golds and r.random() < .3 else text()
        yield {"text": found, "answers": golds, "rules": rules}


class Metrics(unittest.TestCase):
    def near(self, found, expected, case):
        both = None if found is None else float(found), None if expected is None or math.isnan(expected) else float(expected)
        if None in both:
            self.assertEqual(*both, case)
        else:
            self.assertLessEqual(abs(both[0] - both[1]), 1e-12, case)

    def test_classes(self):
        cases = list(class_cases(random.Random(1)))
        self.assertEqual(len(cases), CASES)
        for case, found in zip(cases, dump(cases)):
            for a, metric in zip(found, (accuracy, f1, matthews)):
                self.near(a, metric(case["gold"], case["found"]), case)

    def test_numbers(self):
        cases = list(number_cases(random.Random(2)))
        for case, found in zip(cases, dump(cases)):
            self.near(found[0], pearson(case["x"], case["y"]), case)
            self.near(found[1], pearson(ranks(case["x"]), ranks(case["y"])), case)

    def test_answers(self):
        cases = list(answer_cases(random.Random(3)))
        for case, found in zip(cases, dump(cases)):
            self.assertEqual(found[0], normalize(case["text"]), case)
            exact, f = answer(case["text"], case["answers"], case["rules"])
            self.near(found[1], exact, case)
            self.near(found[2], f, case)

    def test_every_letter_is_normalized_as_python_does(self):
        points = [chr(p) for p in range(1, 0x110000) if unicodedata.category(chr(p)) not in ("Cn", "Cs", "Co")][::10 if FEW else 1]
        texts = ["".join(f"the{c} A{c}\u03a3 \u03a3{c}b\n" for c in points[k:k + 500]) for k in range(0, len(points), 500)]
        found = dump([{"text": t, "answers": [], "rules": 2} for t in texts])
        for text, line in zip(texts, found):
            if line[0] != normalize(text):
                for a, b in zip(line[0].split(" "), normalize(text).split(" ")):
                    self.assertEqual(a.encode("unicode_escape"), b.encode("unicode_escape"))

    def test_scikit_learn(self):
        try:
            from sklearn import metrics
        except ImportError:
            self.skipTest("scikit-learn is not installed")
        warnings.simplefilter("ignore")
        cases = list(class_cases(random.Random(1)))
        for case, found in zip(cases, dump(cases)):
            g, f = case["gold"], case["found"]
            self.near(found[0], metrics.accuracy_score(g, f), case)
            self.near(found[1], metrics.f1_score(g, f, labels=[1], average="macro", zero_division=0), case)
            self.near(found[2], metrics.matthews_corrcoef(g, f), case)

    def test_scipy(self):
        try:
            from scipy import stats
        except ImportError:
            self.skipTest("scipy is not installed")
        warnings.simplefilter("ignore")
        cases = [c for c in number_cases(random.Random(2)) if len(c["x"]) > 1]
        self.assertGreater(len(cases), CASES / 2)
        for case, found in zip(cases, dump(cases)):
            self.near(found[0], stats.pearsonr(case["x"], case["y"])[0], case)
            self.near(found[1], stats.spearmanr(case["x"], case["y"])[0], case)


# ---- the command ----
def squad(questions):
    return json.dumps({"data": [{"paragraphs": [{"context": "c", "qas": [
        {"id": i, "question": "q", "answers": [{"text": t, "answer_start": 0} for t in texts]} for i, texts in questions]}]}]})


def swag():
    rows = io.StringIO()
    writer = csv.writer(rows)
    writer.writerow(["", "video-id", "sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label"])
    writer.writerow([0, "v", 'He said "go", then\nleft.', "She", "a", "b", "c", "d", 2])
    writer.writerow([1, "v", "x", "y", "a", "b", "c", "d", 0])
    return rows.getvalue()


def mrqa(qid, answers):
    return '{"header": {"dataset": "x"}}\n' + json.dumps({"context": "c d", "qas": [{"qid": qid, "question": "q", "answers": answers, "detected_answers": [
        {"text": "c", "char_spans": [[0, 0]]}]}]}) + "\n"


MNLI = "index\tsentence1\tsentence2\tlabel1\tgold_label\n"
QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
# task, gold, predictions, metrics, rows skipped
GOOD = [
    ("cola", 'gj04\t1\t\tHe said "no.\ngj04\t0\t*\tThem left.\n', "index\tprediction\n0\t1\n1\t0\n", {"matthews": 1}, 0),
    ("sst-2", "\ufeffsentence\tlabel\r\ngood \"film\t1\r\nbad\t0\r\n", "0\t1\n1\t1\n", {"accuracy": .5}, 0),
    ("mrpc", "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\t\"a\tb\n0\t1\t2\ta\tb\n", "0\t1\n1\t1\n", {"accuracy": .5, "f1": 2 / 3}, 0),
    ("qqp", QQP + "7\t1\t2\ta\tb\t1\n8\t1\t2\tbroken\nrow\n9\t1\t2\ta\tb\t0\n", "0\t1\n1\t0\n3\t1\n", {"accuracy": .5, "f1": 2 / 3}, 2),
    ("sts-b", "index\tsentence1\tsentence2\tscore\n0\ta\tb\t5.000\n1\ta\tb\t2.5\n2\ta\tb\t0\n", "0\t4\n1\t2\n2\t-0.0\n", {"pearson": 1, "spearman": 1}, 0),
    ("sts-b", "index\tsentence1\tsentence2\tscore\n0\ta\tb\t5.000\n1\ta\tb\t2.5\n", "0\t4\n1\t4\n", {"pearson": None, "spearman": None}, 0),
    ("mnli", MNLI + "0\ta\tb\tx\tneutral\n1\ta\tb\tx\t-\n2\ta\tb\tx\tentailment\n", "0\tneutral\n1\tneutral\n2\tneutral\n", {"accuracy": .5}, 1),
    ("qnli", "index\tquestion\tsentence\tlabel\n0\tq\ts\tnot_entailment\n", '{"id": 0, "prediction": "not_entailment"}\n', {"accuracy": 1}, 0),
    ("rte", "index\tsentence1\tsentence2\tlabel\n0\tq\ts\tentailment\n", "0\tnot_entailment", {"accuracy": 0}, 0),
    ("wnli", "index\tsentence1\tsentence2\tlabel\n0\tq\ts\t1\n", '{"id": "0", "prediction": 1, "probabilities": [0, 1]}\n', {"accuracy": 1}, 0),
    ("swag", swag(), "1\t0\n0\t3\n", {"accuracy": .5}, 0),
    ("mrqa", mrqa("q", ["The Cat", "red"]), '{"q": "cat"}', {"exact_match": 100, "f1": 100}, 0),
    ("mrqa", mrqa("q", ["x y"]), '{"id": "q", "prediction": "an y"}\n', {"exact_match": 0, "f1": 200 / 3}, 0),
    ("sst-1", "(3 (2 It) (4 works))\n(0 Bad)\n", "0\t3\n1\t1\n", {"accuracy": .5}, 0),
    ("semeval", '1\t2\t"objective"\tx\n3\t4\t"positive"\tNot Available\n5\t6\t"negative"\ty\n', "0\tneutral\n2\tpositive\n", {"accuracy": .5}, 1),
    ("sentube", {"neg.txt": "bad car\n", "pos.txt": "nice\ngood\n"}, "0\tpositive\n1\tpositive\n2\tnegative\n", {"accuracy": 1 / 3}, 0),
    ("scitail", 'a "b\tc\tentails\nd\te\tneutral\n', "0\tentails\n1\tentails\n", {"accuracy": .5}, 0),
    ("text", "text\tlabel\nx\tblue\ny\tred\n", '{"id":0,"prediction":"blue"}\n\n{"id":1,"prediction":"green"}\n', {"accuracy": .5, "matthews": .5}, 0),
    ("text", '{"text":"x","label":1.0}\n{"text":"y","label":2}\n', "0\t1\n1\t3\n", {"pearson": 1, "spearman": 1}, 0),
    ("pair", '{"text":"x","text2":"y","label":true}\n', "0\t1\n", {"accuracy": 1, "matthews": 0}, 0),
    ("tokens", "-DOCSTART-\tO\n\nAda\tB\nsaid\tO\n\n\nyes\tO\n", '{"id":0,"prediction":["B","B"]}\n{"id":1,"prediction":["O"]}\n', {"accuracy": 2 / 3}, 0),
    ("squad1", squad([("q1", ["The Cat"]), ("q2", ["red house", "house"])]), '{"q1": "cat", "q2": "a red"}', {"exact_match": 50, "f1": 100 * (1 + 2 / 3) / 2}, 0),
    ("squad1", squad([("q1", ["The Cat"]), ("q2", ["x"])]), '{"id": "q2", "prediction": "y"}\n{"id": "q1", "prediction": "cat", "score": 2}\n', {"exact_match": 50, "f1": 50}, 0),
    ("squad1", squad([("id", ["x"]), ("prediction", ["y"])]), '{"id": "x", "prediction": "y"}', {"exact_match": 100, "f1": 100}, 0),
    ("squad2", squad([("q1", []), ("q2", ["house"])]), '{"q1": "", "q2": ""}', {"exact_match": 50, "f1": 50, "has_answer_exact_match": 0, "has_answer_f1": 0,
                                                                                "no_answer_exact_match": 100, "no_answer_f1": 100}, 0),
]
SST = "sentence\tlabel\na\t1\nb\t0\n"
# task, gold, predictions, the message's beginning
BAD = [
    ("glue", SST, "", 'task "glue": one of cola'),
    ("sst-2", "sentence\tlabel\na\t1\nb\tyes\n", "0\t1\n", 'GOLD:3:3: label "yes": one of 0, 1 is expected'),
    ("sst-2", "sentence\tlabel\na\n", "0\t1\n", "GOLD:2:1: the last of 1 columns; 2 are expected"),
    ("sst-2", "text\tlabel\na\t1\n", "0\t1\n", 'GOLD:1:1: a header line with a column "sentence"'),
    ("sst-2", "index\tsentence\n0\ta\n", "0\t1\n", "GOLD: the gold file has no labels"),
    ("sst-2", "", "0\t1\n", "GOLD:1:1: no example"),
    ("sst-2", "sentence\tlabel\na\0b\t1\n", "0\t1\n", "GOLD:2:2: a zero byte"),
    ("sst-2", SST, "0\t1\n", 'FOUND: no prediction of id "1"; 1 of 2 are missing'),
    ("sst-2", SST, "0\t1\n1\t1\n1\t0\n", 'FOUND:3:1: id "1": a second prediction'),
    ("sst-2", SST, "0\t1\n2\t1\n", 'FOUND:2:1: id "2": not in the gold file'),
    ("sst-2", SST, "0\tpositive\n1\t1\n", 'FOUND:1:1: prediction "positive": one of 0, 1'),
    ("sst-2", SST, "0\n", "FOUND:1:1: an index, a tab and a prediction"),
    ("sst-2", SST, '{"id":0,"prediction":1}\n{"id":1 "prediction":1}\n', "FOUND:2:"),
    ("sst-2", SST, '{"id":0}\n', 'FOUND:1:1: a "prediction" is expected'),
    ("sst-2", SST, '{"prediction":0}\n', 'FOUND:1:1: an "id" is expected'),
    ("sts-b", "sentence1\tsentence2\tscore\na\tb\tnan\n", "0\t1\n", 'GOLD:2:5: label "nan": a number'),
    ("sts-b", "sentence1\tsentence2\tscore\na\tb\t1\n", "0\tinf\n", 'FOUND:1:1: prediction "inf": a finite number'),
    ("text", '{"text":"x","label":[]}\n', "0\t1\n", 'GOLD:1:1: a "label" is expected'),
    ("text", "text\tlabel\nx\ty\tz\n", "0\t1\n", "GOLD:2:5: the last of 3 columns; 2 are expected"),
    ("swag", swag() + '"open', "0\t1\n", "GOLD:5:1: no quote closes this one"),
    ("tokens", "word\n", "", "GOLD:1:1: a word, a tab and its label"),
    ("tokens", "word\tO\n", '{"id":0,"prediction":["O","O"]}', 'FOUND:1:1: id "0": a list "prediction" of 1 labels'),
    ("tokens", "a\tO\nb\tO\n", "0\tO\n", "FOUND:1:"),
    ("squad1", squad([("q", [])]), "{}", "GOLD: data[0].paragraphs[0].qas[0]: \"answers\" is empty"),
    ("squad1", '{"data": [}', "{}", "GOLD:1:"),
    ("squad1", squad([("q", ["x"])]), '{"q": "x",\n "q": "y"}', "FOUND:2:"),
    ("squad1", squad([("q", ["x"]), ("q", ["y"])]), '{"q": "x"}', 'id "q" stands twice in the gold file'),
    ("squad1", squad([("q", ["x"])]), '{"id": "q", "prediction": "x"}\n{"id": "q", "prediction": "x"}', 'FOUND:2:1: id "q": a second prediction'),
    ("squad1", squad([("q", ["x"])]), '{"id": "q", "prediction": ["x"]}', 'FOUND:1:1: a "prediction" is expected, a text'),
    ("mrqa", mrqa("q", []), "{}", 'GOLD:2:1: qas[0]: "answers"'),
    ("sst-1", "(3 (2 It) 4\n", "0\t1\n", "GOLD:1:11: ) is expected"),
    ("semeval", "1\tgood\tx\n", "0\tneutral\n", 'GOLD:1:3: label "good"'),
    ("sentube", {"neg.txt": "x\n", "pos.txt": "a\0"}, "0\tpositive\n", "GOLD/pos.txt:1:2: a zero byte"),
    ("scitail", "a\tb\tentailment\n", "0\tentails\n", 'GOLD:1:5: label "entailment": one of entails, neutral'),
    ("squad1", squad([("q", ["x"])]), "[]", "FOUND:1:1: an object {id: text} is expected"),
]


class Command(unittest.TestCase):
    def score(self, task, gold, found, *options, name="GOLD"):
        files = {f"{name}/{k}": v for k, v in gold.items()} if isinstance(gold, dict) else {name: gold}
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**files, "FOUND": found}.items():
                path = pathlib.Path(folder) / path
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
            return subprocess.run([MASKBERT, "score", task, "FOUND", name, *options], cwd=folder, capture_output=True, text=True)

    def test_each_format_is_read(self):
        for task, gold, found, metrics, skipped in GOOD:
            with self.subTest(task=task):
                done = self.score(task, gold, found, "--json")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                said = json.loads(done.stdout)
                self.assertEqual((said["task"], said["skipped"], list(said["metrics"])), (task, skipped, list(metrics)))
                for name, value in metrics.items():
                    if value is None:
                        self.assertIsNone(said["metrics"][name])
                    else:
                        self.assertAlmostEqual(said["metrics"][name], value, delta=1e-12)

    def test_whole_numbers_may_be_a_regression(self):
        gold, found = "text\tlabel\nx\t1\ny\t3\nz\t2\n", "0\t2\n1\t6\n2\t4\n"
        self.assertEqual(list(json.loads(self.score("text", gold, found, "--json").stdout)["metrics"]), ["accuracy", "matthews"])
        said = json.loads(self.score("text", gold, found, "--json", "--regression").stdout)["metrics"]
        self.assertEqual(list(said), ["pearson", "spearman"])
        self.assertAlmostEqual(said["pearson"], 1, delta=1e-12)
        for task, labels, message in (("text", "text\tlabel\nx\tred\n", 'GOLD:2:3: label "red": a number'), ("cola", gold, "--regression is for")):
            done = self.score(task, labels, found, "--regression")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertTrue(done.stderr.startswith("maskbert: " + message), done.stderr)

    def test_packed_files(self):
        packed = gzip.compress(mrqa("q", ["cat"]).encode())
        done = self.score("mrqa", packed, '{"q": "cat"}', "--json", name="GOLD.jsonl.gz")
        if "built without zlib" in done.stderr:
            self.skipTest("built without zlib")
        self.assertEqual(json.loads(done.stdout)["metrics"], {"exact_match": 100, "f1": 100})
        done = self.score("mrqa", packed[:-9], '{"q": "cat"}', name="GOLD.jsonl.gz")
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stderr.startswith("maskbert: GOLD.jsonl.gz: "), done.stderr)

    def test_text(self):
        done = self.score(*GOOD[5][:3])
        self.assertEqual([line.split() for line in done.stdout.splitlines()],
                         [["task", "sts-b"], ["examples", "2"], ["pearson", "undefined"], ["spearman", "undefined"]])

    def test_what_is_wrong_is_one_line(self):
        for task, gold, found, message in BAD:
            with self.subTest(message=message):
                done = self.score(task, gold, found, "--json")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertTrue(done.stderr.startswith("maskbert: " + message), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    cmocka_count.run_cases()
