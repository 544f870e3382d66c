#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""finetune_test.py MASKBERT [--few]: `maskbert finetune` and `eval --task` on every kind of task, over a toy.

A model learns each task; `eval` repeats the figures of the run, and `classify` and `answer` its predictions, exactly. The same bits
for any number of threads and after kills. Several seeds, a grid, repeats. What is refused. --few (under sanitizers): a step of a task of each head on fewer samples, nothing is learned.
"""
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]
import finetune_toy  # noqa: E402
import pretrain_toy  # noqa: E402
from finetune_files import cut_texts, odd_files, packed_files, resumed_evaluations, undefined_metric  # noqa: E402
from finetune_labels import other_spellings, published_names  # noqa: E402
from finetune_lengths import limits_of_folders, short_masks, windows  # noqa: E402
from finetune_toy import answers, arguments, dev_texts, evaluate  # noqa: E402

FEW = "--few" in sys.argv
# the model's class, the metric that decides, what it is at least after so many epochs
EXPECTED = {
    "text": ("BertForSequenceClassification", "accuracy", 0.9, 9),
    "pair": ("BertForSequenceClassification", "accuracy", 0.45, 2),
    "number": ("BertForSequenceClassification", "pearson", 0.9, 4),
    "tokens": ("BertForTokenClassification", "accuracy", 0.95, 2),
    "swag": ("BertForMultipleChoice", "accuracy", 0.35, 2),
    "squad1": ("BertForQuestionAnswering", "f1", 35, 3),
    "squad2": ("BertForQuestionAnswering", "f1", 20, 1),
}


def same_answers(toy, task, run):
    """The predictions that `eval` wrote are those of `classify` and `answer`."""
    said = (toy.work / "p.json").read_text()
    os.remove(toy.work / "p.json")
    theirs = answers(toy, task, run)
    if task.startswith("squad"):
        assert list(json.loads(said).values()) == theirs
        return
    ours = [json.loads(x) for x in said.splitlines()]
    assert [x["id"] for x in ours] == list(range(len(ours))) and len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        if task == "number":
            assert abs(float(a["prediction"]) - b["values"][0]) < 1e-6 * max(1, abs(b["values"][0])), (a, b)
        elif task == "swag":
            assert int(a["prediction"]) == b["choice"], (a, b)
        elif task != "tokens":
            assert a["prediction"] == b["label"], (a, b)
            assert all(abs(x - y["probability"]) < 1e-7 for x, y in zip(a["probabilities"], b["labels"])), (a, b)


def check_log(log, metric, epochs, summary):
    """An evaluation for each epoch, and the best of them in the summary."""
    evals = [x for x in log if x.get("eval") == "dev"]
    assert len(evals) == epochs and max(x[metric] for x in evals) == max(evals, key=lambda x: x[metric])[metric]
    assert abs(max(x[metric] for x in evals) - summary["metric"]["mean"]) < 0.02 * max(1, summary["metric"]["mean"]), (evals, summary)


def learns(toy, task):
    name, metric, least, epochs = EXPECTED[task]
    length = ["--steps", 1] if FEW else ["--epochs", epochs]
    made = toy.ok(*arguments(task, "run", *length, "--json"))
    summary = json.loads(made.stdout)
    config = json.loads((toy.work / "run/config.json").read_text())
    assert config["architectures"] == [name] and "newly initialised: " in made.stderr, (config, made.stderr)
    assert summary == json.loads((toy.work / "run/summary.json").read_text())
    assert summary["metric"]["name"] == metric and (FEW or summary["metric"]["mean"] > least), (task, summary["metric"])
    says = evaluate(toy, task, "run", "--predictions", "p.json")
    assert says["metrics"] == summary["runs"][0]["metrics"] and says["examples"] == finetune_toy.COUNTS["dev"], says
    if not FEW:
        check_log(toy.log("run"), metric, epochs, summary)
    same_answers(toy, task, "run")
    if task == "text":
        labels = sorted(pretrain_toy.VERBS)
        assert [config["id2label"][str(k)] for k in range(8)] == labels and config["label2id"][labels[3]] == 3
    if task == "squad2":
        best_threshold(toy)
    if task == "number":
        assert config["problem_type"] == "regression" and config["num_labels"] == 1
        one_label(toy, config)
    if task.startswith("squad"):
        assert not {"id2label", "label2id", "num_labels"} & config.keys(), "transformers expects two labels"
    if not FEW:
        keeps_head(toy, task)
    if not FEW or task in ("text", "squad2"):
        overflows(toy, task)
    toy.remove("run")


def one_label(toy, config):
    """A single label has the sigmoid of its logit unless problem_type is "regression", as in transformers' pipeline. `eval` reads a number also where it is
    missing."""
    logits = [x["values"][0] for x in answers(toy, "number", "run")]
    path = toy.work / "run/config.json"
    kept = path.read_text()
    metrics = evaluate(toy, "number", "run")["metrics"]
    for problem in ("single_label_classification", None):
        path.write_text(json.dumps({**config, "problem_type": problem}))
        found = [x["labels"][0]["probability"] for x in answers(toy, "number", "run")]
        assert all(abs(p - 1 / (1 + math.exp(-x))) < 1e-6 for p, x in zip(found, logits)) and len(found) == len(logits), (found, logits)
    assert evaluate(toy, "number", "run")["metrics"] == metrics
    weights = toy.weights("run")
    finetune_toy.overflow("run", "classifier.bias", value=-9)
    assert toy.ok("classify", "run", stdin="the cat\n").stdout.startswith("LABEL_0 0.0"), "an unlikely label is printed, too"
    (toy.work / "run/model.safetensors").write_bytes(weights)
    path.write_text(kept)


def keeps_head(toy, task):
    """A model that has the task's head goes on with it."""
    made = toy.ok("finetune", "run", "--task", finetune_toy.NAMES.get(task, task), "--data", task, "-o", "more", "--steps", 1, "--lr", 0, "--json")
    assert "newly initialised" not in made.stderr, made.stderr
    first, again = (json.loads((toy.work / f"{x}/summary.json").read_text())["metrics"] for x in ("run", "more"))
    assert first == again, (first, again)
    toy.remove("more")


