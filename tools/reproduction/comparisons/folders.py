# SPDX-License-Identifier: Apache-2.0
"""Tasks of a comparison: folders as `maskbert finetune` reads them, a sample of their dev part, the texts of their training part."""
import collections
import csv
import dataclasses
import functools
import json
import os
import pathlib
import random
import shutil

from programs import Fatal, write_whole

LABELLED = (("section", "text"), ("synopsis", "pair"), ("endings", "swag"), ("subject", "squad2"))  # of tools/fetch-text --labelled
KINDS = ("text", "pair", "tokens", "cola", "sst-2", "mrpc", "qqp", "mnli", "qnli", "rte", "wnli", "sts-b", "sst-1", "semeval", "sentube", "scitail", "swag", "squad1", "squad2", "mrqa")
SAMPLED = {"text": ".tsv", "pair": ".tsv", "swag": ".csv", "squad1": ".json", "squad2": ".json"}
TEXTS = {"text": ("text",), "pair": ("text", "text2"), "swag": ("sent1", "ending0", "ending1", "ending2", "ending3")}
MOST_TEXTS = 40000  # of a task, for pre-training
PARTS = {"swag": 4}  # sequences of an example
RANGE = {"exact_match": 100.0, "f1": {"squad1": 100.0, "squad2": 100.0, "mrqa": 100.0}}  # metrics in percent


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    kind: str
    folder: pathlib.Path
    length: int = 128

    @property
    def parts(self):
        return PARTS.get(self.kind, 1)

    def percent(self, metric, value):
        """maskbert gives SQuAD's metrics in percent, all others as shares."""
        most = RANGE.get(metric, 1.0)
        return 100 * value / (most.get(self.kind, 1.0) if isinstance(most, dict) else most)

    def file(self, part):
        """The part's file where this module can read it, else None."""
        path = self.folder / f"{part}{SAMPLED.get(self.kind, '.none')}"
        return path if path.is_file() else None


def parse(texts, length):
    """From NAME=TASK:FOLDER,.."""
    found = []
    for text in filter(None, texts.split(",")):
        name, equals, rest = text.partition("=")
        kind, colon, folder = rest.partition(":")
        if not equals or not colon or not name.replace("-", "").replace("_", "").isalnum() or not kind or not folder:
            raise Fatal(2, f"--tasks {text}: NAME=TASK:FOLDER is expected, as section=text:corpus/labelled/section")
        if kind not in KINDS:
            raise Fatal(2, f"--tasks {text}: no task {kind}; one of {', '.join(KINDS)} is expected")
        if not pathlib.Path(folder).is_dir():
            raise Fatal(2, f"--tasks {text}: {folder}: no such folder")
        if name in (t.name for t in found):
            raise Fatal(2, f"--tasks {text}: there is a task {name} already")
        found.append(Task(name, kind, pathlib.Path(folder).resolve(), length))
        for part in ("train", "dev") if kind in SAMPLED else ():
            if not found[-1].file(part):
                raise Fatal(2, f"--tasks {text}: {folder}/{part}{SAMPLED[kind]}: no such file")
    if not found:
        raise Fatal(2, "--tasks: at least one NAME=TASK:FOLDER is expected")
    return found


def labelled(folder, length):
    """The tasks of tools/fetch-text --labelled, as far as they are there."""
    found = [Task(name, kind, (folder / name).resolve(), length) for name, kind in LABELLED if (folder / name).is_dir()]
    if not found:
        raise Fatal(2, f"{folder}: no labelled text; make it (tools/fetch-text --labelled) or give --tasks NAME=TASK:FOLDER,..")
    return found


# ---- Files.
def read_rows(task, part):
    """Rows as dictionaries of a text, pair or swag task; questions with their context of SQuAD."""
    path = task.file(part)
    csv.field_size_limit(1 << 30)
    try:
        if task.kind.startswith("squad"):
            data = json.loads(path.read_text(encoding="utf-8"))["data"]
            return [{**q, "context": p["context"]} for a in data for p in a["paragraphs"] for q in p["qas"]]
        quoting = {"delimiter": ",", "quoting": csv.QUOTE_MINIMAL} if task.kind == "swag" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
        with open(path, encoding="utf-8", newline="") as f:
            return list(csv.DictReader(f, **quoting))
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as e:
        raise Fatal(2, f"{path}: {e}; a file of the task {task.kind} is expected") from None


def write_rows(kind, rows, path):
    if kind.startswith("squad"):
        paragraphs = [{"context": r["context"], "qas": [{k: v for k, v in r.items() if k != "context"}]} for r in rows]
        write_whole(path, json.dumps({"version": "sample", "data": [{"title": "", "paragraphs": paragraphs}]}))
        return
    aside = path.with_name(path.name + ".part")
    with open(aside, "w", encoding="utf-8", newline="") as f:
        more = {"delimiter": ","} if kind == "swag" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}
        to = csv.DictWriter(f, list(rows[0]), lineterminator="\n", **more)
        to.writeheader()
        to.writerows(rows)
    os.replace(aside, path)


def count(task, part):
    """Examples of a part; None where this module cannot read the task's files."""
    return len(read_rows(task, part)) if task.file(part) else None


def sample(task, dev, output):
    """The task in a folder of its own, with at most so many examples of dev, drawn once. Returns (task, examples of dev or None). A task
    whose files this module cannot read stays as it is."""
    if not task.file("train") or not task.file("dev"):
        return task, None
    rows = read_rows(task, "dev")
    ending = SAMPLED[task.kind]
    if not (output / f"dev{ending}").exists():
        output.mkdir(parents=True, exist_ok=True)
        kept = [rows[k] for k in sorted(random.Random(f"{task.name} dev").sample(range(len(rows)), min(dev, len(rows))))]
        shutil.copyfile(task.file("train"), output / f"train{ending}")
        write_rows(task.kind, kept, output / f"dev{ending}")
    return dataclasses.replace(task, folder=output), min(dev, len(rows))


def texts(task):
    """Texts of the training part, each once."""
    if not task.file("train"):
        return []
    names = TEXTS.get(task.kind, ("context",))
    found = dict.fromkeys(row[name].strip() for row in read_rows(task, "train") for name in names if row.get(name))
    return list(found)[:MOST_TEXTS]


@functools.lru_cache(maxsize=None)
@functools.lru_cache(maxsize=None)
def majority(task):
    """Percent of dev that the most frequent training label gets right, of SQuAD the questions without an answer; None where files are not read here."""
    if not task.file("train") or not task.file("dev"):
        return None
    if task.kind.startswith("squad"):
        rows = read_rows(task, "dev")
        return 100 * sum(not r.get("answers") for r in rows) / len(rows)
    counts = collections.Counter(r["label"] for r in read_rows(task, "train"))
    label = min(counts, key=lambda x: (-counts[x], x))
    rows = read_rows(task, "dev")
    return 100 * sum(r["label"] == label for r in rows) / len(rows)


@functools.lru_cache(maxsize=None)
def mean_tokens(task):
    """A rough guess of the tokens of an example's sequence: three for two words."""
    rows = read_rows(task, "train")[:500] if task.file("train") else []
    if not rows:
        return task.length
    names = {"swag": ("sent1", "ending0"), "squad1": ("question", "context"), "squad2": ("question", "context")}.get(task.kind, TEXTS.get(task.kind))
    each = [min(task.length, 3 + sum(3 * len((r.get(n) or "").split()) // 2 for n in names)) for r in rows]
    return sum(each) / len(each)
