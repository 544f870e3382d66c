# SPDX-License-Identifier: Apache-2.0
"""Files of a task that are odd, packed, changed or longer than the model: what finetune_test.py asks of them."""
import gzip
import json
import re
import shutil

import finetune_toy
import pretrain_toy
from finetune_toy import arguments, dev_texts, evaluate


def odd_files(toy):
    """Labels "1.5" and "none" are classes, also in a dev file that has only numbers. Bytes that are not UTF-8 are reported, for train and dev."""
    folder = toy.work / "mixed"
    folder.mkdir()
    (folder / "train.tsv").write_bytes(b"text\tlabel\nthe caf\xe9\t1.5\nthe dog\tnone\n")
    (folder / "dev.tsv").write_bytes(b"text\tlabel\nthe cat\t1.5\nthe \xe8\xe9\t1.5\n")
    made = toy.ok(*arguments("mixed", "run", "--task", "text", "--steps", 1))
    assert "; 1 byte is not UTF-8 and was replaced, the first one in line 2" in made.stderr, made.stderr
    assert "mixed/dev.tsv: 2 bytes are not UTF-8 and were replaced, the first one in line 3" in made.stderr, made.stderr
    assert "accuracy" in evaluate(toy, "mixed", "run", "--task", "text")["metrics"]
    (folder / "train.tsv").write_text("text\tlabel\nthe cat\t1.5\nthe dog\tnone\n")
    toy.refused("--data: its samples are not those", *arguments("mixed", "run", "--task", "text", "--steps", 1, "--resume"))
    (folder / "train.tsv").write_bytes(b"text\tlabel\nthe cat\tbar\nthe dog\tcaf\xe9\n")
    toy.refused("mixed/train.tsv:3:9: the label is not UTF-8", *arguments("mixed", "new", "--task", "text"))
    toy.refused("mixed/train.tsv:3:9: the label is not UTF-8", *arguments("mixed", "new", "--task", "tokens"))
    (folder / "train.tsv").write_text("text\tlabel\nthe cat\t1.5\nthe dog\t-1e39\n")
    toy.refused('mixed/train.tsv:3:9: label "-1e39": a number within', *arguments("mixed", "new", "--task", "text", "--regression", "--steps", 1))
    toy.remove("run", "mixed")


def undefined_metric(toy):
    """With a metric that is undefined on the dev file the lowest loss decides. A model whose loss there is not finite is not kept."""
    folder = toy.work / "mixed"
    folder.mkdir()
    shutil.copy(toy.work / "number" / "train.tsv", folder / "train.tsv")
    (folder / "dev.tsv").write_text("text\tlabel\n" + "".join(f"{s} sees some water\t0.5\n" for s in pretrain_toy.SUBJECTS))
    command = arguments("mixed", "run", "--task", "text", "--steps", 6, "--eval-every", 1, "--save-every", 1)
    made = toy.ok(*command)
    losses = [x["loss"] for x in toy.log("run") if x.get("eval") == "dev"]
    best = [x["step"] for x in toy.log("run") if x.get("eval") == "dev"][losses.index(min(losses))]
    summary = json.loads((toy.work / "run/summary.json").read_text())
    assert best > 1 and abs(summary["runs"][0]["best_epoch"] - best * 16 / finetune_toy.COUNTS["train"]) < 1e-9, (losses, summary)
    assert f"step {best}: epoch" in made.stderr and summary["metric"]["mean"] is None, made.stderr
    toy.remove("run")
    shutil.copytree(toy.work / "trained", toy.work / "overflows")
    finetune_toy.overflow("overflows", "word_embeddings.weight", "water")
    rows = [x for x in (toy.work / "text/train.tsv").read_text().splitlines() if "water" not in x]
    (folder / "train.tsv").write_text("\n".join(rows) + "\n")
    (folder / "dev.tsv").write_text("\n".join(rows[:9]) + "\nthe cat sees some water\tsees\n")
    command = arguments("mixed", "run", "--task", "text", "--steps", 2)
    command[1] = "overflows"
    for more in ([], ["--resume"]):
        made = toy.run(*command, *more)
        assert made.returncode == 1 and "run: no loss on the dev file was finite" in made.stderr.splitlines()[-1] and "best so far" not in made.stderr, made.stderr
    assert not (toy.work / "run/summary.json").exists() and all(x["accuracy"] is None for x in toy.log("run") if x.get("eval") == "dev")
    toy.remove("run", "mixed", "overflows")


def resumed_evaluations(toy):
    """--resume refuses other evaluations, which choose the model: another --eval-every or dev file. Runs of older versions have no sum of the dev file."""
    shutil.copytree(toy.work / "text", toy.work / "mixed")
    dev = toy.work / "mixed/dev.tsv"
    rows = dev.read_text()
    command = arguments("mixed", "run", "--task", "text", "--steps", 3, "--eval-every", 2, "--resume")
    toy.ok(*command)
    toy.ok(*command)
    toy.refused("--eval-every: the run has 2, this command 1", *command, "--eval-every", 1)
    dev.write_text(rows[:rows.rstrip("\n").rindex("\n") + 1])
    toy.refused("--data: its samples are not those", *command)
    stored = toy.work / "run/run.json"
    older = json.loads(stored.read_text())
    assert older.pop("dev_sum") and older["eval_every"] == 2
    stored.write_text(json.dumps(older))
    toy.ok(*command)
    toy.remove("run", "mixed")


def cut_texts(toy):
    """`eval` reports texts, questions and words that the model does not see in full, `answer` questions. So it is with --json."""
    count, short = finetune_toy.COUNTS["dev"], ("--max-length", 8)
    for task, says in {
        "text": rf"text/dev.tsv: \d+ of {count} texts are cut to 4 tokens",
        "tokens": rf"tokens/dev.tsv: \d+ of {count} texts are cut to 4 tokens\nmaskbert: tokens/dev.tsv: \d+ words were not seen ",
        "squad1": rf"squad1/dev.json: {count} of {count} questions are cut to 4 tokens",
    }.items():
        toy.ok(*arguments(task, "run", "--steps", 1))
        command = ("eval", "run", "--task", task, "--data", task)
        assert "not seen" not in (whole := toy.ok(*command).stderr) and "cut" not in whole, whole
        for more in ((), ("--json",)):
            made = toy.ok(*command, *(short if task == "squad1" else ("--max-length", 4)), *more).stderr
            assert re.search(says, made), made
        if task == "squad1":
            lines = "\n".join(dev_texts(task)) + "\n"
            assert f"maskbert: {count} of {count} questions are cut to 4 tokens\n" in toy.ok("answer", "run", *short, stdin=lines).stderr
            assert "cut" not in toy.ok("answer", "run", stdin=lines).stderr
        toy.remove("run")


def packed_files(toy):
    """Packed files of a task are found and unpacked."""
    folder = toy.work / "packed"
    folder.mkdir()
    for part in ("train", "dev"):
        (folder / f"{part}.tsv.gz").write_bytes(gzip.compress((toy.work / "text" / f"{part}.tsv").read_bytes()))
    options = ("run", "--task", "text", "--steps", 1)
    scores = []
    for data in ("text", "packed"):
        toy.ok(*arguments(data, *options))
        scores.append(evaluate(toy, data, "run", "--task", "text"))
        toy.remove("run")
    assert scores[0] == scores[1], scores
    toy.remove("packed")