def overflows(toy, task):
    """Output that is not finite is one error, not an empty line, a NaN or a figure."""
    finetune_toy.overflow("run", "word_embeddings.weight")
    lines = dev_texts(task)[0] + "\n"
    for more in ([], ["--json"]) if task in ("text", "squad1") else (["--json"],):
        toy.refused("maskbert: the model's output for line 1 is not finite", "answer" if task.startswith("squad") else "classify", "run", *more, stdin=lines, code=1)
    where = {"squad1": "dev.json: the model's output for example ", "squad2": "dev.json: the model's output for example "}.get(task, ": the model's output for line ")
    toy.refused(where, "eval", "run", "--task", finetune_toy.NAMES.get(task, task), "--data", task, "--predictions", "p.json", code=1)
    if task == "text":
        toy.refused("maskbert: layer 0, head 0: the model's attention is not finite", "attention", "run", "--json", stdin=lines, code=1)
        shutil.copytree("trained", "large")
        finetune_toy.overflow("large", "word_embeddings.weight")
        toy.refused("maskbert: data: the model's loss is not finite", "eval", "large", "--data", "data", "--json", code=1)
        toy.remove("large")
        for vectors, pooling in (("v.npy", "cls"), ("v.npy", "none"), ("v.jsonl", "mean")):
            toy.refused("maskbert: the model's output for line 1 is not finite", "embed", "run", "--pooling", pooling, "-o", vectors, stdin=lines, code=1)


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def best_threshold(toy):
    """The threshold that is called best gives what it promises, others no more. The best answer of --nbest is the prediction where
    none is withheld."""
    best = evaluate(toy, "squad2", "run")["best_threshold"]
    shown = " ".join(toy.ok("eval", "run", "--task", "squad2", "--data", "squad2").stdout.split())
    for word, metric in (("--null-threshold=", "exact_match"), (" at ", "f1")):
        at = best[metric + "_threshold"]
        number = shown.split("best here:")[1].rsplit(word, 1)[1].split(",")[0].strip()
        assert float(number) == (-1e30 if at is None else at), (shown, best)
    for metric in ("exact_match", "f1"):
        at = best[metric + "_threshold"]
        at = -1e30 if at is None else at
        assert abs(evaluate(toy, "squad2", "run", "--null-threshold", at)["metrics"][metric] - best[metric]) < 1e-9, (metric, best)
    lines = "\n".join(dev_texts("squad2")) + "\n"
    said = [json.loads(x) for x in toy.ok("answer", "run", "--null-threshold", 0, "--json", stdin=lines).stdout.splitlines()]
    leads = [float32(x["no_answer_score"]) - float32(x["answers"][0]["score"]) for x in said]
    assert [x["no_answer"] for x in said] == [x > 0 for x in leads]
    lead = sorted(leads)[len(leads) // 2]  # as a threshold it gives the answer of its question, in `answer` as in `eval`
    said = toy.ok("answer", "run", "--null-threshold", lead, stdin=lines).stdout.split("\n")[:-1]
    for at in (lead, 1e30) if FEW else (lead, -3, -0.3, 0, 1e30):
        found = evaluate(toy, "squad2", "run", "--null-threshold", at, "--nbest", "best.json", "--predictions", "p.json")["metrics"]
        assert all(found[m] <= best[m] + 1e-9 for m in ("exact_match", "f1")), (at, found, best)
        several, one = (json.loads((toy.work / x).read_text()) for x in ("best.json", "p.json"))
        assert at != lead or (list(one.values()) == said and "" in said), said
    assert {k: v[0]["text"] for k, v in several.items()} == one and all(len(v) == 5 for v in several.values())
    os.remove(toy.work / "best.json")
    os.remove(toy.work / "p.json")


def every_task(toy):
    for task in ("text", "tokens", "swag", "squad2") if FEW else EXPECTED:  # a task of each head
        learns(toy, task)


def same_bits(toy):
    """Threads, parts of a batch, kills: the model, the state, and which evaluation was best."""
    for task in ("text", "swag", "squad2"):
        command = arguments(task, "one", "--steps", 24, "--eval-every", 12, "--dropout", 0.1, "--layer-decay", 0.8, "--save-every", 7)
        began = time.monotonic()
        toy.ok(*command, "--threads", 1)
        took = time.monotonic() - began
        for threads in (2, 3):
            other = [x if x != "one" else "other" for x in command]
            toy.ok(*other, "--threads", threads)
            pretrain_toy.same(toy, "one", "other")
            toy.remove("other")
        killed = list(map(str, [toy.maskbert, *(x if x != "one" else "killed" for x in command)]))
        draw = random.Random(task)
        toy.kill_three_times(killed, "killed", lambda draw=draw, took=took: took * draw.uniform(0.4, 0.9))
        toy.ok(*killed[1:], "--resume")
        pretrain_toy.same(toy, "one", "killed")
        metrics = [json.loads((toy.work / x / "summary.json").read_text())["metrics"] for x in ("one", "killed")]
        assert metrics[0] == metrics[1], metrics
        toy.remove("one", "killed")


def several_runs(toy):
    options = ["--epochs", 1, "--seeds", 2, "--seed", 5, "--grid", "lr=1e-3,4e-3 batch=16", "--drop", "random:8", "--repeats", 2]
    made = toy.ok(*arguments("text", "many", *options, "--mask", "window(5)", "--csv"))
    summary = json.loads((toy.work / "many/summary.json").read_text())
    runs = {f"seed-{s}-repeat-{r}" for s in (5, 6) for r in (1, 2)}
    assert {x.name for x in (toy.work / "many").iterdir()} == {"grid", "summary.json", *runs}
    assert {x.name for x in (toy.work / "many/grid").iterdir()} == {"lr-0.001-batch-16", "lr-0.004-batch-16"}
    each = summary["metric"]["each"]
    assert len(each) == 4 and abs(summary["metric"]["mean"] - statistics.mean(each)) < 1e-12
    assert abs(summary["metric"]["deviation"] - statistics.stdev(each)) < 1e-12
    best = max(summary["grid"], key=lambda r: r["metrics"]["accuracy"])
    assert all(r["lr"] == best["lr"] and r["batch"] == 16 for r in summary["runs"]), summary
    rows = made.stdout.splitlines()
    assert rows[0].startswith("part,run,seed,lr,batch,repeat,best_epoch,elapsed_s,accuracy") and len(rows) == 7, rows
    again = toy.ok(*arguments("text", "many", *options, "--mask", "window(5)", "--resume", "--json"))
    assert json.loads(again.stdout)["metrics"] == summary["metrics"] and "no step was left to do" in again.stderr
    masks = {(toy.work / "many" / r / "config.json").read_text() for r in runs}
    assert len(masks) == 4, "two runs have the same random entries"
    toy.remove("many")


def refuses_options(toy):
    command = arguments("text", "new")
    toy.refused("--task TASK", "finetune", "trained", "--data", "text", "-o", "new")
    toy.refused("one of cola", *command, "--task", "sst-3")
    toy.refused("at most one of --epochs", *command, "--epochs", 1, "--steps", 3)
    toy.refused("--layer-decay 1.5", *command, "--layer-decay", 1.5)
    toy.refused("--grid lr=", *command, "--grid", "lr=")
    toy.refused("--grid batch=1.5", *command, "--grid", "batch=1.5")
    toy.refused("different values each", *command, "--grid", "lr=1e-4,2e-4,0.0001")
    toy.refused("--stride", *command, "--stride", 5)
    toy.refused("--seeds 2: seeds up to 2^63 - 1", *command, "--seed", 2**63 - 1, "--seeds", 2)
    made = toy.run(*command, "--seed", 2**63)
    assert made.returncode == 2 and f"--seed: '{2**63}' is not a whole number from 0 to 2^63 - 1\n" in made.stderr, made.stderr
    toy.refused("--null-threshold: for squad2 alone", *command, "--null-threshold", 1)
    toy.refused("--nbest: for questions", "eval", "trained", "--task", "text", "--data", "text", "--nbest", "b")
    toy.refused("one of them is expected", *command, "--json", "--csv")


def refuses(toy):
    """What the folders and files are read for."""
    command = arguments("text", "new")
    toy.refused("--max-length 999: the model has", *command, "--steps", 1, "--max-length", 999)
    toy.refused("the training data have no such", *arguments("odd", "new", "--task", "text"))
    toy.refused("2 or more are expected", *arguments("flat", "new", "--task", "text"))
    toy.refused("there is one already", *command, "--seeds", 2, "-o", "text")
    toy.refused("has no head for the task text", "eval", "trained", "--task", "text", "--data", "text")
    toy.refused("--split heldout", "eval", "trained", "--task", "text", "--data", "text", "--split", "heldout")


def refuses_options_of_eval(toy):
    """Each kind of evaluation names the options that it does not read."""
    plain, task = ("eval", "trained", "--data", "data"), ("eval", "trained", "--task", "text", "--data", "text")
    for option in (("--split", "test"), ("--predictions", "p"), ("--nbest", "b"), ("--stride", 3), ("--max-length", 9), ("--regression",), ("--null-threshold", 3)):
        toy.refused(f"{option[0]}: with --task alone", *plain, *option)
    for option in (("--mlm-probability", 0.3), ("--whole-word",)):
        toy.refused(f"{option[0]}: without --task alone", *task, *option)
    toy.refused("at most half of the 1024 entries that a head has for texts of 32 tokens", *plain, "--drop", "random:600")
    for command in (plain, task):
        toy.refused("--seed: with --drop random:K alone", *command, "--seed", 4)
    toy.refused("--regression: trained does not answer with a number", *task, "--regression")


class TaskToy(pretrain_toy.Toy):
    """The toy, with a model that has learned its sentences, and the tasks' files."""

    def __init__(self, maskbert, work):
        super().__init__(maskbert, work)
        finetune_toy.make(work)
        for name, dev in (("odd", "the cat\tcat\nthe dog\tbird\n"), ("flat", "the cat\tcat\n")):
            (self.work / name).mkdir()
            (self.work / name / "train.tsv").write_text("text\tlabel\n" + ("a\tcat\nb\tdog\n" if name == "odd" else "a\tcat\n"))
            (self.work / name / "dev.tsv").write_text("text\tlabel\n" + dev)
        made = self.run(*self.command("trained", "--steps", 5 if FEW else 150, "--lr", 5e-3))
        assert made.returncode in (0, 3), made.stderr


if __name__ == "__main__":
    if FEW:
        finetune_toy.COUNTS.update(train=64, dev=24)
    MASKBERT = pathlib.Path(sys.argv[1]).resolve()

    def in_work(test):
        def run(toy):
            os.chdir(toy.work)
            test(toy)
        return run

    RUNS = () if FEW else (windows, limits_of_folders, short_masks, same_bits, several_runs, resumed_evaluations, packed_files, cut_texts, published_names, refuses_options, refuses_options_of_eval)
    tests = {t.__name__: in_work(t) for t in (every_task, *RUNS, refuses, odd_files, undefined_metric, other_spellings)}
    sys.exit(pretrain_toy.run_tests(TaskToy, MASKBERT, tests, ["trained", "odd", "flat", *finetune_toy.TASKS]))
