#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""answers_test.py SCORE_DUMP: are the scores of whole files of SQuAD 1.1, SQuAD 2.0 and MRQA those of a second scorer, on random and
degenerate ones? The scorer is written from what the papers and the scripts' documents say, character by character, with no
regular expression and no Counter."""
import json
import pathlib
import random
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cmocka_count  # noqa: E402

DUMP = str(pathlib.Path(sys.argv.pop(1)).resolve())
CASES = 200
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


# ---- the scorer ----
def words_of(text):
    """Lower case, no ASCII punctuation, then no article as a whole word, then split at white space."""
    plain = [c for c in text.lower() if c not in PUNCTUATION]
    kept, run = [], []
    for c in plain + [" "]:
        if c.isalnum():  # an underscore is punctuation and has gone
            run.append(c)
            continue
        kept.append(" " if "".join(run) in ("a", "an", "the") else "".join(run))
        kept.append(c)
        run = []
    return "".join(kept).split()


def overlap(found, gold):
    """F1 of two lists of words: each word of the gold answer is found once at most."""
    left, same = list(gold), 0
    for word in found:
        if word in left:
            left.remove(word)
            same += 1
    return 2 * same / (len(found) + len(gold)) if same else 0.0


def score_one(found, golds, no_answer):
    """The best over the gold answers. With questions that have none (SQuAD 2.0), a gold answer without words counts only where there is
    no other, and two answers without words are equal in F1, too."""
    golds = [words_of(g) for g in golds]
    if no_answer:
        golds = [g for g in golds if g] or [[]]
    found = words_of(found)
    exact = max(float(found == g) for g in golds)
    f1 = max(float(found == g) if no_answer and not (found and g) else overlap(found, g) for g in golds)
    return exact, f1


def mean(values):
    return 100 * sum(values) / len(values) if values else None


def score_file(task, golds, found):
    scores = [(bool(golds[i]), *score_one(found[i], golds[i], task == "squad2")) for i in golds]
    every = {"exact_match": mean([s[1] for s in scores]), "f1": mean([s[2] for s in scores])}
    if task == "squad2":
        for name, has in (("has_answer", True), ("no_answer", False)):
            every[name + "_exact_match"] = mean([s[1] for s in scores if s[0] is has])
            every[name + "_f1"] = mean([s[2] for s in scores if s[0] is has])
    return every


# ---- files ----
def squad(golds):
    qas = [{"id": i, "question": "q", "answers": [{"text": t, "answer_start": 0} for t in texts]} for i, texts in golds.items()]
    return json.dumps({"version": "x", "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": qas[k::2]} for k in range(2)]}]})


def mrqa(golds):
    lines = [{"header": {"dataset": "x", "mrqa_split": "dev"}}]
    lines += [{"context": "c", "context_tokens": [["c", 0]], "qas": [{"qid": i, "question": "q", "answers": texts, "detected_answers": [
        {"text": "c", "char_spans": [[0, 0]], "token_spans": [[0, 0]]}]}]} for i, texts in golds.items()]
    return "".join(json.dumps(line) + "\n" for line in lines)


PARTS = ["a", "an", "the", "THE", "An", "A", "cat", "Cat", "cats", "the-cat", "a_b", "U.S.", "1,000", "\u201cthe\u201d", "\u2014", "\u00e9", "e\u0301", "th\u00e9",
         "the\u0301", "\u0399\u03a3", "\u0391\u0399\u03a3.", "\u0130", "\u00df", "\u4e2d\u6587", "\u4e2da", "\u00a0", "\u3000", "\u200b", "\u00ab", "\u00bf", "\u060c", "\u3002",
         "\u00b2", "\u00bd", "\u0663", "x\ty", "\n", "!", "...", "'s", "-", "_", ""]


def text(r):
    return r.choice(["", " ", " ", "  "]).join(r.choice(PARTS) for _ in range(r.randrange(6)))


def near(r, gold):
    """A gold answer, or one that shares words with it."""
    words = gold.split()
    r.shuffle(words)
    return r.choice([gold, "The " + gold.upper() + ".", " ".join(words), " ".join(words[:-1] + words[:1])])


def files(task, seed):
    r = random.Random(seed)
    for k in range(CASES):
        golds, found = {}, {}
        for q in range(1 if k % 10 == 0 else r.randrange(1, 9)):
            least = 0 if task == "squad2" and k % 4 else 1
            golds[f"q{q}"] = texts = [text(r) for _ in range(r.randrange(least, 5))]
            if task == "squad2" and k % 7 == 0:
                texts.clear()
            found[f"q{q}"] = near(r, r.choice(texts)) if texts and r.random() < .5 else r.choice(["", text(r)])
        yield golds, found


def predictions(found, k):
    if k % 2:
        return json.dumps(found)
    return "".join(json.dumps({"id": i, "prediction": t}) + "\n" for i, t in found.items())


class Answers(unittest.TestCase):
    def check(self, task, write, seed):
        cases = list(files(task, seed))
        lines = [json.dumps({"task": task, "file": write(golds), "predictions": predictions(found, k)}) for k, (golds, found) in enumerate(cases)]
        done = subprocess.run([DUMP], input="\n".join(lines), capture_output=True, text=True, check=True)
        results = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
        self.assertEqual(len(results), CASES)
        hits = 0
        for (golds, found), got in zip(cases, results):
            expected = score_file(task, golds, found)
            self.assertEqual(list(got), list(expected), (golds, found))
            hits += 0 < expected["f1"] < 100
            for name, value in expected.items():
                if value is None:
                    self.assertIsNone(got[name])
                else:
                    self.assertLessEqual(abs(got[name] - value), 1e-12 * 100, (name, golds, found))
        self.assertGreater(hits, CASES // 3)

    def test_squad1(self):
        self.check("squad1", squad, 1)

    def test_squad2(self):
        self.check("squad2", squad, 2)

    def test_mrqa(self):
        self.check("mrqa", mrqa, 3)

    def test_the_scorer_itself(self):
        self.assertEqual(words_of("The  Cat, an\tapple!"), ["cat", "apple"])
        self.assertEqual(words_of("\u201cthe\u201d a_b the\u0301 th\u00e9"), ["\u201c", "\u201d", "ab", "\u0301", "th\u00e9"])
        self.assertEqual(score_one("", [], True), (1, 1))
        self.assertEqual(score_one("the", ["an"], False), (1, 0))
        self.assertEqual(score_one("red house", ["house", "a red car"], False), (0, 2 / 3))


if __name__ == "__main__":
    cmocka_count.run_cases()
