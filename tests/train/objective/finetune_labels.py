# SPDX-License-Identifier: Apache-2.0
"""Labels of a model that are spelt in another way than those of the task, or in another order: what finetune_test.py asks of them."""
import json
import math
import os
import re
import statistics

import pretrain_toy
from finetune_toy import arguments, evaluate


def rename_labels(folder, names):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["id2label"] = {str(k): name for k, name in enumerate(names)}
    config["label2id"] = {name: k for k, name in enumerate(names)}
    path.write_text(json.dumps(config))


def more_training(toy, task):
    """What a step without effect on the model `run` says, the dev loss, and the labels of the new model."""
    command = ("finetune", "run", "--task", task, "--data", task, "-o", "more", "--steps", 1, "--lr", 0, "--dropout", 0)
    said = toy.ok(*command).stderr
    assert "no step was left to do" in toy.ok(*command, "--resume").stderr
    loss = [x for x in toy.log("more") if x.get("eval") == "dev"][-1]["loss"]
    labels = json.loads((toy.work / "more/config.json").read_text())["id2label"]
    toy.remove("more")
    return said, loss, [labels[str(k)] for k in range(len(labels))]


def other_spellings(toy):
    """Labels of a model are those of the task without regard to case and order; its own numbers and names stay. A head with others is
    replaced, and stderr has the reason."""
    toy.ok(*arguments("text", "run", "--steps", 20))
    names = [x.upper() for x in sorted(pretrain_toy.VERBS, reverse=True)]
    rename_labels(toy.work / "run", names)
    evaluate(toy, "text", "run", "--predictions", "p.json")
    rows = [json.loads(x) for x in (toy.work / "p.json").read_text().splitlines()]
    gold = [x.rpartition("\t")[2].upper() for x in (toy.work / "text/dev.tsv").read_text().splitlines()[1:]]
    assert all(names[max(range(8), key=x["probabilities"].__getitem__)].lower() == x["prediction"] for x in rows)
    expected = statistics.mean(-math.log(x["probabilities"][names.index(g)]) for x, g in zip(rows, gold))
    said, loss, labels = more_training(toy, "text")
    assert "newly initialised" not in said and labels == names and abs(loss - expected) < 1e-5 * expected, (said, labels, loss, expected)
    rename_labels(toy.work / "run", [*names[:7], "other"])
    toy.refused(f'the model has no label "{names[7].lower()}" of the task', "eval", "run", "--task", "text", "--data", "text")
    said = more_training(toy, "text")[0]
    assert f"classifier.bias; the model's own head has no label \"{names[7].lower()}\"" in said, said
    matched_and_mismatched(toy)
    shown_labels(toy)
    toy.remove("run")
    os.remove(toy.work / "p.json")


def matched_and_mismatched(toy):
    """`eval` scores both files of MNLI and writes the predictions of both, also for a submission of the test files. A pipe gets those of the first."""
    rename_labels(toy.work / "run", ["entailment", "neutral", "contradiction", *"abcde"])
    folder = toy.work / "mnli"
    for x in (folder, toy.work / "p.v1"):
        x.mkdir()
    for name, label, rows in (("dev", "gold_label", 3), ("test", None, 2)):
        for part, count in (("matched", rows), ("mismatched", rows + 3)):
            head, row = ("sentence1", "sentence2", *([label] if label else [])), ("the cat", "the dog", *(["neutral"] if label else []))
            (folder / f"{name}_{part}.tsv").write_text("".join("\t".join(x) + "\n" for x in (head, *[row] * count)))
    said = evaluate(toy, "mnli", "run", "--predictions", "p.v1/dev.jsonl")
    assert said["examples"] == 3 and said["mismatched"]["examples"] == 6 and said["mismatched"]["metrics"] == said["metrics"], said
    assert evaluate(toy, "mnli", "run", "--split", "test", "--predictions", "p.v1/MNLI-m.tsv")["mismatched"]["examples"] == 5
    counts = {x.name: len(x.read_text().splitlines()) for x in (toy.work / "p.v1").iterdir()}
    assert counts == {"dev.jsonl": 3, "dev-mm.jsonl": 6, "MNLI-m.tsv": 3, "MNLI-mm.tsv": 6}, counts
    made = toy.ok("eval", "run", "--task", "mnli", "--data", "mnli", "--predictions", "/dev/fd/1")
    assert len(made.stdout.splitlines()) == 5 and "/dev/fd/1: not a regular file; the predictions of the mismatched file are left out" in made.stderr, made
    toy.remove("mnli", "p.v1")


def shown_labels(toy):
    """`classify` prints control characters of labels as '?'. A head of many labels a text is called by its problem_type."""
    rename_labels(toy.work / "run", [f"a\nb\tc\x1b\u0085{k}" for k in range(8)])
    shown = toy.ok("classify", "run", stdin="the cat\n").stdout
    assert re.fullmatch(r"a\?b\?c\?\?\?[0-7] [01]\.\d{4}\n", shown), shown
    path = toy.work / "run/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "problem_type": "multi_label_classification"}))
    toy.refused("run: problem_type of config.json is multi_label_classification; single", "eval", "run", "--task", "text", "--data", "text")


def published_names(toy):
    """SST-2's classes are 0 and 1 in its files, and in models negative and positive, or without names."""
    folder = toy.work / "sst-2"
    folder.mkdir()
    for part in ("train", "dev"):
        (folder / f"{part}.tsv").write_text("sentence\tlabel\nthe cat sees\t1\nthe dog\t0\nthe red dog\t1\n")
    toy.ok(*arguments("sst-2", "run", "--steps", 1))
    command = ("eval", "run", "--task", "sst-2", "--data", "sst-2", "--predictions")
    toy.ok(*command, "first.tsv")
    for names, new in ((["NEGATIVE", "Positive"], 0), (["LABEL_0", "LABEL_1"], 0), (["positive", "negative"], 1)):
        rename_labels(toy.work / "run", names)
        toy.ok(*command, "p.tsv")
        first, other = ([x.split("\t")[1] for x in (toy.work / x).read_text().splitlines()[1:]] for x in ("first.tsv", "p.tsv"))
        assert other == [str(int(x) ^ new) for x in first], (names, first, other)
        said, _, labels = more_training(toy, "sst-2")
        assert "newly initialised" not in said and labels == (["0", "1"] if names[0] == "LABEL_0" else names), (said, labels)
    rename_labels(toy.work / "run", ["a", "b", "c"])
    toy.refused('the model has no label "0"', *command, "p")
    toy.remove("run", "sst-2")
    for name in ("first.tsv", "p.tsv"):
        os.remove(toy.work / name)
