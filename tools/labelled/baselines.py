# SPDX-License-Identifier: Apache-2.0
"""Scores without a model, for each task of `tools/fetch-text --labelled`: the majority of the training labels, and bags of words.

majority      the most frequent label of train; of subject/ no answer. Needs no library.
bag-of-words  scikit-learn's logistic regression. section/: TF-IDF of words and pairs of neighbouring words. synopsis/ and endings/: overlap of
              the two texts (words weighted by idf, characters), and products of a word of the one and a word of the other; of four endings the
              likeliest. subject/: the rarest word of the sentence that shares the most with the question, or nothing below a share of it that
              train gives. The strength of regularisation is chosen on dev, so dev's figures are a little kind; test's are not.

Predictions are written to DIR/TASK.METHOD.PART.jsonl (subject: .json) and scored by `maskbert score`."""
import collections
import csv
import json

import spans
from programs import Fatal, write_json, write_whole

METHODS = ("majority", "bag-of-words")
FORMATS = {"section": ("text", ".tsv"), "synopsis": ("pair", ".tsv"), "endings": ("swag", ".csv"), "subject": ("squad2", ".json")}
METRICS = {"section": ("accuracy", "matthews"), "synopsis": ("accuracy",), "endings": ("accuracy",), "subject": ("exact_match", "f1")}
PERCENT = ("exact_match", "f1")  # of squad2 are percentages already
JUDGED = ("dev", "test")


# ---- Files of a task.
def read_table(path, delimiter):
    csv.field_size_limit(1 << 30)
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f, delimiter=delimiter, quoting=quoting))


def read_questions(path):
    """One for each question: {"id", "question", "context", "answers"}."""
    data = json.loads(path.read_text(encoding="utf-8"))["data"]
    return [{**q, "context": p["context"], "answers": [a["text"] for a in q["answers"]]} for a in data for p in a["paragraphs"] for q in p["qas"]]


def read_part(folder, task, part):
    path = folder / task / f"{part}{FORMATS[task][1]}"
    try:
        rows = read_questions(path) if task == "subject" else read_table(path, "," if task == "endings" else "\t")
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise Fatal(2, f"{path}: {e}; a file that tools/fetch-text --labelled wrote is expected") from None
    if not rows or (task != "subject" and None in (rows[0].get("label"), rows[-1].get("label"))):
        raise Fatal(2, f"{path}: examples with labels are expected")
    return rows


# ---- Predictions: a text for each row.
def majority(task, parts):
    if task == "subject":
        return {part: [""] * len(parts[part]) for part in JUDGED}, {}
    counts = collections.Counter(row["label"] for row in parts["train"])
    label = min(counts, key=lambda x: (-counts[x], x))
    return {part: [label] * len(parts[part]) for part in JUDGED}, {"label": label}


def bag_of_words(task, parts):
    if task == "subject":
        return spans.predict(parts)
    import bag_of_words as words  # scikit-learn
    return words.predict(task, parts)


def predictions_text(task, rows, found):
    if task == "subject":
        return json.dumps({row["id"]: text for row, text in zip(rows, found)}, ensure_ascii=False) + "\n"
    return "".join(json.dumps({"id": str(k), "prediction": text}) + "\n" for k, text in enumerate(found))


# ---- The whole.
def need_library():
    try:
        import sklearn  # noqa: F401
    except ImportError as e:
        raise Fatal(3, f"scikit-learn cannot be imported ({e}); Debian: python3-sklearn, pip: scikit-learn; --method majority needs no library") from None


def judge_task(programs, folder, output, task, methods):
    """{"settings": {method: ..}, part: {method: what maskbert score prints}}"""
    parts = {part: read_part(folder, task, part) for part in ("train", *JUDGED)}
    result = {"settings": {}, **{part: {} for part in JUDGED}}
    format_, ending = FORMATS[task]
    for method in methods:
        found, result["settings"][method] = (majority if method == "majority" else bag_of_words)(task, parts)
        for part in JUDGED:
            path = output / f"{task}.{method}.{part}{'.json' if task == 'subject' else '.jsonl'}"
            write_whole(path, predictions_text(task, parts[part], found[part]))
            result[part][method] = programs.json("maskbert", "score", format_, path, folder / task / f"{part}{ending}")
    return result


def cell(task, result, metric):
    if result is None:
        return ""
    value = result["metrics"][metric]
    return "" if value is None else f"{value * (1 if task == 'subject' and metric in PERCENT else 100):.1f}"


def table(results, methods):
    lines = [("task", "part", "examples", "metric", *methods)]
    for task, result in results.items():
        for part in JUDGED:
            for metric in METRICS[task]:
                first = result[part][methods[0]]
                lines.append((task, part, str(first["examples"]), metric, *(cell(task, result[part][m], metric) for m in methods)))
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    return "\n".join("  ".join(c.ljust(w) if k in (0, 1, 3) else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths))).rstrip() for line in lines)


def run(programs, folder, output, methods, as_json):
    if "bag-of-words" in methods:
        need_library()
    tasks = [task for task in FORMATS if (folder / task).is_dir()]
    if not tasks:
        raise Fatal(2, f"{folder}: none of the folders {', '.join(FORMATS)}; what tools/fetch-text --labelled wrote is expected")
    output.mkdir(parents=True, exist_ok=True)
    results = {task: judge_task(programs, folder, output, task, methods) for task in tasks}
    made = {"folder": str(folder), "methods": list(methods), "tasks": results}
    write_json(output / "baselines.json", made)
    print(json.dumps(made) if as_json else table(results, methods) + "\n\nin percent; predictions and baselines.json in " + str(output))
    return 0
