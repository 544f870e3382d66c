#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""objective_test.py MASKBERT OBJECTIVE_RUN: a run for the objective "classify", from a model without a classifier to one that
`maskbert classify` uses."""
import json
import pathlib
import random
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]
import pretrain_toy  # noqa: E402

LABELS = ["animal", "human", "none"]
TEXTS = {"animal": "the cat|a dog|a small bird", "human": "my friend|the teacher|our king", "none": "a red apple|the green tree|some water"}
STEPS = 80


def texts(count):
    draw = random.Random(3)
    labels = [draw.choice(LABELS) for _ in range(count)]
    return [(x, f"{draw.choice(TEXTS[x].split('|'))} {draw.choice(pretrain_toy.VERBS)} it .") for x in labels]


def classify(toy):
    rows = texts(120)
    (toy.work / "rows.tsv").write_text("".join(f"{x}\t{t}\n" for x, t in rows))
    config = json.loads((toy.work / "model/config.json").read_text())
    (toy.work / "model/config.json").write_text(json.dumps(config | {"num_labels": len(LABELS)}))
    made = subprocess.run([RUN, "classify", "model", "rows.tsv", "run", str(STEPS)], cwd=toy.work, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "120 texts, 3 labels" in made.stdout and "accuracy" in made.stdout, made.stdout
    log = toy.log("run")
    steps, evals = [x for x in log if "lr" in x], [x for x in log if "eval" in x]
    assert len(steps) == STEPS and not {"mlm", "nsp"} & set(steps[0]), steps[0]
    assert list(evals[0])[:5] == ["eval", "step", "tokens", "loss", "accuracy"], evals[0]
    assert evals[0]["accuracy"] < evals[-1]["accuracy"] and evals[-1]["accuracy"] > 0.95, evals
    stored = json.loads((toy.work / "run/run.json").read_text())
    assert stored["objective"] == "classify" and "mlm_probability" not in stored, stored
    answers = [json.loads(x) for x in toy.ok("classify", "run", "--json", stdin="".join(t + "\n" for _, t in rows)).stdout.splitlines()]
    right = sum(LABELS.index(x) == int(a["label"].removeprefix("LABEL_")) for (x, _), a in zip(rows, answers))
    assert right == round(120 * evals[-1]["accuracy"]), (right, evals[-1])


def refuses(toy):
    (toy.work / "rows.tsv").write_text("a\tthe cat\nb the dog\n")
    made = subprocess.run([RUN, "classify", "model", "rows.tsv", "other", "1"], cwd=toy.work, capture_output=True, text=True, check=False)
    assert made.returncode == 2 and made.stderr.startswith("rows.tsv:2:10: no tab"), made.stderr
    assert not (toy.work / "other").exists()


RUN = pathlib.Path(sys.argv[2]).resolve()
if __name__ == "__main__":
    sys.exit(pretrain_toy.run_tests(pretrain_toy.Toy, pathlib.Path(sys.argv[1]).resolve(), {"classify": classify, "refuses": refuses}, ["rows.tsv", "run"]))
